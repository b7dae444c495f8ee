//! Which finished jobs of a CronJob are too many to keep.

use std::sync::Arc;

use api_types::batch_v1::{CronJob, Job};
use component_helpers::conditions;

/// How a job ended; nothing while it runs.
pub(super) fn ending(job: &Job) -> Option<&'static str> {
    ["Complete", "Failed"].into_iter().find(|kind| conditions::is_true(&job.status.conditions, kind))
}

/// The jobs to delete, oldest first, of those that succeeded and then of those that failed.
pub(super) fn surplus(cron_job: &CronJob, jobs: &[Arc<Job>]) -> Vec<Arc<Job>> {
    let limits = [
        ("Complete", cron_job.spec.successful_jobs_history_limit),
        ("Failed", cron_job.spec.failed_jobs_history_limit),
    ];
    let mut surplus = Vec::new();
    for (kind, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let mut ended: Vec<_> = jobs.iter().filter(|job| ending(job) == Some(kind)).cloned().collect();
        // Those that never started come last.
        ended.sort_by_key(|job| {
            let start = job.status.start_time;
            (start.is_none(), start, job.metadata.name.clone())
        });
        let excess = ended.len().saturating_sub(limit);
        surplus.extend(ended.into_iter().take(excess));
    }
    surplus
}
