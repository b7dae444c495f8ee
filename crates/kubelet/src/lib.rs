//! The node agent: runs the pods that are bound to its node through a container runtime, and speaks for the node.
//!
//! The shell around two crates that do the work: flags and configuration, certificates, the kubelet's own API, and putting
//! all together. The node is `kubelet-node`, the way of a pod to its containers `kubelet-pods`.

mod certificates;
mod config;
mod extensions;
mod host;
mod pod_resources;
mod pods_api;
mod resource_managers;
mod run;
mod server;
mod shutdown;
mod traces;
mod volume_health;
mod watchdog;

pub use config::COMPONENT;
pub use run::run;

use kubelet_node::{csi, devices, dra, events, host_rules, interfaces, node, oom_watch, plugins, resources};
use kubelet_pods::{
    credentials, dns, engine, eviction, metrics, objects, pod_certificates, runtime, setup, trust_bundles, volumes,
};
