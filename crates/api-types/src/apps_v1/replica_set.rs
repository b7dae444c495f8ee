//! ReplicaSet and what it is made of.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use crate::core_v1::PodTemplateSpec;

/// Keeps a given number of identical pods running.
#[api(kind = "ReplicaSet", resource = "replicasets", namespaced)]
pub struct ReplicaSet {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired pods and their count.
    #[field(2)]
    pub spec: ReplicaSetSpec,
    /// Last observed state of the replica set.
    #[field(3)]
    pub status: ReplicaSetStatus,
}

/// The desired state of a replica set.
#[api]
pub struct ReplicaSetSpec {
    /// Wanted number of pods. Default is 1.
    #[field(1, fill = "1")]
    pub replicas: Option<i32>,
    /// Seconds a pod must stay ready to count as available. Default is 0.
    #[field(4)]
    pub min_ready_seconds: i32,
    /// Selects the pods of the set; must match the template and is immutable.
    #[field(2, always, required)]
    pub selector: Option<LabelSelector>,
    /// Pod to create when there are too few.
    #[field(3)]
    pub template: PodTemplateSpec,
}

/// The observed state of a replica set.
#[api]
pub struct ReplicaSetStatus {
    /// Number of pods that are not terminating.
    #[field(1, always, required)]
    pub replicas: i32,
    /// Number of pods that carry all labels of the template.
    #[field(2)]
    pub fully_labeled_replicas: i32,
    /// Number of pods that are ready.
    #[field(4)]
    pub ready_replicas: i32,
    /// Number of pods ready for at least minReadySeconds.
    #[field(5)]
    pub available_replicas: i32,
    /// Number of pods that are shutting down.
    #[field(7)]
    pub terminating_replicas: Option<i32>,
    /// Latest generation the controller acts on.
    #[field(3)]
    pub observed_generation: i64,
    /// Latest observed conditions of the set.
    #[field(6, merge_key = "type")]
    pub conditions: Vec<ReplicaSetCondition>,
}

/// One observed aspect of a replica set.
#[api]
pub struct ReplicaSetCondition {
    /// Name of the condition, such as ReplicaFailure.
    #[field(1, always, required, go = "v1.ReplicaSetConditionType")]
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
