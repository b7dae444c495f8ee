//! Config maps and secrets that pods refer to.

mod cache;
#[cfg(test)]
mod fixed;

use std::sync::Arc;

use api_types::core_v1::{ConfigMap, Secret};
use async_trait::async_trait;
use client::ClientError;

use crate::interfaces::SideError;
pub use cache::{ApiObjects, Strategy};
#[cfg(test)]
pub use fixed::FixedObjects;

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// There is no API server, and there will be none.
    #[error("kube client is not configured")]
    NoClient,
    #[error(transparent)]
    Read(#[from] ClientError),
    /// The watch has shown nothing yet; it goes on, and a later read finds what it has.
    #[error("failed to sync {kind} cache: timed out waiting for the condition")]
    NotSynced {
        /// What is watched.
        kind: &'static str,
    },
    #[error("the kubelet is shutting down")]
    Ending,
}

impl From<ObjectError> for SideError {
    fn from(error: ObjectError) -> Self {
        Self::new(error.to_string())
    }
}

/// Reads objects by name; `None` where there is none.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// A config map.
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, ObjectError>;

    /// A secret.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, ObjectError>;
}

/// The objects of a kubelet without an API server.
pub struct NoObjects;

#[async_trait]
impl Objects for NoObjects {
    async fn config_map(&self, _: &str, _: &str) -> Result<Option<Arc<ConfigMap>>, ObjectError> {
        Err(ObjectError::NoClient)
    }

    async fn secret(&self, _: &str, _: &str) -> Result<Option<Arc<Secret>>, ObjectError> {
        Err(ObjectError::NoClient)
    }
}
