//! Config maps and secrets that pods refer to.

mod cache;
#[cfg(test)]
mod fixed;

use std::sync::Arc;

use api_types::core_v1::{ConfigMap, Secret};
use async_trait::async_trait;

use crate::interfaces::SideError;
pub use cache::{ApiObjects, Strategy};
#[cfg(test)]
pub use fixed::FixedObjects;

/// Reads objects by name; `None` where there is none.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// A config map.
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, SideError>;

    /// A secret.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, SideError>;
}

/// The objects of a kubelet without an API server.
pub struct NoObjects;

#[async_trait]
impl Objects for NoObjects {
    async fn config_map(&self, _: &str, _: &str) -> Result<Option<Arc<ConfigMap>>, SideError> {
        Err(SideError::new("kube client is not configured"))
    }

    async fn secret(&self, _: &str, _: &str) -> Result<Option<Arc<Secret>>, SideError> {
        Err(SideError::new("kube client is not configured"))
    }
}
