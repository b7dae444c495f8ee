//! Jobs: pods that run to their end, so many times or for every index.
//!
//! `view` is what a job looks like, `fate` whether it has succeeded or failed, `manage` which pods to create or remove,
//! `tracking` how finished pods are counted exactly once, `policy` and `back_off` what failures mean, `gang` which jobs are
//! scheduled as a whole. This file, `act` and `gang` do the I/O. See
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/>.

mod act;
mod back_off;
mod conditions;
mod fate;
mod flush;
mod gang;
mod gang_content;
#[cfg(test)]
mod gang_tests;
mod indexes;
mod manage;
mod metrics;
mod orphans;
mod pod_content;
mod policy;
#[cfg(test)]
mod tests;
mod tracking;
mod view;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::batch_v1::constants::completion_mode::{INDEXED, NON_INDEXED};
use api_types::batch_v1::constants::job_condition_type::SUSPENDED;
use api_types::batch_v1::constants::{JOB_CONTROLLER_NAME, JOB_TRACKING_FINALIZER};
use api_types::batch_v1::{Job, JobCondition};
use api_types::core_v1::Pod;
use client::{EventType, Expectations, Informer, ObjectKey, RateLimit};
use component_base::Feature;
use component_base::metrics::Desc;
use component_base::shared_gates::{SUSPENDED_JOB_PLACING, WORKLOAD_WITH_JOB};
use component_helpers::conditions::find;
use component_helpers::selectors::selector_of;
use controller::{
    Build, BuildError, CONTROLLER_UID, Controller, Cx, Descriptor, Next, ReconcileError, controller_uid,
    owned_and_orphans,
};
use parking_lot::Mutex;

use super::adoption::Claims;
use super::written::{OF_JOBS, Written, skips};
use crate::Settings;
use back_off::BackOff;
use gang::Gangs;
use metrics::{Action, JobMetrics};
use orphans::Orphans;
use view::View;
use watch::{Removals, Watch};

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[SUSPENDED_JOB_PLACING, WORKLOAD_WITH_JOB];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "job-controller",
    aliases: &["job"],
    gates: &[],
    identity: "job-controller",
    event_component: "job-controller",
    disabled_by_default: false,
    build,
};

const PODS: &str = "pods";
const JOBS: &str = "jobs.batch";

const SKIPS: Desc = skips("job_controller_stale_sync_skips_total");

/// Between tries of a job that cannot be brought in order.
const RETRIES: RateLimit = RateLimit { base: Duration::from_secs(1), longest: Duration::from_secs(60), overall: None };

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.job_syncs;
    let queue = build.queue_with("job", RETRIES);
    let orphan_queue = build.queue_with("job_orphan_pod", RETRIES);
    let records = Arc::new(Records {
        expectations: Expectations::new(Arc::clone(build.clock())),
        written: Written::gated(build, OF_JOBS, &SKIPS),
        metrics: JobMetrics::new(build.metrics()),
        removals: Removals::default(),
        back_off: BackOff::default(),
        finished: Mutex::default(),
    });
    let pods = build.watch::<Pod>().index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata)).informer();
    let jobs = build.watch::<Job>().informer();
    let watch = Arc::new(Watch {
        jobs: jobs.clone(),
        pods: pods.clone(),
        queue: queue.clone(),
        orphan_queue: orphan_queue.clone(),
        records: Arc::clone(&records),
    });
    let of_pods = Arc::clone(&watch);
    jobs.subscribe(move |change| watch.notice_job(change));
    pods.subscribe(move |change| of_pods.notice_pod(change));
    let orphans = Orphans { jobs: jobs.clone(), pods: pods.clone() };
    let gangs = Gangs::watch(build);
    let starts_anew = build.gates().enabled(SUSPENDED_JOB_PLACING);
    build.run(&queue, workers, Arc::new(JobController { jobs, pods, gangs, starts_anew, records }));
    build.run(&orphan_queue, workers, Arc::new(orphans));
    Ok(())
}

/// What the controller remembers. All of it may be lost; the objects say the rest.
struct Records {
    expectations: Expectations,
    written: Written,
    metrics: JobMetrics,
    removals: Removals,
    back_off: BackOff,
    /// The uids of jobs that this process has finished while the cache may not know yet.
    finished: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Records {
    /// Forgets a job that is gone or finished.
    fn forget(&self, job: &ObjectKey) {
        self.expectations.forget(job);
        self.removals.forget(job);
        self.back_off.forget(job);
        self.written.forget(job);
        self.finished.lock().remove(job);
    }
}

struct JobController {
    jobs: Informer<Job>,
    pods: Informer<Pod>,
    /// Where jobs may be gangs.
    gangs: Option<Gangs>,
    /// Whether a job that is held has not started, so that more of it may be changed.
    starts_anew: bool,
    records: Arc<Records>,
}

/// Whether another controller has taken the job upon itself.
fn is_managed_elsewhere(job: &Job) -> bool {
    job.spec.managed_by.as_deref().is_some_and(|by| by != JOB_CONTROLLER_NAME)
}

#[async_trait::async_trait]
impl Controller for JobController {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let caches = [(PODS, self.pods.resource_version()), (JOBS, self.jobs.resource_version())];
        self.records.written.check(key, &caches)?;
        self.records.expectations.caught_up(key, &self.pods.resource_version());
        let Some(job) = self.jobs.get(key) else {
            self.records.forget(key);
            return Ok(Next::Done);
        };
        if is_managed_elsewhere(&job) {
            return Ok(Next::Done);
        }
        if conditions::is_finished(&job) {
            self.records.forget(key);
            return Ok(Next::Done);
        }
        if self.records.finished.lock().get(key) == Some(&job.metadata.uid) {
            return Ok(Next::Done);
        }
        if !matches!(job.spec.completion_mode.as_deref(), None | Some(NON_INDEXED | INDEXED)) {
            let message = "Skipped Job sync because completion mode is unknown";
            cx.events.event(&*job, EventType::Warning, "UnknownCompletionMode", message);
            return Ok(Next::Done);
        }
        let started = cx.clock.monotonic();
        let mut action = Action::default();
        let outcome = self.bring_in_order(cx, key, Job::clone(&job), &mut action).await;
        let took = cx.clock.monotonic().saturating_duration_since(started);
        self.records.metrics.synced(&job, action, outcome.is_err(), took);
        outcome
    }
}

