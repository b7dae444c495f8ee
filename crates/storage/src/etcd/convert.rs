//! Between etcd's messages and the storage interface.

use bytes::Bytes;
use etcd_client::{EventType, GetOptions, ResponseHeader};
use tonic::Code;

use crate::{Event, Key, KeyRange, KeyValue, LeaseId, Revision, StorageError};

/// etcd's way to write "no end" and "the first key".
const ZERO: &[u8] = &[0];

/// The first key to ask for; etcd refuses an empty one.
pub(super) fn range_start(range: &KeyRange) -> Vec<u8> {
    let start = range.start().as_bytes();
    if start.is_empty() { ZERO.to_vec() } else { start.to_vec() }
}

/// The end to ask for.
pub(super) fn range_end(range: &KeyRange) -> Vec<u8> {
    range.end().map_or(ZERO, Key::as_bytes).to_vec()
}

pub(super) fn range_options(range: &KeyRange) -> GetOptions {
    GetOptions::new().with_range(range_end(range))
}

pub(super) fn no_header() -> StorageError {
    StorageError::unavailable("etcd answered without a header")
}

pub(super) fn revision(header: Option<&ResponseHeader>) -> Result<Revision, StorageError> {
    header.map(|header| Revision(header.revision())).ok_or_else(no_header)
}

/// Takes a pair out of a response without copying.
pub(super) fn owned(kv: etcd_client::KeyValue) -> KeyValue {
    let (create, modified, version, lease) = (kv.create_revision(), kv.mod_revision(), kv.version(), kv.lease());
    let (key, value) = kv.into_key_value();
    KeyValue {
        key: Key::new(key),
        value: Bytes::from(value),
        create_revision: Revision(create),
        mod_revision: Revision(modified),
        version,
        lease: (lease != 0).then_some(LeaseId(lease)),
        flaw: None,
    }
}

/// Copies a watch event, key and value into one allocation each; `None` for an event without a key.
pub(super) fn event(event: &etcd_client::Event) -> Option<Event> {
    let kv = event.kv()?;
    let previous = event.prev_kv().cloned().map(owned);
    Some(match event.event_type() {
        EventType::Put => Event::Put { kv: owned(kv.clone()), previous },
        EventType::Delete => {
            Event::Delete { key: Key::new(kv.key().to_vec()), revision: Revision(kv.mod_revision()), previous }
        }
    })
}

/// Sorts an error by what its reader can do about it.
pub(super) fn error(error: &etcd_client::Error) -> StorageError {
    let etcd_client::Error::GRpcStatus(status) = error else {
        return match error {
            etcd_client::Error::InvalidArgs(_) | etcd_client::Error::InvalidUri(_) => {
                StorageError::Refused { message: error.to_string() }
            }
            error => StorageError::unavailable(error.to_string()),
        };
    };
    let message = status.message();
    let none = Revision::default();
    if message.contains("required revision has been compacted") {
        StorageError::Compacted { requested: none, compacted: None }
    } else if message.contains("required revision is a future revision") {
        StorageError::FutureRevision { requested: none, current: None }
    } else if message.contains("requested lease not found") {
        StorageError::LeaseNotFound(LeaseId(0))
    } else if message.contains("request is too large") || message.contains("message larger than max") {
        StorageError::RequestTooLarge
    } else if message.contains("database space exceeded") {
        StorageError::NoSpace { detail: String::new() }
    } else if message.contains("key is not provided") {
        StorageError::Invalid("the key is empty")
    } else {
        by_code(status)
    }
}

fn by_code(status: &tonic::Status) -> StorageError {
    let message = status.message().to_owned();
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss => StorageError::Refused { message },
        _ => StorageError::Unavailable { message },
    }
}

/// Fills in which revision was asked for.
pub(super) fn at(error: StorageError, at: Option<Revision>) -> StorageError {
    let requested = at.unwrap_or_default();
    match error {
        StorageError::Compacted { compacted, .. } => StorageError::Compacted { requested, compacted },
        StorageError::FutureRevision { current, .. } => StorageError::FutureRevision { requested, current },
        other => other,
    }
}

/// Fills in which lease was asked for.
pub(super) fn with_lease(error: StorageError, lease: Option<LeaseId>) -> StorageError {
    match (error, lease) {
        (StorageError::LeaseNotFound(_), Some(lease)) => StorageError::LeaseNotFound(lease),
        (other, _) => other,
    }
}
