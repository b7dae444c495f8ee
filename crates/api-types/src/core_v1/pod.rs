//! Pod.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{PodSpec, PodStatus};

/// A group of containers that run together on one node.
#[api(kind = "Pod", resource = "pods", namespaced)]
pub struct Pod {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the pod should run and how.
    #[field(2)]
    pub spec: PodSpec,
    /// Current state of the pod, set by the system.
    #[field(3)]
    pub status: PodStatus,
}
