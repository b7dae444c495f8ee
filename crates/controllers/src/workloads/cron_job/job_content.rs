//! The job that a CronJob starts at a time.

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::batch_v1::{CronJob, Job};
use component_helpers::time_zone::TimeZone;
use controller::controller_ref;

use super::plan::{seconds, zone_of};

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The name of the job for a time: at most one in a minute.
pub(super) fn name(cron_job: &CronJob, at: Time) -> String {
    format!("{}-{}", cron_job.metadata.name, seconds(at).div_euclid(60))
}

/// The job for a time. It says when it was due in the zone of its schedule; where that names none, in UTC, whatever the
/// process's own zone is.
pub(super) fn job(cron_job: &CronJob, at: Time) -> Job {
    let template = &cron_job.spec.job_template;
    let mut annotations = template.metadata.annotations.clone();
    annotations.insert(SCHEDULED.to_owned(), zone_of(&cron_job.spec, &TimeZone::utc()).rfc3339(at));
    let metadata = ObjectMeta {
        name: name(cron_job, at),
        namespace: cron_job.metadata.namespace.clone(),
        labels: template.metadata.labels.clone(),
        annotations,
        owner_references: vec![controller_ref::<CronJob>(&cron_job.metadata)],
        ..ObjectMeta::default()
    };
    Job { metadata, spec: template.spec.clone(), ..Job::default() }
}
