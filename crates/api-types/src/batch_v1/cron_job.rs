//! CronJob and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::JobSpec;
use super::constants::concurrency_policy;
use crate::core_v1::ObjectReference;

/// Creates jobs on a time schedule.
#[api(kind = "CronJob", resource = "cronjobs", namespaced)]
pub struct CronJob {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Schedule and job template.
    #[field(2, required)]
    pub spec: CronJobSpec,
    /// Last observed state of the cron job.
    #[field(3)]
    pub status: CronJobStatus,
}

/// The desired state of a cron job.
#[api]
pub struct CronJobSpec {
    /// When to run, in cron format, such as */5 * * * *.
    #[field(1, always, required)]
    pub schedule: String,
    /// Time zone name of the schedule. Default is the controller's own zone.
    #[field(8)]
    pub time_zone: Option<String>,
    /// Seconds a run may start late before it is skipped.
    #[field(2)]
    pub starting_deadline_seconds: Option<i64>,
    /// How overlapping runs are handled: Allow (default), Forbid or Replace.
    #[field(3, fill = "\"Allow\"", go = "v1.ConcurrencyPolicy", values = concurrency_policy::ALL)]
    pub concurrency_policy: String,
    /// Whether new runs are held back. Default is false.
    #[field(4, fill = "false")]
    pub suspend: Option<bool>,
    /// The job to create on each run.
    #[field(5, always, required)]
    pub job_template: JobTemplateSpec,
    /// Number of succeeded jobs to keep. Default is 3.
    #[field(6, fill = "3")]
    pub successful_jobs_history_limit: Option<i32>,
    /// Number of failed jobs to keep. Default is 1.
    #[field(7, fill = "1")]
    pub failed_jobs_history_limit: Option<i32>,
}

/// Describes the jobs that a cron job creates.
#[api]
pub struct JobTemplateSpec {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired state of each created job.
    #[field(2)]
    pub spec: JobSpec,
}

/// The observed state of a cron job.
#[api]
pub struct CronJobStatus {
    /// Jobs that are still running.
    #[field(1)]
    pub active: Vec<ObjectReference>,
    /// Scheduled time of the most recent run.
    #[field(4)]
    pub last_schedule_time: Option<Time>,
    /// Time at which a job last succeeded.
    #[field(5)]
    pub last_successful_time: Option<Time>,
}
