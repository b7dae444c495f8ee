//! Why a step of a driver's volume failed.

use client::ClientError;
use kubelet_node::csi::{NotRegistered, PREFIX};
use node_api::RpcError;

use crate::tokens::TokenError;

/// What the cluster knows of drivers has not been read yet.
#[derive(Debug, thiserror::Error)]
#[error("{PREFIX}timed out waiting for CSIDriver informer to sync")]
pub(in crate::volumes) struct Unsynced;

/// Why a step of a driver's volume failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::volumes) enum CsiError {
    /// It waits for the driver.
    #[error("{PREFIX}{place}: {source}")]
    NoDriver { place: &'static str, source: NotRegistered },
    #[error(transparent)]
    Call(#[from] RpcError),
    #[error("{PREFIX}Unmounter.TearDownAt failed: {0}")]
    Unpublish(RpcError),
    #[error("{PREFIX}attacher.UnmountDevice failed: {0}")]
    Unstage(RpcError),
    #[error(
        "{PREFIX}mounter.SetupAt failed to check volume lifecycle mode: volume mode \"{mode}\" not supported by driver {driver} {why}"
    )]
    Life { mode: &'static str, driver: String, why: String },
    #[error("fetching {what} {namespace}/{name} failed: {why}")]
    Secret { what: &'static str, namespace: String, name: String, why: String },
    #[error("{PREFIX}mounter.SetUpAt failed to get service account token attributes: {0}")]
    Token(#[from] TokenError),
    #[error("volume {volume} has GET error for volume attachment {name}: {source}")]
    Attachment { volume: String, name: String, source: Box<ClientError> },
    #[error("cannot write the size of claim {name}: {source}")]
    Claim { name: String, source: Box<ClientError> },
    #[error("volume attachment is being deleted")]
    Detaching,
    /// What the attacher said.
    #[error("{0}")]
    NotAttached(String),
    #[error("kube client is not configured")]
    NoClient,
}
