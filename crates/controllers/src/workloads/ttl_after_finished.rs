//! Deletes finished jobs once `ttlSecondsAfterFinished` have passed.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_types::batch_v1::Job;
use api_types::batch_v1::constants::job_condition_type::{COMPLETE, FAILED};
use client::{Change, Informer, ObjectKey};
use component_base::metrics::{Desc, Histograms, Stability, exponential};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "ttl-after-finished-controller",
    aliases: &["ttl-after-finished"],
    gates: &[],
    identity: "ttl-after-finished-controller",
    event_component: "ttl-after-finished-controller",
    disabled_by_default: false,
    build,
};

const DELAYS: Desc = Desc::new(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "From the end of a job's time until it was deleted.",
    Stability::Alpha,
)
.buckets(&exponential::<14>(0.1, 2.0));

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.ttl_after_finished_syncs;
    let queue = build.queue("ttl_jobs_to_delete");
    let concerned = |change: &Change<Job>| {
        let job = change.object();
        (!change.is_deleted() && time_to_live(job).is_some()).then(|| change.key())
    };
    let jobs = build.watch::<Job>().enqueue_keys(&queue, concerned).informer();
    let delays = build.metrics().histograms(&DELAYS);
    build.run(&queue, workers, Arc::new(TtlAfterFinished { jobs, delays }));
    Ok(())
}

struct TtlAfterFinished {
    jobs: Informer<Job>,
    delays: Histograms,
}

/// What to do about a job.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing: it lives on.
    Leave,
    /// Look again after this time.
    Wait(Duration),
    /// Delete it.
    Delete,
}

/// The time a job may stay after it has finished, if it has and is not going already.
fn time_to_live(job: &Job) -> Option<Duration> {
    let seconds = job.spec.ttl_seconds_after_finished?;
    let live = job.metadata.deletion_timestamp.is_none() && finish(job).is_some();
    live.then(|| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// When the job finished, if it did; the time may not be set.
fn finish(job: &Job) -> Option<Time> {
    let ended = |type_: &str| type_ == COMPLETE || type_ == FAILED;
    let mut conditions = job.status.conditions.iter();
    conditions.find(|condition| condition.status == "True" && ended(&condition.type_)).map(|at| at.last_transition_time)
}

fn plan(job: &Job, now: Time) -> Result<Plan, ReconcileError> {
    let (Some(ttl), Some(finish)) = (time_to_live(job), finish(job)) else { return Ok(Plan::Leave) };
    if finish.is_zero() {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let reason = format!("unable to find the time when the Job {namespace}/{name} finished");
        return Err(ReconcileError::failed(reason));
    }
    let left = (finish + ttl).since(now);
    Ok(if left.is_zero() { Plan::Delete } else { Plan::Wait(left) })
}

#[async_trait::async_trait]
impl Controller for TtlAfterFinished {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(job) = self.jobs.get(key) else { return Ok(Next::Done) };
        match plan(&job, cx.clock.wall().into())? {
            Plan::Leave => return Ok(Next::Done),
            Plan::Wait(left) => return Ok(Next::After(left)),
            Plan::Delete => {}
        }
        // The cache may not know yet that the time to live was raised.
        let jobs = cx.client.namespaced::<Job>(&key.namespace);
        let Some(live) = jobs.get_opt(&key.name).await? else { return Ok(Next::Done) };
        match plan(&live, cx.clock.wall().into())? {
            Plan::Leave => Ok(Next::Done),
            Plan::Wait(left) => Ok(Next::After(left)),
            Plan::Delete => {
                let options =
                    DeleteOptions { propagation_policy: Some("Foreground".to_owned()), ..DeleteOptions::default() };
                if jobs.delete_this(&live.metadata, options).await?
                    && let (Some(ttl), Some(finish)) = (time_to_live(&live), finish(&live))
                {
                    let late = Time::from(cx.clock.wall()).since(finish + ttl);
                    self.delays.with(&[]).observe(late.as_secs_f64());
                }
                Ok(Next::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::batch_v1::JobCondition;

    use super::super::fixtures::{at, meta};
    use super::*;

    fn job(ttl: Option<i32>, finished: Option<(&str, i64)>) -> Job {
        let mut job = Job { metadata: meta("j"), ..Job::default() };
        job.spec.ttl_seconds_after_finished = ttl;
        job.status.conditions.extend(finished.map(|(type_, when)| JobCondition {
            type_: type_.into(),
            status: "True".into(),
            last_transition_time: at(when),
            ..JobCondition::default()
        }));
        job
    }

    #[test]
    fn jobs_live_until_their_time_has_passed() {
        let mut going = job(Some(10), Some(("Complete", 100)));
        going.metadata.deletion_timestamp = Some(at(1));
        for (name, job, expected) in [
            ("no limit", job(None, Some(("Complete", 100))), Plan::Leave),
            ("unfinished", job(Some(10), None), Plan::Leave),
            ("suspended is not finished", job(Some(10), Some(("Suspended", 1))), Plan::Leave),
            ("going already", going, Plan::Leave),
            ("not yet", job(Some(10), Some(("Failed", 100))), Plan::Wait(Duration::from_secs(5))),
            ("in time", job(Some(5), Some(("Failed", 100))), Plan::Delete),
            ("at once", job(Some(0), Some(("Complete", 105))), Plan::Delete),
        ] {
            assert_eq!(plan(&job, at(105)).unwrap(), expected, "{name}");
        }
        let timeless = job(Some(1), Some(("Complete", -62_135_596_800)));
        let error = plan(&timeless, at(105)).unwrap_err();
        assert_eq!(error.to_string(), "unable to find the time when the Job ns/j finished");
    }
}
