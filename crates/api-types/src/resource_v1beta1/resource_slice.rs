//! ResourceSlice as it was first.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::core_v1::NodeSelector;
use crate::resource_v1::{
    CounterSet, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption, DeviceTaint, NodeAllocatableResourceMapping,
    ResourcePool,
};

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
    pub node_name: String,
    /// Nodes that can reach the devices, as one term.
    #[field(4)]
    pub node_selector: Option<NodeSelector>,
    /// Whether all nodes can reach the devices.
    #[field(5)]
    pub all_nodes: bool,
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

/// One device, with what it is and what it has.
#[api]
pub struct Device {
    /// Name of the device, unique in its pool.
    #[field(1, always, required)]
    pub name: String,
    /// The device.
    #[field(2)]
    pub basic: Option<BasicDevice>,
}

/// What a device is and has.
#[api]
pub struct BasicDevice {
    /// What the device is, by name. With capacities at most 32.
    #[field(1, go = "map[v1beta1.QualifiedName]v1beta1.DeviceAttribute")]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// What the device has, by name.
    #[field(2, go = "map[v1beta1.QualifiedName]v1beta1.DeviceCapacity")]
    pub capacity: BTreeMap<String, DeviceCapacity>,
    /// What it takes from counters of its pool, at most 2 sets.
    #[field(3)]
    pub consumes_counters: Vec<DeviceCounterConsumption>,
    /// Node that has it, where each device says so.
    #[field(4)]
    pub node_name: Option<String>,
    /// Nodes that can reach it, where each device says so.
    #[field(5)]
    pub node_selector: Option<NodeSelector>,
    /// Whether all nodes can reach it, where each device says so.
    #[field(6)]
    pub all_nodes: Option<bool>,
    /// Taints of the device, at most 16.
    #[field(7)]
    pub taints: Vec<DeviceTaint>,
    /// Whether a claim is bound to its pod's node, though others could reach the device.
    #[field(8)]
    pub binds_to_node: Option<bool>,
    /// Conditions that must hold before pods are bound, at most 4.
    #[field(9)]
    pub binding_conditions: Vec<String>,
    /// Conditions of which any gives the device up, at most 4.
    #[field(10)]
    pub binding_failure_conditions: Vec<String>,
    /// Whether several claims can have parts of it.
    #[field(11)]
    pub allow_multiple_allocations: Option<bool>,
    /// What goes with it of what the node has.
    #[field(12, go = "map[v1.ResourceName]v1beta1.NodeAllocatableResourceMapping")]
    pub node_allocatable_resource_mappings: BTreeMap<String, NodeAllocatableResourceMapping>,
}
