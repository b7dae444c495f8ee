//! The plugins, one file each, and the table of all of them.

mod attach_room;
mod balanced_allocation;
mod default_binder;
mod dynamic_resources;
pub(crate) mod extender;
mod gang_scheduling;
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
mod node_volume_limits;
mod pod_group_pods_count;
mod pod_topology_spread;
mod priority_sort;
mod resource_scores;
mod scheduling_gates;
mod storage;
mod taint_toleration;
#[cfg(test)]
mod tests;
mod topology_placement;
mod volume_binding;
mod volume_restrictions;
#[cfg(test)]
mod volume_tests;
mod volume_zone;

use component_base::Feature;
use component_base::shared_gates::{
    COMPARING_TOLERATIONS, DECLARED_FEATURES, SPREAD_BY_LABEL_KEYS, VOLUME_LIMIT_SCALING,
};

use crate::framework::{Descriptor, GANG_SCHEDULING, GENERIC_WORKLOAD, GROUP_PREEMPTION, TOPOLOGY_AWARE_GROUPS};
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
    Descriptor::new(volume_restrictions::NAME, 0, volume_restrictions::build),
    Descriptor::new(node_volume_limits::NAME, 0, node_volume_limits::build),
    Descriptor::new(volume_binding::NAME, 0, volume_binding::build),
    Descriptor::new(volume_zone::NAME, 0, volume_zone::build),
    Descriptor::new(pod_topology_spread::NAME, 2, pod_topology_spread::build),
    Descriptor::new(inter_pod_affinity::NAME, 2, inter_pod_affinity::build),
    Descriptor::new(dynamic_resources::NAME, 2, dynamic_resources::build),
    Descriptor::new(preemption::NAME, 0, preemption::build),
    Descriptor::new(balanced_allocation::NAME, 1, balanced_allocation::build),
    Descriptor::new(image_locality::NAME, 1, image_locality::build),
    Descriptor::new(default_binder::NAME, 0, default_binder::build),
    Descriptor::new(node_declared_features::NAME, 0, node_declared_features::build).when_on(DECLARED_FEATURES),
    Descriptor::new(gang_scheduling::NAME, 0, gang_scheduling::build).when_on(GANG_SCHEDULING),
    Descriptor::new(topology_placement::NAME, 0, topology_placement::build).when_on(TOPOLOGY_AWARE_GROUPS),
    Descriptor::new(pod_group_pods_count::NAME, 1, pod_group_pods_count::build).when_on(TOPOLOGY_AWARE_GROUPS),
];

/// The gates of volume plugins that have both sides.
pub(crate) const VOLUME_GATES: &[Feature] = &[CAPACITY_SCORING, VOLUME_LIMIT_SCALING];

/// The gates of what pods say of nodes, and of the pods on them.
pub(crate) const PLACING_GATES: &[Feature] = &[COMPARING_TOLERATIONS, DECLARED_FEATURES, SPREAD_BY_LABEL_KEYS];

/// The plugin that rejects nodes without room.
pub(crate) const FIT: &str = node_resources_fit::NAME;

/// The gates of groups of pods that have both sides.
pub(crate) const GROUP_GATES: &[Feature] =
    &[GENERIC_WORKLOAD, GANG_SCHEDULING, GROUP_PREEMPTION, TOPOLOGY_AWARE_GROUPS];

pub(crate) use dynamic_resources::{FILTER_TIMEOUT, GATES as DEVICE_GATES, claimed_on};
pub(crate) use gang_scheduling::{NAME as GANG, min_count as gang_min_count};
#[cfg(test)]
pub(crate) use tests::{build_cx, default_profile, default_profile_in};
pub(crate) use volume_binding::CAPACITY_SCORING;
