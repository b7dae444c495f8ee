//! What a job looks like at one moment: which pods are active, which have finished and are not counted yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::batch_v1::Job;
use api_types::batch_v1::constants::completion_mode::INDEXED;
use api_types::batch_v1::constants::pod_replacement_policy;
use api_types::batch_v1::constants::{
    JOB_INDEX_FAILURE_COUNT_ANNOTATION, JOB_INDEX_IGNORED_FAILURE_COUNT_ANNOTATION, JOB_TRACKING_FINALIZER,
};
use api_types::core_v1::Pod;
use api_types::core_v1::constants::pod_phase::{FAILED, SUCCEEDED};
use component_helpers::pod_state;

use super::back_off::{Failures, finish_time};
use super::indexes::{Indexes, index_of};
use super::policy::{Meaning, meaning};

/// A job and its pods.
pub(super) struct View {
    /// The job; its status becomes the new one.
    pub job: Job,
    /// Its pods.
    pub pods: Vec<Arc<Pod>>,
    /// Pods, by uid, whose finalizer was removed without the cache having seen it.
    pub removed: BTreeSet<String>,
    /// The time.
    pub now: Time,
    /// Pods that run or will.
    pub active: Vec<Arc<Pod>>,
    /// How many of those are ready.
    pub ready: i32,
    /// How many pods are on their way out.
    pub terminating: i32,
    /// Pods that ended well and are not counted yet.
    pub succeeded: Vec<Arc<Pod>>,
    /// Pods that failed and are not counted yet.
    pub failed: Vec<Arc<Pod>>,
    /// The failures since the last success.
    pub failures: Failures,
    /// The indexes that are done; empty for jobs without.
    pub done: Indexes,
    /// The indexes that have failed, where they can on their own.
    pub given_up: Option<Indexes>,
    /// The failed pod of each index that waits for its replacement; it carries the count of failures.
    pub kept: BTreeMap<i32, Arc<Pod>>,
    /// The group that new pods join, where they are scheduled all at once.
    pub group: Option<String>,
}

/// Whether pods of the job have indexes.
pub(super) fn is_indexed(job: &Job) -> bool {
    job.spec.completion_mode.as_deref() == Some(INDEXED)
}

/// How many indexes there are.
pub(super) fn completions(job: &Job) -> i32 {
    job.spec.completions.unwrap_or(0)
}

/// Whether only pods whose phase is `Failed` are replaced, not those that are still going.
pub(super) fn replaces_failed_only(job: &Job) -> bool {
    let asked = job.spec.pod_replacement_policy.as_deref() == Some(pod_replacement_policy::FAILED);
    asked || job.spec.pod_failure_policy.is_some()
}

/// Whether the pod counts as failed.
pub(super) fn has_failed(job: &Job, pod: &Pod) -> bool {
    let going = pod.metadata.deletion_timestamp.is_some() && pod.status.phase != SUCCEEDED;
    pod.status.phase == FAILED || (going && !replaces_failed_only(job))
}

/// Whether the pod still waits to be counted.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().any(|finalizer| finalizer == JOB_TRACKING_FINALIZER)
}

/// The index of a pod, if it is one of the job's.
pub(super) fn valid_index(job: &Job, pod: &Pod) -> Option<i32> {
    index_of(pod).filter(|index| *index < completions(job))
}

