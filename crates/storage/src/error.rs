//! What can go wrong with a store; the texts that clients see are etcd's.

use std::path::PathBuf;

use crate::{LeaseId, Revision};

/// Why a storage operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// History that old is gone; list anew.
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The newest revision that is gone; `None` where the store does not say.
        compacted: Option<Revision>,
    },
    /// The store has not come that far.
    #[error("etcdserver: mvcc: required revision is a future revision")]
    FutureRevision {
        /// The revision asked for.
        requested: Revision,
        /// The store's revision; `None` where the store does not say.
        current: Option<Revision>,
    },
    /// A write named a lease that has ended or never was.
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound(LeaseId),
    /// Key and value together are larger than the store takes.
    #[error("etcdserver: request is too large")]
    RequestTooLarge,
    /// The store is full: reads go on, writes are refused until there is room.
    #[error("etcdserver: mvcc: database space exceeded{detail}")]
    NoSpace {
        /// Empty, or what exactly is full, starting with `: `.
        detail: String,
    },
    /// An empty key or a lifetime that is not positive.
    #[error("invalid storage request: {0}")]
    Invalid(&'static str),
    /// The store could not be reached or did not answer in time. A write may or may not have happened.
    #[error("{message}")]
    Unavailable {
        /// etcd's own words where it answered.
        message: String,
    },
    /// The store answered with an error that no retry mends.
    #[error("{message}")]
    Refused {
        /// etcd's own words.
        message: String,
    },
    /// The value cannot be brought into the form that is stored.
    #[error("{message}")]
    Untransformable {
        /// Why.
        message: String,
    },
    /// The files of the embedded store cannot be trusted; nothing was served from them.
    #[error("the store in {} is damaged: {detail}; restore it from a backup", path.display())]
    Corrupt {
        /// The data directory.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Another process has the data directory.
    #[error("the store in {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The data directory cannot be used.
    #[error("cannot {operation} {}: {message}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        message: String,
    },
    /// A durable write failed, so what is on disk is unknown: writes are refused until the process restarts.
    #[error("the store stopped after a failed write: {0}")]
    Failed(String),
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
}

impl StorageError {
    /// Whether asking again may help. A write must be checked by a read first, see [`Self::outcome_unknown`].
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NoSpace { .. })
    }

    /// Whether a write that failed so may have happened all the same.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Failed(_) | Self::Closed)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into() }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        Self::Io { operation, path: path.into(), message: error.to_string() }
    }
}
