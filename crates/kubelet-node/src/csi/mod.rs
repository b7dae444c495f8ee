//! The drivers of volumes (CSI) on this node: who is registered ([`Drivers`]), and what the API knows of them (the CSINode
//! and the node's annotation and labels, [`CsiNodes`]).
//!
//! Drivers come as plugins ([`crate::plugins`]); volumes ask here for a driver's client. What is done to volumes is not
//! here. See <https://kubernetes-csi.github.io/docs/csi-node-object.html>.

mod counts;
mod driver_version;
mod drivers;
mod handler;
mod names;
mod nodes;

pub use counts::Counts;
pub use drivers::{Drivers, NotRegistered};
pub use handler::CsiHandler;
pub use names::{hash, unique_id};
pub use nodes::{CsiNodes, UNINITIALIZED, initialize};

/// How the words of the driver's side begin.
pub const PREFIX: &str = "kubernetes.io/csi: ";
