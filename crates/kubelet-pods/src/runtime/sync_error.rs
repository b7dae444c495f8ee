//! What goes wrong in a sync, and when it is worth another try.

use std::time::Duration;

use kubelet_node::dra::ClaimsError;
use node_api::cri::CriError;

use super::failure::Failure;
use super::kill::KillError;
use crate::interfaces::SideError;

/// What a sync could not do. The next one tries all of it again.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Something that is to go is still there.
    #[error(transparent)]
    Kill(#[from] KillError),
    /// There is no sandbox to start anything in.
    #[error("Failed to create pod sandbox: {0}")]
    Sandbox(#[from] SandboxError),
    /// There is one, and nobody knows its addresses.
    #[error("Unable to get pod sandbox status: {0}")]
    SandboxStatus(CriError),
    /// The claims of the pod are not ready.
    #[error(transparent)]
    Claims(ClaimsError),
    /// The pod has claims, and nobody here knows of any.
    #[error("this kubelet has no dynamic resource allocation")]
    NoClaims,
    /// An instance that was in the way of a new beginning is still there.
    #[error("failed to remove container {name:?}: {source}")]
    Remove { name: String, source: CriError },
    /// A container did not start.
    #[error("failed to start container {name:?}: {}: {}", .failure.reason, .failure.message)]
    Container {
        /// Which one.
        name: String,
        /// Why.
        failure: Failure,
    },
}

impl SyncError {
    /// After how long that makes sense, where it is known: a back-off knows when it ends.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Container { failure, .. } => failure.retry_after,
            Self::Kill(_)
            | Self::Sandbox(_)
            | Self::SandboxStatus(_)
            | Self::Claims(_)
            | Self::NoClaims
            | Self::Remove { .. } => None,
        }
    }
}

/// Why a pod has no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The node cannot say what the sandbox is made with.
    #[error(transparent)]
    Node(#[from] SideError),
    /// Its logs have no place.
    #[error(transparent)]
    LogDirectory(std::io::Error),
    /// The runtime refuses.
    #[error(transparent)]
    Runtime(#[from] CriError),
}
