//! StatefulSet and what it is made of.

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use super::constants::{pod_management_policy_type, stateful_set_update_strategy_type};
use crate::core_v1::{PersistentVolumeClaim, PodTemplateSpec};

/// Runs pods with stable names, stable storage and a fixed order.
#[api(kind = "StatefulSet", resource = "statefulsets", namespaced)]
pub struct StatefulSet {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired pods, storage and update behavior.
    #[field(2)]
    pub spec: StatefulSetSpec,
    /// Last observed state of the set.
    #[field(3)]
    pub status: StatefulSetStatus,
}

/// The desired state of a stateful set.
#[api]
pub struct StatefulSetSpec {
    /// Wanted number of pods. Default is 1.
    #[field(1, fill = "1")]
    pub replicas: Option<i32>,
    /// Selects the pods of the set; must match the template labels.
    #[field(2, always, required)]
    pub selector: Option<LabelSelector>,
    /// Pod to create for each ordinal of the set.
    #[field(3, always, required)]
    pub template: PodTemplateSpec,
    /// Claims created for each pod, mounted by matching volume names.
    #[field(4)]
    pub volume_claim_templates: Vec<PersistentVolumeClaim>,
    /// Name of the headless service that gives pods their network identity.
    #[field(5, always)]
    pub service_name: String,
    /// OrderedReady (default) starts pods one by one, Parallel all at once.
    #[field(6, fill = "\"OrderedReady\"", go = "v1.PodManagementPolicyType", values = pod_management_policy_type::ALL)]
    pub pod_management_policy: String,
    /// How pods are replaced when the template changes.
    #[field(7)]
    pub update_strategy: StatefulSetUpdateStrategy,
    /// Number of old revisions kept for rollback. Default is 10.
    #[field(8, fill = "10")]
    pub revision_history_limit: Option<i32>,
    /// Seconds a pod must stay ready to count as available. Default is 0.
    #[field(9)]
    pub min_ready_seconds: i32,
    /// Whether claims are kept when pods or the set go away.
    #[field(10, fill = "{\"whenDeleted\": \"Retain\", \"whenScaled\": \"Retain\"}")]
    pub persistent_volume_claim_retention_policy: Option<StatefulSetPersistentVolumeClaimRetentionPolicy>,
    /// How pod ordinals are numbered. Numbering starts at 0 by default.
    #[field(11)]
    pub ordinals: Option<StatefulSetOrdinals>,
}

/// How pods are replaced when the template changes.
#[api]
pub struct StatefulSetUpdateStrategy {
    /// RollingUpdate (default) replaces pods automatically, OnDelete waits for manual deletion.
    #[field(
        1,
        fill = "\"RollingUpdate\"",
        go = "v1.StatefulSetUpdateStrategyType",
        values = stateful_set_update_strategy_type::ALL
    )]
    pub type_: String,
    /// Settings of the rolling update, used only with type RollingUpdate.
    #[field(2)]
    pub rolling_update: Option<RollingUpdateStatefulSetStrategy>,
}

/// Settings for a rolling update of a stateful set.
#[api]
pub struct RollingUpdateStatefulSetStrategy {
    /// Ordinal from which pods are updated; lower ones stay. Default is 0.
    #[field(1)]
    pub partition: Option<i32>,
    /// Most pods that may be down, as number or percentage. Default is 1.
    #[field(2)]
    pub max_unavailable: Option<IntOrString>,
}

/// What happens to claims made from volumeClaimTemplates.
#[api]
pub struct StatefulSetPersistentVolumeClaimRetentionPolicy {
    /// Fate of claims when the set is deleted: Retain (default) or Delete.
    #[field(1, fill = "\"Retain\"", go = "v1.PersistentVolumeClaimRetentionPolicyType")]
    pub when_deleted: String,
    /// Fate of claims of pods scaled away: Retain (default) or Delete.
    #[field(2, fill = "\"Retain\"", go = "v1.PersistentVolumeClaimRetentionPolicyType")]
    pub when_scaled: String,
}

/// How pod ordinals are numbered.
#[api]
pub struct StatefulSetOrdinals {
    /// First ordinal of the set. Default is 0.
    #[field(1, always)]
    pub start: i32,
}

/// The observed state of a stateful set.
#[api]
pub struct StatefulSetStatus {
    /// Latest generation the controller acts on.
    #[field(1)]
    pub observed_generation: i64,
    /// Number of pods that exist.
    #[field(2, always, required)]
    pub replicas: i32,
    /// Number of pods that are ready.
    #[field(3)]
    pub ready_replicas: i32,
    /// Number of pods at the current revision.
    #[field(4)]
    pub current_replicas: i32,
    /// Number of pods at the update revision.
    #[field(5)]
    pub updated_replicas: i32,
    /// Revision name of the pods that are not yet updated.
    #[field(6)]
    pub current_revision: String,
    /// Revision name of the pods that are updated.
    #[field(7)]
    pub update_revision: String,
    /// Number of name hash collisions, used to name new revisions.
    #[field(9)]
    pub collision_count: Option<i32>,
    /// Latest observed conditions of the set.
    #[field(10, merge_key = "type")]
    pub conditions: Vec<StatefulSetCondition>,
    /// Number of pods ready for at least minReadySeconds.
    #[field(11, always)]
    pub available_replicas: i32,
}

/// One observed aspect of a stateful set.
#[api]
pub struct StatefulSetCondition {
    /// Name of the condition.
    #[field(1, always, required, go = "v1.StatefulSetConditionType")]
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
