//! Why a pass over what every cluster has failed. The next pass is another try, whatever it was.

use std::path::PathBuf;

use client::ClientError;
use storage::StorageError;

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum BootstrapError {
    /// The server refused a read or a write of its own.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The store could not be asked.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file could not be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A stored list of names is none.
    #[error(transparent)]
    Names(serde_json::Error),
    /// Nobody has a lease, not even this server, which has renewed its own.
    #[error(
        "no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service"
    )]
    NoAddresses,
}
