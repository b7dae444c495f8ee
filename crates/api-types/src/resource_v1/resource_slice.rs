//! ResourceSlice and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;

use super::device::Device;
use crate::core_v1::NodeSelector;

/// Devices that one driver offers, or a part of them.
#[api(kind = "ResourceSlice", resource = "resourceslices")]
pub struct ResourceSlice {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What is offered, and where.
    #[field(2, always, required)]
    pub spec: ResourceSliceSpec,
}

/// A part of a pool of devices.
#[api]
pub struct ResourceSliceSpec {
    /// Name of the driver, a DNS subdomain of at most 63 characters. It never changes.
    #[field(1, always, required)]
    pub driver: String,
    /// The pool that the slice is a part of.
    #[field(2, always, required)]
    pub pool: ResourcePool,
    /// Node that has the devices. Excludes the other ways to say where they are; it never changes.
    #[field(3)]
    pub node_name: Option<String>,
    /// Nodes that can reach the devices, as one term.
    #[field(4)]
    pub node_selector: Option<NodeSelector>,
    /// Whether all nodes can reach the devices.
    #[field(5)]
    pub all_nodes: Option<bool>,
    /// The devices, at most 128; 64 where any has taints, counters or lists.
    #[field(6)]
    pub devices: Vec<Device>,
    /// Whether each device says for itself which nodes can reach it.
    #[field(7)]
    pub per_device_node_selection: Option<bool>,
    /// What devices of the pool share, at most 8 sets. Excludes devices.
    #[field(8)]
    pub shared_counters: Vec<CounterSet>,
}

/// The pool that a slice is a part of.
#[api]
pub struct ResourcePool {
    /// Name of the pool; often that of the node.
    #[field(1, always, required)]
    pub name: String,
    /// Counts changes of the pool. Slices of older generations do not count.
    #[field(2, always, required)]
    pub generation: i64,
    /// How many slices the generation has. The pool is not used before all are there.
    #[field(3, always, required)]
    pub resource_slice_count: i64,
}

/// Counters that several devices take from.
#[api]
pub struct CounterSet {
    /// Name of the set, unique in its pool.
    #[field(1, always, required)]
    pub name: String,
    /// The counters, at most 32.
    #[field(2, required)]
    pub counters: BTreeMap<String, Counter>,
}

/// An amount that can be taken from.
#[api]
pub struct Counter {
    /// How much there is.
    #[field(1, always, required)]
    pub value: Quantity,
}
