//! The `job_controller_*` metrics, with upstream's names, labels and buckets.

use api_types::batch_v1::constants::completion_mode::{INDEXED, NON_INDEXED};
use api_types::batch_v1::{Job, JobCondition, JobStatus};
use api_types::core_v1::Pod;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability, exponential};
use component_helpers::pod_state;

use super::conditions::is_success;
use super::indexes::Indexes;
use super::view::{View, is_indexed, is_tracked, replaces_failed_only};

const SYNC_LABELS: &[&str] = &["completion_mode", "result", "action"];
const SYNC_SECONDS: &[f64] = &exponential::<15>(0.004, 2.0);

const SYNC_DURATION: Desc =
    Desc::new("job_controller_job_sync_duration_seconds", "How long looking at a job took.", Stability::Stable)
        .labels(SYNC_LABELS)
        .buckets(SYNC_SECONDS);
const SYNCS: Desc =
    Desc::new("job_controller_job_syncs_total", "Looks at jobs.", Stability::Stable).labels(SYNC_LABELS);
const FINISHED: Desc =
    Desc::new("job_controller_jobs_finished_total", "Jobs that came to their end.", Stability::Stable).labels(&[
        "completion_mode",
        "result",
        "reason",
    ]);
const PODS_FINISHED: Desc =
    Desc::new("job_controller_job_pods_finished_total", "Finished pods that were counted.", Stability::Stable)
        .labels(&["completion_mode", "result"]);
const INDEXES_FINISHED: Desc =
    Desc::new("job_controller_job_finished_indexes_total", "Indexes that succeeded or failed.", Stability::Alpha)
        .labels(&["status", "backoffLimit"]);
const PODS_CREATED: Desc =
    Desc::new("job_controller_job_pods_creation_total", "Pods that were created, or not.", Stability::Alpha)
        .labels(&["reason", "status"]);
const TRACKED: Desc = Desc::new(
    "job_controller_terminated_pods_tracking_finalizer_total",
    "Finished pods with the finalizer that came, and that lost it.",
    Stability::Beta,
)
.labels(&["event"]);
const POLICY: Desc = Desc::new(
    "job_controller_pod_failures_handled_by_failure_policy_total",
    "Failed pods that a rule of the failure policy matched, by its action.",
    Stability::Beta,
)
.labels(&["action"]);
const EXTERNAL: Desc = Desc::new(
    "job_controller_jobs_by_external_controller_total",
    "Jobs that another controller manages.",
    Stability::Alpha,
)
.labels(&["controller_name"]);

/// What a look at a job led to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Action {
    /// Pods were not looked at: those that were asked for are not there yet, or the job is at its end.
    #[default]
    Reconciling,
    /// There were as many as there should be.
    Tracking,
    /// Some were missing.
    PodsCreated,
    /// There were too many, or there should be none.
    PodsDeleted,
}

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::Reconciling => "reconciling",
            Self::Tracking => "tracking",
            Self::PodsCreated => "pods_created",
            Self::PodsDeleted => "pods_deleted",
        }
    }
}

/// The families.
pub(super) struct JobMetrics {
    sync_duration: Histograms,
    syncs: Counters,
    finished: Counters,
    pods_finished: Counters,
    indexes_finished: Counters,
    pods_created: Counters,
    tracked: Counters,
    external: Counters,
    policy: Counters,
}

fn mode(job: &Job) -> &'static str {
    if is_indexed(job) { INDEXED } else { NON_INDEXED }
}

fn outcome(succeeded: bool) -> &'static str {
    if succeeded { "succeeded" } else { "failed" }
}

impl JobMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            sync_duration: metrics.histograms(&SYNC_DURATION),
            syncs: metrics.counters(&SYNCS),
            finished: metrics.counters(&FINISHED),
            pods_finished: metrics.counters(&PODS_FINISHED),
            indexes_finished: metrics.counters(&INDEXES_FINISHED),
            pods_created: metrics.counters(&PODS_CREATED),
            tracked: metrics.counters(&TRACKED),
            external: metrics.counters(&EXTERNAL),
            policy: metrics.counters(&POLICY),
        }
    }

    /// A look at a job has ended.
    pub(super) fn synced(&self, job: &Job, action: Action, failed: bool, took: std::time::Duration) {
        let labels = &[mode(job), if failed { "error" } else { "success" }, action.name()];
        self.syncs.with(labels).inc();
        self.sync_duration.with(labels).observe(took.as_secs_f64());
    }

    /// A job has come to its end.
    pub(super) fn finished(&self, job: &Job, fate: &JobCondition) {
        self.finished.with(&[mode(job), outcome(is_success(fate)), &fate.reason]).inc();
    }

    /// A job's status was stored; before it was another.
    pub(super) fn counted(&self, job: &Job, before: &JobStatus) {
        let (now, mode) = (&job.status, mode(job));
        let more = |succeeded: bool, before: i32, now: i32| {
            self.pods_finished.with(&[mode, outcome(succeeded)]).inc_by(f64::from(now.saturating_sub(before).max(0)));
        };
        more(true, before.succeeded, now.succeeded);
        more(false, before.failed, now.failed);
        if !is_indexed(job) {
            return;
        }
        let limit = if job.spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
        let indexes = |status: &JobStatus, succeeded: bool| {
            let failed = status.failed_indexes.as_deref().unwrap_or_default();
            let text = if succeeded { &status.completed_indexes } else { failed };
            Indexes::parse(text, i32::MAX).len()
        };
        for succeeded in [true, false] {
            let more = indexes(now, succeeded).saturating_sub(indexes(before, succeeded)).max(0);
            self.indexes_finished.with(&[outcome(succeeded), limit]).inc_by(f64::from(more));
        }
    }

    /// So many pods of a job were created, and so many could not be.
    #[expect(clippy::cast_precision_loss, reason = "at most some hundred at a time")]
    pub(super) fn created(&self, view: &View, created: usize, failed: usize) {
        let again = view.failure_count() > 0 || view.terminating > 0;
        let reason = match (again, replaces_failed_only(&view.job)) {
            (false, _) => "new",
            (true, true) => "recreate_failed",
            (true, false) => "recreate_terminating_or_failed",
        };
        for (succeeded, count) in [(true, created), (false, failed)] {
            self.pods_created.with(&[reason, outcome(succeeded)]).inc_by(count as f64);
        }
    }

    /// Rules of the failure policy with these actions matched failed pods.
    pub(super) fn judged(&self, actions: &[String]) {
        for action in actions {
            self.policy.with(&[action]).inc();
        }
    }

    /// A pod changed.
    pub(super) fn pod_changed(&self, old: Option<&Pod>, new: Option<&Pod>) {
        let is = |pod: Option<&Pod>| pod.is_some_and(|pod| pod_state::is_terminal(pod) && is_tracked(pod));
        match (is(old), is(new)) {
            (false, true) => self.tracked.with(&["add"]).inc(),
            (true, false) => self.tracked.with(&["delete"]).inc(),
            _ => {}
        }
    }

    /// A job that another controller manages has come.
    pub(super) fn managed_elsewhere(&self, by: &str) {
        self.external.with(&[by]).inc();
    }
}
