//! Why a cache cannot answer, and how a watch ends badly.

use std::time::Duration;

use storage::{Revision, StorageError};

use crate::CorruptObject;

/// Why a read or a watch cannot be served from the cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// The cache is being filled, for the first time or again.
    #[error("storage is (re)initializing{}", last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default())]
    NotReady {
        /// For how long it has not been ready.
        since: Duration,
        /// Why filling it failed last.
        last_error: Option<String>,
    },
    /// The cache was stopped.
    #[error("apiserver cacher is stopped")]
    Stopped,
    /// The cache did not get to the revision in time.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// The revision asked for.
        requested: Revision,
        /// How far the cache is.
        current: Revision,
    },
    /// History that old is not kept.
    #[error("too old resource version: {requested} ({oldest})")]
    TooOld {
        /// The revision asked for.
        requested: Revision,
        /// The oldest revision that can be asked for.
        oldest: Revision,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The last event of a watch that ends badly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchFault {
    /// The watch asked for, or fell behind to, history that is gone: 410.
    #[error("too old resource version: {requested} ({oldest})")]
    TooOld {
        /// Where the watch is.
        requested: Revision,
        /// The oldest revision that can be asked for.
        oldest: Revision,
    },
    /// The revision asked for lies in the future: 504.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// The revision asked for.
        requested: Revision,
        /// How far the store is.
        current: Revision,
    },
    /// The store forgot the history the watch was reading: 410.
    #[error("The resourceVersion for the provided watch is too old.")]
    Compacted,
    /// An object went that could not be read: 500.
    #[error("unable to transform key \"{}\": {error}", error.key)]
    CorruptDeletion {
        /// Why it could not be read.
        error: CorruptObject,
        /// When it was written.
        written: Revision,
    },
    /// Anything else: 500.
    #[error("{0}")]
    Internal(String),
}
