//! A device, as its driver offers it.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

use super::constants::device_taint_effect;
use super::resource_slice::Counter;
use crate::core_v1::NodeSelector;

/// One device, with what it is and what it has.
#[api]
pub struct Device {
    /// Name of the device, unique in its pool.
    #[field(1, always, required)]
    pub name: String,
    /// What the device is, by name. With capacities at most 32.
    #[field(2, go = "map[v1.QualifiedName]v1.DeviceAttribute")]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// What the device has, by name.
    #[field(3, go = "map[v1.QualifiedName]v1.DeviceCapacity")]
    pub capacity: BTreeMap<String, DeviceCapacity>,
    /// What it takes from counters of its pool, at most 2 sets.
    #[field(4)]
    pub consumes_counters: Vec<DeviceCounterConsumption>,
    /// Node that has it, where each device says so.
    #[field(5)]
    pub node_name: Option<String>,
    /// Nodes that can reach it, where each device says so.
    #[field(6)]
    pub node_selector: Option<NodeSelector>,
    /// Whether all nodes can reach it, where each device says so.
    #[field(7)]
    pub all_nodes: Option<bool>,
    /// Taints of the device, at most 16.
    #[field(8)]
    pub taints: Vec<DeviceTaint>,
    /// Whether a claim is bound to its pod's node, though others could reach the device.
    #[field(9)]
    pub binds_to_node: Option<bool>,
    /// Conditions that must hold before pods are bound, at most 4.
    #[field(10)]
    pub binding_conditions: Vec<String>,
    /// Conditions of which any gives the device up, at most 4.
    #[field(11)]
    pub binding_failure_conditions: Vec<String>,
    /// Whether several claims can have parts of it.
    #[field(12)]
    pub allow_multiple_allocations: Option<bool>,
    /// What goes with it of what the node has.
    #[field(13, go = "map[v1.ResourceName]v1.NodeAllocatableResourceMapping")]
    pub node_allocatable_resource_mappings: BTreeMap<String, NodeAllocatableResourceMapping>,
}

/// A value that describes a device. Exactly one form is set.
#[api]
pub struct DeviceAttribute {
    /// A number.
    #[field(2)]
    pub int: Option<i64>,
    /// A truth.
    #[field(3)]
    pub bool: Option<bool>,
    /// A text of at most 64 bytes.
    #[field(4)]
    pub string: Option<String>,
    /// A version as semver.org has it.
    #[field(5)]
    pub version: Option<String>,
    /// Numbers.
    #[field(6)]
    pub ints: Vec<i64>,
    /// Truths.
    #[field(7)]
    pub bools: Vec<bool>,
    /// Texts.
    #[field(8)]
    pub strings: Vec<String>,
    /// Versions.
    #[field(9)]
    pub versions: Vec<String>,
}

/// An amount that a device has.
#[api]
pub struct DeviceCapacity {
    /// How much there is.
    #[field(1, always, required)]
    pub value: Quantity,
    /// Which parts of it can be asked for, where the device is shared.
    #[field(2)]
    pub request_policy: Option<CapacityRequestPolicy>,
}

/// Which parts of a capacity can be asked for.
#[api]
pub struct CapacityRequestPolicy {
    /// Part that requests take that ask for none.
    #[field(1, always)]
    pub default: Option<Quantity>,
    /// The possible parts, ascending, at most 10. Excludes validRange.
    #[field(3)]
    pub valid_values: Vec<Quantity>,
    /// Range of the possible parts. Excludes validValues.
    #[field(4)]
    pub valid_range: Option<CapacityRequestPolicyRange>,
}

/// A range of amounts.
#[api]
pub struct CapacityRequestPolicyRange {
    /// The least.
    #[field(1, required)]
    pub min: Option<Quantity>,
    /// The most; all of the capacity without it.
    #[field(2)]
    pub max: Option<Quantity>,
    /// What parts are multiples of, counted from the least.
    #[field(3)]
    pub step: Option<Quantity>,
}

/// What a device takes from counters.
#[api]
pub struct DeviceCounterConsumption {
    /// Name of the set of counters.
    #[field(1, always, required)]
    pub counter_set: String,
    /// How much it takes from each, at most 32.
    #[field(2, required)]
    pub counters: BTreeMap<String, Counter>,
}

/// How much of what a node has goes with a device.
#[api]
pub struct NodeAllocatableResourceMapping {
    /// Capacity of the device that is taken as the amount.
    #[field(1, go = "v1.QualifiedName")]
    pub capacity_key: Option<String>,
    /// What the amount is multiplied by; without a capacity the amount itself.
    #[field(2)]
    pub allocation_multiplier: Option<Quantity>,
}

/// Keeps off claims that do not tolerate it.
#[api]
pub struct DeviceTaint {
    /// Name of the taint.
    #[field(1, always, required)]
    pub key: String,
    /// Value of the taint.
    #[field(2)]
    pub value: String,
    /// What it does: None, NoSchedule or NoExecute, which also evicts pods.
    #[field(3, always, required, go = "v1.DeviceTaintEffect", values = device_taint_effect::ALL)]
    pub effect: String,
    /// Time at which the taint was added; set by the server where nobody does.
    #[field(4)]
    pub time_added: Option<Time>,
}