/// What became of the pods of a job.
#[derive(Default)]
struct Managed {
    /// How many are active now.
    active: i32,
    /// How many of them are ready.
    ready: i32,
    /// How many are on their way out, those that were deleted just now among them.
    terminating: i32,
    /// The first failure.
    error: Option<ReconcileError>,
    /// When to look again.
    look_again: Option<Duration>,
    /// What was done.
    action: Action,
}

impl Managed {
    /// As the pods were found.
    fn before(view: &View) -> Self {
        let (active, ready, terminating) = (view.active_count(), view.ready, view.terminating);
        Self { active, ready, terminating, ..Self::default() }
    }
}

impl JobController {
    async fn bring_in_order(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        job: Job,
        action: &mut Action,
    ) -> Result<Next, ReconcileError> {
        let wait = self.records.expectations.wait(key);
        let satisfied = wait.is_none();
        let stored = job.status.clone();
        let mut view = self.look(cx, key, job).await?;
        let mut fate = view.fate();
        let mut managed = Managed::before(&view);
        let mut events = Vec::new();
        if fate.is_some() {
            let all_gone = self.delete_active(cx, &view, &mut managed).await;
            if !all_gone || !satisfied {
                // There may be pods that the cache does not have yet; they must be counted before the end.
                fate = None;
            }
        } else {
            let manages = satisfied && view.job.metadata.deletion_timestamp.is_none();
            if manages {
                managed = self.manage(cx, key, &view).await;
                *action = managed.action;
            }
            fate = view.completion(managed.active);
            if fate.is_none() && manages {
                events.extend(note_suspension(&mut view, self.starts_anew));
            }
            warn_of_too_many(cx, &view, fate.as_ref());
        }
        view.terminating = managed.terminating;
        let status = &mut view.job.status;
        (status.active, status.ready) = (managed.active, Some(managed.ready));
        status.terminating = Some(managed.terminating);
        self.flush(cx, key, &mut view, &stored, fate).await?;
        for (reason, message) in events {
            cx.events.event(&view.job, EventType::Normal, reason, message);
        }
        managed.error.map_or(Ok(()), Err)?;
        let deadline = view.until_deadline().filter(|left| !left.is_zero());
        Ok(Next::Done.within(wait).within(managed.look_again).within(deadline))
    }

    /// What there is of the job, with a start if it has one now. The group that its pods join is made first.
    async fn look(&self, cx: &Cx, key: &ObjectKey, job: Job) -> Result<View, ReconcileError> {
        let pods = self.claim(cx, &job).await?;
        let group = match &self.gangs {
            Some(gangs) => gangs.group_for(cx, &job, &pods).await?,
            None => None,
        };
        let now = Time::from(cx.clock.wall());
        let (removed, failures) = (self.records.removals.of(key), self.records.back_off.get(key));
        let mut view = View::new(job, pods, removed, failures, now);
        view.group = group;
        if view.job.status.start_time.is_none() && !fate::is_suspended(&view.job) {
            view.job.status.start_time = Some(now);
        }
        Ok(view)
    }

    async fn claim(&self, cx: &Cx, job: &Job) -> Result<Vec<Arc<Pod>>, ReconcileError> {
        let selector =
            selector_of(job.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let mut claims = Claims::new(&cx.client, job, &selector, &[JOB_TRACKING_FINALIZER]);
        let pods = claims.run(owned_and_orphans(&self.pods, &job.metadata)).await?;
        for version in claims.adopted() {
            self.records.written.note(&job.metadata, PODS, version);
        }
        Ok(pods)
    }
}

/// Notes that the job is held or goes on; answers with what to tell of it.
fn note_suspension(view: &mut View, starts_anew: bool) -> Option<(&'static str, &'static str)> {
    let (suspended, now) = (fate::is_suspended(&view.job), view.now);
    let known = find(&view.job.status.conditions, SUSPENDED).is_some();
    let mut condition = |status: &str, reason, message: &'static str| {
        let holds = JobCondition { status: status.into(), ..conditions::condition(SUSPENDED, reason, message, now) };
        let was = find(&view.job.status.conditions, SUSPENDED).map(|old| old.status.clone());
        was.as_deref() != Some(status) && conditions::set(&mut view.job.status.conditions, holds)
    };
    if suspended {
        let news = condition("True", "JobSuspended", "Job suspended");
        if starts_anew {
            view.job.status.start_time = None;
        }
        return news.then_some(("Suspended", "Job suspended"));
    }
    let news = known && condition("False", "JobResumed", "Job resumed");
    if news {
        view.job.status.start_time = Some(now);
    }
    news.then_some(("Resumed", "Job resumed"))
}

fn warn_of_too_many(cx: &Cx, view: &View, fate: Option<&JobCondition>) {
    let too_many = view.job.spec.completions.is_some_and(|completions| view.success_count() > completions);
    if fate.is_some() && too_many {
        let message = "Too many succeeded pods running after completion count reached";
        cx.events.event(&view.job, EventType::Warning, "TooManySucceededPods", message);
    }
}
