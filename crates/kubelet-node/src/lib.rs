//! The node as the API has it, and what it offers to pods.
//!
//! Status, lease and conditions of the node, control groups and what is reserved in them, what the kernel tells. Pods ask
//! for it through [`interfaces`]. Nothing here knows a pod's worker, a flag or a server.

pub mod cpus;
pub mod csi;
pub mod devices;
pub mod dra;
pub mod events;
mod go_dump;
pub mod host_rules;
pub mod interfaces;
pub mod memory;
pub mod node;
pub mod oom_watch;
pub mod plugins;
pub mod resources;
pub mod shutdown;
mod state_file;
pub mod topology;
pub mod turns;
pub mod user_namespaces;
pub mod versions;
