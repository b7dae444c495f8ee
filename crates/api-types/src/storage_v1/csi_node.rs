//! CSINode and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// The CSI drivers on a node; its name is the node's.
#[api(kind = "CSINode", resource = "csinodes")]
pub struct CSINode {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The drivers.
    #[field(2, always, required)]
    pub spec: CSINodeSpec,
}

/// The CSI drivers on a node.
#[api]
pub struct CSINodeSpec {
    /// Each driver once.
    #[field(1, always, required, keys("name"), merge_key = "name", merge)]
    pub drivers: Vec<CSINodeDriver>,
}

/// A CSI driver on a node.
#[api]
pub struct CSINodeDriver {
    /// The driver's name.
    #[field(1, always, required)]
    pub name: String,
    /// What the driver calls the node.
    #[field(2, name = "nodeID", always, required)]
    pub node_id: String,
    /// Labels of the node that say where its volumes can be reached.
    #[field(3, always, atomic)]
    pub topology_keys: Vec<String>,
    /// How many volumes the node can have of the driver.
    #[field(4)]
    pub allocatable: Option<VolumeNodeResources>,
}

/// What a node can have of a driver's volumes.
#[api]
pub struct VolumeNodeResources {
    /// How many volumes; no limit where absent.
    #[field(1)]
    pub count: Option<i32>,
}
