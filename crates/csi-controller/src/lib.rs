//! What a cluster asks of the controller of a CSI driver, whoever wrote that: volumes are made for claims ([`provision`]) and
//! removed ([`reclaim`]), attached to nodes ([`attach`]), grown and changed ([`resize`]), snapshots taken of them
//! ([`snapshot`]), and the room for more is told to the scheduler ([`capacity`]).
//!
//! It does the work of upstream's external-provisioner, -attacher, -resizer, -snapshotter and of the snapshot controller in one
//! process, by their annotations, finalizers and events. All that it knows is in the cluster and in the driver: every call of
//! a driver is idempotent, so that who is killed in the middle begins anew and finds what was done.
//!
//! It runs once for a driver, elected, or on each node for a driver that serves its own node only (`--node-deployment`).
//! Without a driver (`--csi-address=`) it is the part of snapshots that all drivers share.

mod attach;
mod capacity;
mod component;
mod driver;
mod finalizers;
mod metrics;
mod names;
mod notice;
mod place;
mod provision;
mod reclaim;
mod resize;
mod secrets;
mod settings;
mod snapshot;
#[cfg(test)]
mod tests;
mod topology;

pub use component::{COMMON, COMPONENT, OF_DRIVER, run};
pub use driver::Driver;
pub use settings::{Place, Settings};
