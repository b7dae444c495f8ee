//! A CSI driver for volumes on the node's own disk: a filesystem volume is a directory, a block volume is an image behind
//! a loop device. See <https://github.com/container-storage-interface/spec/blob/v1.12.0/spec.md>.
//!
//! One process serves identity, controller and node at one socket, on each node for the volumes of that node: what it
//! makes is reachable from there alone, and it says so as topology. What is on disk is the truth ([`store`]): a volume
//! comes and goes by one rename, so that a process that is killed leaves all of it or nothing. A call goes on when its
//! caller does not wait any more, and who asks again meanwhile is told to come back (`ABORTED`).
//!
//! Room is counted by what volumes may hold, not enforced: directories share a filesystem, as with hostPath.

mod busy;
mod capability;
mod controller;
mod driver;
mod identity;
mod listing;
mod loops;
mod node;
mod record;
mod registration;
mod run;
mod size;
mod snapshots;
mod store;
#[cfg(test)]
mod tests;
mod usage;

pub use driver::{Driver, Machine, Settings};
pub use run::main;
