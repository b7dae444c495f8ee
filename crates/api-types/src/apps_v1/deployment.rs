//! Deployment and what it is made of.

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use super::constants::deployment_strategy_type;
use crate::core_v1::PodTemplateSpec;

/// Keeps a set of identical pods running and rolls out changes.
#[api(kind = "Deployment", resource = "deployments", namespaced)]
pub struct Deployment {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired pods and rollout behavior.
    #[field(2)]
    pub spec: DeploymentSpec,
    /// Last observed state of the deployment.
    #[field(3)]
    pub status: DeploymentStatus,
}

/// The desired state of a deployment.
#[api]
pub struct DeploymentSpec {
    /// Wanted number of pods. Default is 1.
    #[field(1, fill = "1")]
    pub replicas: Option<i32>,
    /// Selects the pods of the deployment; must match the template and is immutable.
    #[field(2, always, required)]
    pub selector: Option<LabelSelector>,
    /// Pod to create. Its restart policy must be Always.
    #[field(3, always, required)]
    pub template: PodTemplateSpec,
    /// How old pods are replaced by new ones.
    #[field(4, retain_keys)]
    pub strategy: DeploymentStrategy,
    /// Seconds a pod must stay ready to count as available. Default is 0.
    #[field(5)]
    pub min_ready_seconds: i32,
    /// Number of old replica sets kept for rollback. Default is 10.
    #[field(6, fill = "10")]
    pub revision_history_limit: Option<i32>,
    /// Whether rollouts are on hold.
    #[field(7)]
    pub paused: bool,
    /// Seconds without progress before a rollout counts as failed. Default is 600.
    #[field(9, fill = "600")]
    pub progress_deadline_seconds: Option<i32>,
}

/// How old pods are replaced by new ones.
#[api]
pub struct DeploymentStrategy {
    /// RollingUpdate (default) replaces gradually, Recreate stops all old pods first.
    #[field(1, fill = "\"RollingUpdate\"", go = "v1.DeploymentStrategyType", values = deployment_strategy_type::ALL)]
    pub type_: String,
    /// Settings of the rolling update, used only with type RollingUpdate.
    #[field(2)]
    pub rolling_update: Option<RollingUpdateDeployment>,
}

/// Settings for a rolling update of a deployment.
#[api]
pub struct RollingUpdateDeployment {
    /// Most pods that may be down, as number or percentage. Default is 25%.
    #[field(1, fill = "\"25%\"")]
    pub max_unavailable: Option<IntOrString>,
    /// Most pods above the wanted count, as number or percentage. Default is 25%.
    #[field(2, fill = "\"25%\"")]
    pub max_surge: Option<IntOrString>,
}

/// The observed state of a deployment.
#[api]
pub struct DeploymentStatus {
    /// Latest generation the controller acts on.
    #[field(1)]
    pub observed_generation: i64,
    /// Number of pods that are not terminating.
    #[field(2)]
    pub replicas: i32,
    /// Number of pods that have the current template.
    #[field(3)]
    pub updated_replicas: i32,
    /// Number of pods that are ready.
    #[field(7)]
    pub ready_replicas: i32,
    /// Number of pods ready for at least minReadySeconds.
    #[field(4)]
    pub available_replicas: i32,
    /// Number of pods still missing until all wanted ones are available.
    #[field(5)]
    pub unavailable_replicas: i32,
    /// Number of pods that are shutting down.
    #[field(9)]
    pub terminating_replicas: Option<i32>,
    /// Latest observed conditions of the deployment.
    #[field(6, merge_key = "type")]
    pub conditions: Vec<DeploymentCondition>,
    /// Number of name hash collisions, used to name new replica sets.
    #[field(8)]
    pub collision_count: Option<i32>,
}

/// One observed aspect of a deployment.
#[api]
pub struct DeploymentCondition {
    /// Name of the condition: Available, Progressing or ReplicaFailure.
    #[field(1, always, required, go = "v1.DeploymentConditionType")]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Time at which the condition was last refreshed.
    #[field(6)]
    pub last_update_time: Time,
    /// Time at which the status last changed.
    #[field(7)]
    pub last_transition_time: Time,
    /// Short machine-readable reason for the last change.
    #[field(4)]
    pub reason: String,
    /// Text for people about the last change.
    #[field(5)]
    pub message: String,
}
