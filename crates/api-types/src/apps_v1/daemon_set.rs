//! DaemonSet and what it is made of.

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use super::constants::daemon_set_update_strategy_type;
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
    /// Selects the pods of the set; must match the template and is immutable.
    #[field(1, always, required)]
    pub selector: Option<LabelSelector>,
    /// Pod to run on every matching node. Its restart policy must be Always.
    #[field(2, always, required)]
    pub template: PodTemplateSpec,
    /// How pods are replaced when the template changes.
    #[field(3)]
    pub update_strategy: DaemonSetUpdateStrategy,
    /// Seconds a pod must stay ready to count as available. Default is 0.
    #[field(4)]
    pub min_ready_seconds: i32,
    /// Number of old revisions kept for rollback. Default is 10.
    #[field(6, fill = "10")]
    pub revision_history_limit: Option<i32>,
}

/// How daemon pods are replaced when the template changes.
#[api]
pub struct DaemonSetUpdateStrategy {
    /// RollingUpdate (default) replaces pods automatically, OnDelete waits for manual deletion.
    #[field(
        1,
        fill = "\"RollingUpdate\"",
        go = "v1.DaemonSetUpdateStrategyType",
        values = daemon_set_update_strategy_type::ALL
    )]
    pub type_: String,
    /// Settings of the rolling update, used only with type RollingUpdate.
    #[field(2)]
    pub rolling_update: Option<RollingUpdateDaemonSet>,
}

/// Settings for a rolling update of a daemon set.
#[api]
pub struct RollingUpdateDaemonSet {
    /// Most nodes without a running pod, as number or percentage. Default is 1.
    #[field(1, fill = "1")]
    pub max_unavailable: Option<IntOrString>,
    /// Most nodes with an extra new pod during update. Default is 0.
    #[field(2, fill = "0")]
    pub max_surge: Option<IntOrString>,
}

/// The observed state of a daemon set.
#[api]
pub struct DaemonSetStatus {
    /// Number of matching nodes that run at least one daemon pod.
    #[field(1, always, required)]
    pub current_number_scheduled: i32,
    /// Number of nodes that run a daemon pod but should not.
    #[field(2, always, required)]
    pub number_misscheduled: i32,
    /// Number of nodes that should run a daemon pod.
    #[field(3, always, required)]
    pub desired_number_scheduled: i32,
    /// Number of matching nodes whose daemon pod is ready.
    #[field(4, always, required)]
    pub number_ready: i32,
    /// Latest generation the controller acts on.
    #[field(5)]
    pub observed_generation: i64,
    /// Number of nodes that run a pod with the current template.
    #[field(6)]
    pub updated_number_scheduled: i32,
    /// Number of nodes with a pod ready for at least minReadySeconds.
    #[field(7)]
    pub number_available: i32,
    /// Number of matching nodes without an available daemon pod.
    #[field(8)]
    pub number_unavailable: i32,
    /// Number of name hash collisions, used to name new revisions.
    #[field(9)]
    pub collision_count: Option<i32>,
    /// Latest observed conditions of the set.
    #[field(10, merge_key = "type")]
    pub conditions: Vec<DaemonSetCondition>,
}

/// One observed aspect of a daemon set.
#[api]
pub struct DaemonSetCondition {
    /// Name of the condition.
    #[field(1, always, required, go = "v1.DaemonSetConditionType")]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Time at which the status last changed.
    #[field(3)]
    pub last_transition_time: Time,
    /// Short machine-readable reason for the last change.
    #[field(4)]
    pub reason: String,
    /// Text for people about the last change.
    #[field(5)]
    pub message: String,
}
