//! PodMetrics and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::{GoDuration, Time};

use crate::core_v1::ResourceList;

/// What the containers of a pod used on average over a window of time.
#[api(kind = "PodMetrics", resource = "pods", namespaced)]
pub struct PodMetrics {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The end of the window.
    #[field(2, always, required)]
    pub timestamp: Time,
    /// How long the window is.
    #[field(3, always, required)]
    pub window: GoDuration,
    /// What each container used.
    #[field(4, always, required, atomic)]
    pub containers: Vec<ContainerMetrics>,
}

/// What a container used.
#[api]
pub struct ContainerMetrics {
    /// Name of the container in the pod.
    #[field(1, always, required)]
    pub name: String,
    /// What was used of each resource.
    #[field(2, always, required)]
    pub usage: ResourceList,
}
