//! What pods and containers may use: control groups, limits, and what the node keeps for itself.

pub(crate) mod container;
pub(crate) mod cpu;
#[cfg(test)]
mod fake_units;
mod keeper;
mod names;
mod node_usage;
mod oom;
mod pod;
mod pod_cgroups;
pub(crate) mod reserve;
mod systemd;
pub(crate) mod thresholds;
mod units;

pub(crate) use names::{CgroupNames, Driver};
pub(crate) use node_usage::node_usage;
pub(crate) use pod_cgroups::{CgroupSettings, PodGroups, all_pods_limits};
pub(crate) use systemd::Systemd;
