//! CronJobs: starts jobs at their times.
//!
//! `plan` says which time is due and when to look again, `job_content` what the job is like. A CronJob that was not
//! looked at for a while starts the last job that it missed, and no other. See
//! <https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/>.

mod act;
mod history;
mod job_content;
mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api_types::batch_v1::{CronJob, Job};
use client::{Change, EventType, Informer, ObjectKey};
use component_base::metrics::{Desc, Histograms, Stability, exponential};
use component_helpers::time_zone::TimeZone;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError, controller_of};

use crate::Settings;
use act::Run;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "cronjob-controller",
    aliases: &["cronjob"],
    gates: &[],
    identity: "cronjob-controller",
    event_component: "cronjob-controller",
    disabled_by_default: false,
    build,
};

const SKEW: Desc = Desc::new(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "From the time a job was due until it was created.",
    Stability::Stable,
)
.buckets(&exponential::<10>(1.0, 2.0));

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, local_zone) = (settings.cron_job_syncs, settings.local_zone.clone());
    let queue = build.queue("cronjob");
    let zone = local_zone.clone();
    let (own, clock, events) = (queue.clone(), Arc::clone(build.clock()), build.events().clone());
    let cron_jobs = build
        .watch::<CronJob>()
        .observe(move |change| {
            let (key, new) = (change.key(), change.object());
            let rescheduled = change
                .old()
                .is_some_and(|old| old.spec.schedule != new.spec.schedule || old.spec.time_zone != new.spec.time_zone);
            if !rescheduled {
                return own.add(key);
            }
            match plan::schedule_of(&new.spec, &zone) {
                Ok(schedule) => own.add_after(key, plan::look_again(new, &schedule, clock.wall().into())),
                Err(_) => {
                    let text = format!("unparseable schedule for cronjob: {}", new.spec.schedule);
                    events.event(&**new, EventType::Warning, "UnParseableCronJobSchedule", text);
                }
            }
        })
        .informer();
    let lookup = cron_jobs.clone();
    let of_job = move |change: &Change<Job>| {
        let owner = |job: &Job| {
            let reference = controller_of(&job.metadata).filter(|reference| reference.kind == "CronJob")?;
            let owner = lookup.find(&job.metadata.namespace, &reference.name)?;
            (owner.metadata.uid == reference.uid).then(|| ObjectKey::of(&owner.metadata))
        };
        if change.is_resync() {
            return Vec::new();
        }
        let mut keys: Vec<ObjectKey> = change.old().and_then(|old| owner(old)).into_iter().collect();
        keys.extend(owner(change.object()));
        keys.dedup();
        keys
    };
    let jobs = build.watch::<Job>().enqueue_keys(&queue, of_job).informer();
    let skew = build.metrics().histograms(&SKEW);
    build.run(&queue, workers, Arc::new(CronJobs { cron_jobs, jobs, local_zone, skew }));
    Ok(())
}

struct CronJobs {
    cron_jobs: Informer<CronJob>,
    jobs: Informer<Job>,
    /// The zone of schedules that name none.
    local_zone: TimeZone,
    skew: Histograms,
}

#[async_trait::async_trait]
impl Controller for CronJobs {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(cron_job) = self.cron_jobs.get(key) else { return Ok(Next::Done) };
        let of_this = |job: &Arc<Job>| controller_of(&job.metadata).is_some_and(|owner| owner.name == key.name);
        let jobs: Vec<Arc<Job>> = self.jobs.in_namespace(&key.namespace).into_iter().filter(of_this).collect();
        let mut run = Run::new(cx, &cron_job, jobs, self);
        let outcome = run.sync().await;
        let written = run.report().await;
        written?;
        match outcome {
            // The time of the next look matters more than what went wrong on the way there.
            Ok(Some(delay)) => Ok(Next::After(delay)),
            Ok(None) => Ok(Next::Done),
            Err(error) => Err(error),
        }
    }
}
