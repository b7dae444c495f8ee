//! `bench-api`: the API server beside the limits of the machine it runs on.
//!
//! Creates are held against raw etcd transactions of the same bytes; reads and watches against a bare hyper server that
//! sends the same bytes. Server, store, peer and client are processes of their own.

pub mod bare;
mod create;
mod definitions;
mod deployments;
mod fan_out;
mod lease;
mod load;
mod options;
mod overload;
mod peer;
mod pods;
mod policies;
mod policy_objects;
mod reads;
mod run;
mod site;
mod soak;
pub mod webhook;
mod writes;

pub use definitions::definitions;
pub use lease::beside_lists;
pub use options::{Only, Options};
pub use overload::overload;
pub use policies::policies;
pub use run::run;
pub use soak::soak;
