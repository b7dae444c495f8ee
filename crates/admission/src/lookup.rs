//! The cluster state that plugins look at. The API server answers from its caches, and from the store where it says
//! "live".

use std::sync::Arc;

use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, ServiceAccount};
use api_types::networking_v1::IngressClass;
use api_types::node_v1::RuntimeClass;
use api_types::scheduling_v1::PriorityClass;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;

/// What a plugin asks whether the caller may do it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group; empty for core.
    pub group: &'a str,
    /// The plural resource name.
    pub resource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
}

/// Reads of cluster state.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// A namespace as the cache has it.
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>>;
    /// A namespace as the store has it.
    async fn live_namespace(&self, name: &str) -> Result<Namespace, ApiError>;
    /// A service account as the cache has it.
    fn service_account(&self, namespace: &str, name: &str) -> Option<Arc<ServiceAccount>>;
    /// A service account as the store has it.
    async fn live_service_account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, ApiError>;
    /// A pod as the cache has it.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;
    /// The pods of a namespace as the cache has them.
    fn pods(&self, namespace: &str) -> Vec<Arc<Pod>>;
    /// A node as the cache has it.
    fn node(&self, name: &str) -> Option<Arc<Node>>;
    /// A claim as the cache has it.
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>>;
    /// The limit ranges of a namespace.
    async fn limit_ranges(&self, namespace: &str) -> Result<Vec<Arc<LimitRange>>, ApiError>;
    /// The quotas of a namespace, at least as new as this server's own last write of them.
    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError>;
    /// Writes the usage of a quota, if nobody else has written it since.
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError>;
    /// Every priority class.
    fn priority_classes(&self) -> Vec<Arc<PriorityClass>>;
    /// A runtime class.
    fn runtime_class(&self, name: &str) -> Option<Arc<RuntimeClass>>;
    /// A runtime class as the store has it.
    async fn live_runtime_class(&self, name: &str) -> Result<RuntimeClass, ApiError>;
    /// Every storage class.
    fn storage_classes(&self) -> Vec<Arc<StorageClass>>;
    /// Every ingress class.
    fn ingress_classes(&self) -> Vec<Arc<IngressClass>>;
    /// Whether the caller may do something else, which some plugins ask.
    fn is_allowed(&self, user: &UserInfo, wish: &Wish<'_>) -> bool;
}
