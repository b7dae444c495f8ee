//! CSIStorageCapacity.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::quantity::Quantity;

/// What a CSI driver can still provide of a class in a part of the cluster.
#[api(kind = "CSIStorageCapacity", resource = "csistoragecapacities", namespaced)]
pub struct CSIStorageCapacity {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The nodes that can use it; none where absent. Immutable.
    #[field(2)]
    pub node_topology: Option<LabelSelector>,
    /// The class. Immutable.
    #[field(3, always, required)]
    pub storage_class_name: String,
    /// How much there is; unknown where absent.
    #[field(4)]
    pub capacity: Option<Quantity>,
    /// The largest volume that can be made.
    #[field(5)]
    pub maximum_volume_size: Option<Quantity>,
}
