//! The node agent: runs the pods that are bound to its node through a container runtime, and speaks for the node.
//!
//! Two halves meet at [`border`]: the pod engine ([`engine`]) drives sandboxes and containers, the node side gives it
//! volumes, environments and control groups, reports the node, and serves the kubelet's own API.

mod admission;
pub mod border;
mod collect;
pub mod engine;
mod pleg;
mod pod;
mod probe;
mod runtime;
// node
mod certificates;
mod config;
mod dns;
pub mod env;
mod events;
mod eviction;
mod file_calls;
mod host;
mod host_rules;
mod hostname;
mod hosts;
pub mod metrics;
mod node;
mod objects;
mod oom_watch;
mod resources;
mod run;
mod server;
mod setup;
#[cfg(test)]
mod small_disk;
mod volumes;
mod watchdog;

pub use config::COMPONENT;
pub use run::run;
