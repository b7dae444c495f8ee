//! What pods and containers may use: control groups, limits, and what the node keeps for itself.

pub(crate) mod container;
pub(crate) mod cpu;
mod names;
mod node_usage;
mod oom;
mod pod;
mod pod_cgroups;
pub(crate) mod reserve;
pub(crate) mod thresholds;

pub(crate) use names::{CgroupNames, Driver};
pub(crate) use node_usage::node_usage;
pub(crate) use pod_cgroups::{CgroupSettings, PodGroups, all_pods_limits};