fn annotated(pod: &Pod, key: &str) -> u32 {
    pod.metadata.annotations.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How often the index of a pod has failed before it, counted and ignored.
pub(super) fn former_failures(pod: &Pod) -> (u32, u32) {
    (annotated(pod, JOB_INDEX_FAILURE_COUNT_ANNOTATION), annotated(pod, JOB_INDEX_IGNORED_FAILURE_COUNT_ANNOTATION))
}

impl View {
    /// Looks at a job. `removed` are the pods whose finalizer is known to be gone, `failures` those before.
    pub(super) fn new(job: Job, pods: Vec<Arc<Pod>>, removed: BTreeSet<String>, failures: Failures, now: Time) -> Self {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let active: Vec<_> = pods.iter().filter(|pod| pod_state::is_active(pod)).cloned().collect();
        let going = |pod: &&Arc<Pod>| pod.metadata.deletion_timestamp.is_some() && !pod_state::is_terminal(pod);
        let mut view = Self {
            ready: count(active.iter().filter(|pod| pod_state::is_ready(pod)).count()),
            terminating: count(pods.iter().filter(going).count()),
            succeeded: Vec::new(),
            failed: Vec::new(),
            done: Indexes::default(),
            given_up: None,
            kept: BTreeMap::new(),
            group: None,
            job,
            pods,
            removed,
            now,
            active,
            failures,
        };
        view.job.status.uncounted_terminated_pods.get_or_insert_default();
        view.find_finished();
        view.failures = failures.after(&view.succeeded, &view.failed);
        if is_indexed(&view.job) {
            view.find_indexes();
        }
        view
    }

    /// Whether the pod has the finalizer, as far as is known.
    pub(super) fn is_pending(&self, pod: &Pod) -> bool {
        is_tracked(pod) && !self.removed.contains(&pod.metadata.uid)
    }

    fn find_finished(&mut self) {
        let uncounted = self.job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let valid = |pod: &Pod| !is_indexed(&self.job) || valid_index(&self.job, pod).is_some();
        let new =
            |uids: &[String], pod: &Arc<Pod>| self.is_pending(pod) && valid(pod) && !uids.contains(&pod.metadata.uid);
        let succeeded = |pod: &&Arc<Pod>| pod.status.phase == SUCCEEDED && new(&uncounted.succeeded, pod);
        let failed = |pod: &&Arc<Pod>| has_failed(&self.job, pod) && new(&uncounted.failed, pod);
        let succeeded = self.pods.iter().filter(succeeded).cloned().collect();
        let failed = self.pods.iter().filter(failed).cloned().collect();
        (self.succeeded, self.failed) = (succeeded, failed);
    }

    fn find_indexes(&mut self) {
        let completions = completions(&self.job);
        self.done = Indexes::parse(&self.job.status.completed_indexes, completions);
        let done = self.pods.iter().filter(|pod| pod.status.phase == SUCCEEDED && is_tracked(pod));
        self.done.extend(done.filter_map(|pod| valid_index(&self.job, pod)));
        let Some(limit) = self.job.spec.backoff_limit_per_index else { return };
        let mut given_up = Indexes::parse(self.job.status.failed_indexes.as_deref().unwrap_or(""), completions);
        let failed = self.pods.iter().filter(|pod| has_failed(&self.job, pod) && fails_index(&self.job, pod, limit));
        given_up.extend(failed.filter_map(|pod| valid_index(&self.job, pod)));
        self.kept = self.find_kept(&given_up);
        self.given_up = Some(given_up);
    }

    fn find_kept(&self, given_up: &Indexes) -> BTreeMap<i32, Arc<Pod>> {
        let active: BTreeSet<_> = self.active.iter().filter_map(|pod| index_of(pod)).collect();
        let mut kept = BTreeMap::<i32, Arc<Pod>>::new();
        for pod in self.pods.iter().filter(|pod| self.is_pending(pod) && has_failed(&self.job, pod)) {
            let Some(index) = valid_index(&self.job, pod) else { continue };
            if self.done.contains(index) || given_up.contains(index) || active.contains(&index) {
                continue;
            }
            let weight = |pod: &Pod| {
                let (counted, ignored) = former_failures(pod);
                (counted.saturating_add(ignored), finish_time(pod))
            };
            let heavier = kept.get(&index).is_none_or(|other| weight(other) <= weight(pod));
            if heavier {
                kept.insert(index, Arc::clone(pod));
            }
        }
        kept
    }

    /// How many successes there are: indexes for indexed jobs, else pods.
    pub(super) fn success_count(&self) -> i32 {
        if is_indexed(&self.job) {
            return self.done.len();
        }
        let uncounted = self.job.status.uncounted_terminated_pods.as_ref().map_or(0, |pods| pods.succeeded.len());
        add(self.job.status.succeeded, self.succeeded.len() + uncounted)
    }

    /// How many failures there are that count.
    pub(super) fn failure_count(&self) -> i32 {
        let uncounted = self.job.status.uncounted_terminated_pods.as_ref().map_or(0, |pods| pods.failed.len());
        let counted = self.failed.iter().filter(|pod| meaning(&self.job, pod) != Meaning::Ignored).count();
        add(self.job.status.failed, counted + uncounted)
    }

    /// How many pods are active.
    pub(super) fn active_count(&self) -> i32 {
        add(0, self.active.len())
    }
}

fn add(number: i32, more: usize) -> i32 {
    number.saturating_add(i32::try_from(more).unwrap_or(i32::MAX))
}

/// Whether the failure of a pod is one too many for its index.
fn fails_index(job: &Job, pod: &Pod, limit: i32) -> bool {
    match meaning(job, pod) {
        Meaning::FailsIndex => true,
        Meaning::Ignored => false,
        Meaning::Counts | Meaning::FailsJob(_) => i64::from(former_failures(pod).0) >= i64::from(limit),
    }
}
