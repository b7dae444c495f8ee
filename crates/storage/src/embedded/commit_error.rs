//! Why a commit failed: a full disk, which heals, or anything else, which does not.

use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};

/// Why a commit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommitError {
    /// There is no room; nothing was written, and the next attempt may succeed.
    Full(String),
    /// What is on disk is unknown; no further write may be acknowledged by this process.
    Broken(String),
}

impl From<std::io::Error> for CommitError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(error.to_string()),
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl From<redb::Error> for CommitError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => error.into(),
            error => Self::Broken(error.to_string()),
        }
    }
}
