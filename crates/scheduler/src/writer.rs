//! What the scheduler writes: bindings, pod statuses and evictions. One trait, so that the scheduler runs without an
//! API server in tests and benchmarks.

use api_types::core_v1::{Pod, PodStatus};
use async_trait::async_trait;

/// Why a write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The pod is gone.
    #[error("{0}")]
    NotFound(String),
    /// Something else, in the API server's words.
    #[error("{0}")]
    Failed(String),
}

/// Writes to the cluster.
#[async_trait]
pub trait ClusterWriter: Send + Sync {
    /// Binds a pod to a node. Never repeated. Fails only where the pod is not on the node, as far as can be found out: its
    /// room is given away then, and the pod is tried again.
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError>;

    /// Changes a pod's status from what `pod` says to `status`; only the differences are written.
    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError>;

    /// Deletes a pod with its own grace period; one that has its name by now but is another stays.
    async fn delete(&self, pod: &Pod) -> Result<(), WriteError>;
}

/// How important an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For information.
    Normal,
    /// Something is wrong.
    Warning,
}

/// An event that people read.
#[derive(Debug, Clone)]
pub struct PodEvent<'a> {
    /// The scheduler name that reports it.
    pub scheduler: &'a str,
    /// The pod it is about.
    pub about: &'a Pod,
    /// Another pod that it has to do with.
    pub related: Option<&'a Pod>,
    /// How important it is.
    pub severity: Severity,
    /// Why, for machines.
    pub reason: &'static str,
    /// What the scheduler was doing.
    pub action: &'static str,
    /// The text.
    pub note: String,
}

/// Takes events; must not wait.
pub trait EventSink: Send + Sync {
    /// Takes one.
    fn event(&self, event: &PodEvent<'_>);
}

/// Drops events.
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _: &PodEvent<'_>) {}
}
