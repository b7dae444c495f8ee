//! What the failures of the store and of the cache look like to a client.

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use feature_gates::Gates;
use storage::{Revision, StorageError};
use watch_cache::{CacheError, WatchFault};

use crate::unreadable::{self, Told};

/// The longest wait that a filling cache asks of clients, in seconds.
const MAX_RETRY_AFTER_SECONDS: f64 = 30.0;
/// How fast that wait grows with the time the cache has not been ready.
const RETRY_AFTER_GROWTH: f64 = 0.06;

/// A failure of the store during `operation` (`get`, `list`, `create`, `update`, `delete`).
pub(crate) fn storage(resource: &GroupResource, operation: &str, error: StorageError) -> ApiError {
    match error {
        StorageError::Compacted { .. } => ApiError::expired("The resourceVersion for the provided list is too old."),
        StorageError::FutureRevision { requested, current } => too_large_in_store(requested, current),
        // etcd itself answered; anything else means that it was not reached.
        StorageError::Unavailable { message } if message.starts_with("etcdserver: ") => ApiError::unclassified(message),
        StorageError::Unavailable { message } => {
            tracing::warn!(%resource, operation, error = %message, "store cannot be reached");
            ApiError::server_timeout(resource, operation)
        }
        StorageError::Untransformable { message } => ApiError::internal(message),
        other => ApiError::unclassified(other.to_string()),
    }
}

/// A read of the store at a revision it has not come to: no hint to wait, for nothing says that it will.
pub(crate) fn too_large_in_store(requested: Revision, current: Option<Revision>) -> ApiError {
    let mut error = ApiError::resource_version_too_large(unsigned(requested), current.map_or(0, unsigned));
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 0;
    }
    error
}

/// A failure of the cache during `operation`.
pub(crate) fn cache(resource: &GroupResource, operation: &str, error: CacheError) -> ApiError {
    match error {
        CacheError::NotReady { since, .. } => {
            ApiError::too_many_requests(error.to_string(), retry_after_seconds(since.as_secs_f64()))
        }
        CacheError::Stopped => ApiError::too_many_requests(error.to_string(), 1),
        CacheError::TooLarge { requested, current } => {
            ApiError::resource_version_too_large(unsigned(requested), unsigned(current))
        }
        CacheError::TooOld { .. } => ApiError::expired(error.to_string()),
        CacheError::Storage(error) => storage(resource, operation, error),
    }
}

/// What a watch reports as its last event.
#[must_use]
pub fn watch_fault(fault: &WatchFault, gates: &Gates) -> ApiError {
    match fault {
        WatchFault::TooOld { .. } | WatchFault::Compacted => ApiError::expired(fault.to_string()),
        WatchFault::TooLarge { requested, current } => {
            ApiError::resource_version_too_large(unsigned(*requested), unsigned(*current))
        }
        WatchFault::CorruptDeletion { error, written } if Told::by(gates) == Told::Corrupt => {
            unreadable::seen_deleted(error, *written)
        }
        WatchFault::CorruptDeletion { .. } | WatchFault::Internal(_) => ApiError::internal(fault),
    }
}

pub(crate) fn unsigned(revision: Revision) -> u64 {
    u64::try_from(revision.0).unwrap_or(0)
}

fn retry_after_seconds(unready_seconds: f64) -> i32 {
    let seconds = (RETRY_AFTER_GROWTH * unready_seconds).exp().clamp(1.0, MAX_RETRY_AFTER_SECONDS);
    #[expect(clippy::cast_possible_truncation, reason = "between 1 and 30; truncating is what upstream does")]
    {
        seconds as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_as_upstreams() {
        for (unready, expected) in [(0.0, 1), (11.0, 1), (12.0, 2), (30.0, 6), (57.0, 30), (1e9, 30)] {
            assert_eq!(retry_after_seconds(unready), expected, "{unready}");
        }
    }
}
