//! DaemonSet with the count of its template's changes as a field.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};

use crate::apps_v1::{DaemonSetStatus, DaemonSetUpdateStrategy};
use crate::core_v1::PodTemplateSpec;

/// Runs one pod on every matching node.
#[api(kind = "DaemonSet", resource = "daemonsets", namespaced)]
pub struct DaemonSet {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired pod and update behavior.
    #[field(2)]
    pub spec: DaemonSetSpec,
    /// Last observed state of the daemon set.
    #[field(3)]
    pub status: DaemonSetStatus,
}

/// The desired state of a daemon set.
#[api]
pub struct DaemonSetSpec {
    /// Selects the pods of the set; the labels of the template where it is absent.
    #[field(1)]
    pub selector: Option<LabelSelector>,
    /// Pod to run on every matching node.
    #[field(2, always)]
    pub template: PodTemplateSpec,
    /// How pods are replaced when the template changes.
    #[field(3)]
    pub update_strategy: DaemonSetUpdateStrategy,
    /// Seconds a pod must stay ready to count as available.
    #[field(4)]
    pub min_ready_seconds: i32,
    /// How often the template was changed.
    #[field(5)]
    pub template_generation: i64,
    /// Number of old revisions kept for rollback.
    #[field(6)]
    pub revision_history_limit: Option<i32>,
}
