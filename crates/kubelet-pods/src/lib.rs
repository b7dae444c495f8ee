//! The way of a pod to its containers: sources, admission, workers, volumes, environments, images, probes, the runtime,
//! eviction, and what is collected afterwards.
//!
//! [`engine`] has the whole of it. Nothing here knows a flag or a server.

mod admission;
mod collect;
pub mod credentials;
pub mod dns;
pub mod engine;
mod env;
pub mod eviction;
mod file_calls;
mod hostname;
mod hosts;
pub mod metrics;
pub mod objects;
mod pleg;
mod pod;
pub mod pod_certificates;
mod probe;
pub mod runtime;
pub mod setup;
#[cfg(test)]
mod small_disk;
mod tokens;
pub mod trust_bundles;
pub mod volumes;

pub use admission::check_sysctl_pattern;
#[cfg(test)]
use kubelet_node::events;
use kubelet_node::{interfaces, node, resources};
