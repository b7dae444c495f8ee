//! What pods and containers may use: control groups, limits, and what the node keeps for itself.

pub mod allocatable;
pub mod container;
pub mod cpu;
#[cfg(test)]
mod fake_units;
mod keeper;
mod memory_qos;
mod names;
mod node_usage;
mod oom;
mod pod;
mod pod_cgroups;
pub mod reserve;
pub mod swap;
mod systemd;
pub mod thresholds;
mod units;

pub use memory_qos::{KeptMemory, MemoryQos, MemoryReservation};
pub use names::{CgroupNames, Driver};
pub use node_usage::node_usage;
pub use pod::is_bounded;
pub use pod_cgroups::{CgroupSettings, ClassReserve, PodGroups, all_pods_limits};
pub use systemd::Systemd;
