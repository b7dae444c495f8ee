//! batch/v1: one file per kind, with what it is made of.

pub mod constants;
mod cron_job;
mod job;

pub use cron_job::{CronJob, CronJobSpec, CronJobStatus, JobTemplateSpec};
pub use job::{
    Job, JobCondition, JobSpec, JobStatus, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
    UncountedTerminatedPods,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.batch.v1";
/// The API group.
pub const GROUP: &str = "batch";
/// The version.
pub const VERSION: &str = "v1";
