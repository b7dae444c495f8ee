//! Nodes to evict pods from.

use std::sync::Arc;

use crate::pod_info::PodInfo;

/// A node that could run the pod without some of its pods.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The node.
    pub node: Arc<str>,
    /// The pods to evict, the most important first.
    pub victims: Vec<Arc<PodInfo>>,
    /// How many of them a disruption budget protects.
    pub violations: usize,
}
