//! RuntimeClass and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::core_v1::{ResourceList, Toleration};

/// Selects the container runtime setup for pods.
#[api(kind = "RuntimeClass", resource = "runtimeclasses")]
pub struct RuntimeClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Name of the runtime configuration on the node. Immutable.
    #[field(2, always, required)]
    pub handler: String,
    /// Extra resources that each pod of this class uses.
    #[field(3)]
    pub overhead: Option<Overhead>,
    /// Limits the pods to nodes that support the class.
    #[field(4)]
    pub scheduling: Option<Scheduling>,
}

/// Extra resources for running a pod.
#[api]
pub struct Overhead {
    /// Fixed resource amounts added to each pod.
    #[field(1, go = "v1.ResourceList")]
    pub pod_fixed: ResourceList,
}

/// Which nodes support a runtime class.
#[api]
pub struct Scheduling {
    /// Labels that supporting nodes carry, merged into the pod's own selector.
    #[field(1, atomic)]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations added to pods of the class.
    #[field(2)]
    pub tolerations: Vec<Toleration>,
}
