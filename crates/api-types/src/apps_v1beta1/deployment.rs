//! Deployment with a field for going back to an earlier revision. It had the same form in extensions/v1beta1.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};

use super::RollbackConfig;
use crate::apps_v1::{DeploymentStatus, DeploymentStrategy};
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
    /// Wanted number of pods.
    #[field(1)]
    pub replicas: Option<i32>,
    /// Selects the pods of the deployment; the labels of the template where it is absent.
    #[field(2)]
    pub selector: Option<LabelSelector>,
    /// Pod to create.
    #[field(3, always)]
    pub template: PodTemplateSpec,
    /// How old pods are replaced by new ones.
    #[field(4, retain_keys)]
    pub strategy: DeploymentStrategy,
    /// Seconds a pod must stay ready to count as available.
    #[field(5)]
    pub min_ready_seconds: i32,
    /// Number of old replica sets kept for rollback.
    #[field(6)]
    pub revision_history_limit: Option<i32>,
    /// Whether rollouts are on hold.
    #[field(7)]
    pub paused: bool,
    /// Revision to go back to; cleared when that is done.
    #[field(8)]
    pub rollback_to: Option<RollbackConfig>,
    /// Seconds without progress before a rollout counts as failed.
    #[field(9)]
    pub progress_deadline_seconds: Option<i32>,
}
