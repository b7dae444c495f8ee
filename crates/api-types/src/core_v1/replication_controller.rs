//! ReplicationController and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::PodTemplateSpec;

/// Keeps a set number of pod copies running.
#[api(kind = "ReplicationController", resource = "replicationcontrollers", namespaced)]
pub struct ReplicationController {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted state of the controller.
    #[field(2)]
    pub spec: ReplicationControllerSpec,
    /// Current state of the controller, set by the system.
    #[field(3)]
    pub status: ReplicationControllerStatus,
}

/// Describes a replication controller.
#[api]
pub struct ReplicationControllerSpec {
    /// Number of pods wanted; default 1.
    #[field(1, default = "1")]
    pub replicas: Option<i32>,
    /// Seconds a pod must stay ready to count as available; default 0.
    #[field(4, default = "0")]
    pub min_ready_seconds: i32,
    /// Labels of the pods to manage; default comes from the template.
    #[field(2, atomic)]
    pub selector: BTreeMap<String, String>,
    /// Template of the pods to create when too few exist.
    #[field(3)]
    pub template: Option<PodTemplateSpec>,
}

/// Current state of a replication controller.
#[api]
pub struct ReplicationControllerStatus {
    /// Number of pods last observed.
    #[field(1, always, required)]
    pub replicas: i32,
    /// Number of pods that have all labels of the template.
    #[field(2)]
    pub fully_labeled_replicas: i32,
    /// Number of ready pods.
    #[field(4)]
    pub ready_replicas: i32,
    /// Number of pods ready for at least minReadySeconds.
    #[field(5)]
    pub available_replicas: i32,
    /// Generation the controller last acted on.
    #[field(3)]
    pub observed_generation: i64,
    /// Current conditions of the controller.
    #[field(6, merge_key = "type")]
    pub conditions: Vec<ReplicationControllerCondition>,
}

/// One observed condition of a replication controller.
#[api]
pub struct ReplicationControllerCondition {
    /// Condition type, for example ReplicaFailure.
    #[field(1, always, required, go = "v1.ReplicationControllerConditionType")]
    pub type_: String,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the condition last changed its status.
    #[field(3)]
    pub last_transition_time: Time,
    /// Short reason for the last change.
    #[field(4)]
    pub reason: String,
    /// Human-readable details about the last change.
    #[field(5)]
    pub message: String,
}
