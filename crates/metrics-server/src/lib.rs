//! What nodes and pods use right now, as API `metrics.k8s.io/v1beta1` behind the API server: for `kubectl top`, for
//! autoscalers, for people.
//!
//! Every node's kubelet is asked once in a period ([`kubelet`]); of what it tells ([`exposition`]) the last two points are
//! kept ([`usage`]), whose difference is the usage over a window. Nothing is kept on disk, and several servers may run side by
//! side. <https://github.com/kubernetes-sigs/metrics-server> is what it stands in for, by the same names and flags.

mod addresses;
mod answers;
mod component;
mod endpoint;
mod exposition;
mod kubelet;
mod metrics;
mod options;
mod query;
#[cfg(test)]
mod tests;
mod usage;

pub use component::{COMPONENT, run};
