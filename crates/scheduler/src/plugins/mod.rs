//! The plugins, one file each, and the table of all of them.

mod balanced_allocation;
mod default_binder;
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

use std::sync::Arc;

use crate::config::PluginArgs;
use crate::framework::Plugin;
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::preemption::{self, PreemptionGate};
use crate::writer::ClusterWriter;

/// What plugins are built with.
#[derive(Clone)]
pub struct BuildCx {
    /// Where bindings go.
    pub writer: Arc<dyn ClusterWriter>,
    /// Preemptions under way.
    pub gate: Arc<PreemptionGate>,
    /// Metrics.
    pub metrics: Arc<SchedulerMetrics>,
    /// The threads that plugins may use.
    pub parallelism: Parallelism,
}

/// How a plugin is built from its arguments.
type Build = fn(&BuildCx, &PluginArgs) -> Result<Plugin, String>;

/// A plugin that a configuration may name.
pub struct Descriptor {
    /// Its name.
    pub name: &'static str,
    /// The factor of its scores by default; 0 means 1, or that it gives none.
    pub weight: i32,
    /// How it is built.
    pub build: Build,
}

const fn plugin(name: &'static str, weight: i32, build: Build) -> Descriptor {
    Descriptor { name, weight, build }
}

/// All plugins, in the default order of every extension point.
pub const ALL: &[Descriptor] = &[
    plugin(scheduling_gates::NAME, 0, scheduling_gates::build),
    plugin(priority_sort::NAME, 0, priority_sort::build),
    plugin(node_unschedulable::NAME, 0, node_unschedulable::build),
    plugin(node_name::NAME, 0, node_name::build),
    plugin(taint_toleration::NAME, 3, taint_toleration::build),
    plugin(node_affinity::NAME, 2, node_affinity::build),
    plugin(node_ports::NAME, 0, node_ports::build),
    plugin(node_resources_fit::NAME, 1, node_resources_fit::build),
    plugin(pod_topology_spread::NAME, 2, pod_topology_spread::build),
    plugin(inter_pod_affinity::NAME, 2, inter_pod_affinity::build),
    plugin(preemption::NAME, 0, preemption::build),
    plugin(balanced_allocation::NAME, 1, balanced_allocation::build),
    plugin(image_locality::NAME, 1, image_locality::build),
    plugin(default_binder::NAME, 0, default_binder::build),
    plugin(node_declared_features::NAME, 0, node_declared_features::build),
];

/// The plugin that rejects nodes without room.
pub(crate) const FIT: &str = node_resources_fit::NAME;

/// Plugins that upstream has and this scheduler has not: a configuration may disable them and carry their arguments,
/// but not enable them by name.
pub(crate) const ABSENT: &[&str] =
    &["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources", "GangScheduling"];

#[cfg(test)]
pub(crate) use tests::{build_cx, default_profile};
