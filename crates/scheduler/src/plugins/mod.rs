//! The plugins, one file each, and the table of all of them.

mod balanced_allocation;
mod default_binder;
pub(crate) mod extender;
#[cfg(test)]
mod hint_tests;
mod image_locality;
mod inter_pod_affinity;
#[cfg(test)]
mod local_answers_tests;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod pod_topology_spread;
mod priority_sort;
mod resource_scores;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod tests;

use crate::framework::Descriptor;
use crate::preemption;

/// All plugins, in the default order of every extension point.
pub const ALL: &[Descriptor] = &[
    Descriptor::new(scheduling_gates::NAME, 0, scheduling_gates::build),
    Descriptor::new(priority_sort::NAME, 0, priority_sort::build),
    Descriptor::new(node_unschedulable::NAME, 0, node_unschedulable::build),
    Descriptor::new(node_name::NAME, 0, node_name::build),
    Descriptor::new(taint_toleration::NAME, 3, taint_toleration::build),
    Descriptor::new(node_affinity::NAME, 2, node_affinity::build),
    Descriptor::new(node_ports::NAME, 0, node_ports::build),
    Descriptor::new(node_resources_fit::NAME, 1, node_resources_fit::build),
    Descriptor::new(pod_topology_spread::NAME, 2, pod_topology_spread::build),
    Descriptor::new(inter_pod_affinity::NAME, 2, inter_pod_affinity::build),
    Descriptor::new(preemption::NAME, 0, preemption::build),
    Descriptor::new(balanced_allocation::NAME, 1, balanced_allocation::build),
    Descriptor::new(image_locality::NAME, 1, image_locality::build),
    Descriptor::new(default_binder::NAME, 0, default_binder::build),
    Descriptor::new(node_declared_features::NAME, 0, node_declared_features::build),
];

/// The plugin that rejects nodes without room.
pub(crate) const FIT: &str = node_resources_fit::NAME;

/// The plugins of upstream's default profile, and of its gates. A configuration may disable those that this scheduler has
/// not, and carry their arguments, but not enable them by name.
pub(crate) const UPSTREAM: &[&str] = &[
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "GangScheduling",
];

#[cfg(test)]
pub(crate) use tests::{build_cx, default_profile, default_profile_in};
