//! RuntimeClass with a spec.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::node_v1::{Overhead, Scheduling};

/// Selects the container runtime setup for pods.
#[api(kind = "RuntimeClass", resource = "runtimeclasses")]
pub struct RuntimeClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the class is.
    #[field(2, always)]
    pub spec: RuntimeClassSpec,
}

/// What a runtime class is.
#[api]
pub struct RuntimeClassSpec {
    /// Name of the runtime configuration on the node.
    #[field(1, always)]
    pub runtime_handler: String,
    /// Extra resources that each pod of this class uses.
    #[field(2)]
    pub overhead: Option<Overhead>,
    /// Limits the pods to nodes that support the class.
    #[field(3)]
    pub scheduling: Option<Scheduling>,
}
