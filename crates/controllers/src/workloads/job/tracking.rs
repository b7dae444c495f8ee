//! Counting finished pods exactly once. A pod's uid is stored as uncounted before its finalizer goes, and moves into the
//! counters after; whatever breaks in between, the next look finds where it stopped. For indexes that are done the
//! list of indexes is record enough.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::batch_v1::constants::job_condition_type::COMPLETE;
use api_types::batch_v1::{JobCondition, JobStatus};
use api_types::core_v1::Pod;
use api_types::core_v1::constants::pod_phase::SUCCEEDED;

use super::conditions::{is_success, set, terminal};
use super::indexes::{Indexes, index_of};
use super::policy::{Meaning, action, meaning};
use super::view::{View, completions, has_failed, is_indexed, valid_index};

/// Most pods that wait to be counted in one status.
const MAX_UNCOUNTED: usize = 500;

/// What follows from counting.
pub(super) struct Tracking {
    /// Pods whose finalizer may go once the status is stored.
    pub release: Vec<Arc<Pod>>,
    /// Whether there were too many to count all.
    pub cut: bool,
    /// Pods, by uid, that still have the finalizer.
    pub tracked: BTreeSet<String>,
    /// What the failure policy said of pods that failed, one for each that a rule matched.
    pub actions: Vec<String>,
}

/// Moves uids of pods that have no finalizer any more into the counters.
pub(super) fn fold(status: &mut JobStatus, tracked: &BTreeSet<String>) {
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let counted = |uids: &mut Vec<String>| {
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        i32::try_from(before - uids.len()).unwrap_or(i32::MAX)
    };
    status.succeeded = status.succeeded.saturating_add(counted(&mut uncounted.succeeded));
    status.failed = status.failed.saturating_add(counted(&mut uncounted.failed));
}

impl View {
    /// Puts what has finished into the status. `fate` is what becomes of the job, if that is known.
    pub(super) fn track(&mut self, fate: Option<&JobCondition>) -> Tracking {
        let pending = self.pods.iter().filter(|pod| self.is_pending(pod));
        let tracked = pending.clone().map(|pod| pod.metadata.uid.clone()).collect();
        let mut pending: Vec<_> = pending.cloned().collect();
        fold(&mut self.job.status, &tracked);
        if is_indexed(&self.job) {
            pending.sort_by_key(|pod| index_of(pod));
        }
        let mut tracking = Tracking { release: Vec::new(), cut: false, tracked, actions: Vec::new() };
        let mut done = Indexes::parse(&self.job.status.completed_indexes, completions(&self.job));
        let mut new_done = BTreeSet::new();
        for pod in pending {
            if !self.may_release(&pod, fate) {
                continue;
            }
            tracking.actions.extend(self.count(&pod, fate, &done, &mut new_done));
            tracking.release.push(pod);
            let uncounted = self.job.status.uncounted_terminated_pods.clone().unwrap_or_default();
            if new_done.len() + uncounted.succeeded.len() + uncounted.failed.len() >= MAX_UNCOUNTED {
                tracking.cut = true;
                break;
            }
        }
        if is_indexed(&self.job) {
            done.extend(new_done);
            self.job.status.succeeded = done.len();
            self.job.status.completed_indexes = done.to_string();
            self.job.status.failed_indexes = self.given_up.as_ref().map(ToString::to_string);
        }
        if let Some(fate) = fate {
            set(&mut self.job.status.conditions, fate.clone());
        }
        tracking
    }

    /// Whether nothing more is expected of a pod.
    fn may_release(&self, pod: &Pod, fate: Option<&JobCondition>) -> bool {
        if self.job.metadata.deletion_timestamp.is_some() || fate.is_some() || pod.status.phase == SUCCEEDED {
            return true;
        }
        let kept = || self.kept.values().any(|kept| kept.metadata.uid == pod.metadata.uid);
        has_failed(&self.job, pod) && !kept()
    }

    /// Counts a pod. Answers with what the failure policy says of it, where it failed and a rule matches.
    fn count(
        &mut self,
        pod: &Pod,
        fate: Option<&JobCondition>,
        done: &Indexes,
        new_done: &mut BTreeSet<i32>,
    ) -> Option<String> {
        let uid = &pod.metadata.uid;
        let index = valid_index(&self.job, pod);
        let indexed = is_indexed(&self.job);
        let failed = has_failed(&self.job, pod) || fate.is_some_and(|fate| !is_success(fate));
        let valid = !indexed || index.is_some();
        let counts = meaning(&self.job, pod) != Meaning::Ignored;
        let said = action(&self.job, pod).map(str::to_owned);
        let uncounted = self.job.status.uncounted_terminated_pods.get_or_insert_default();
        if pod.status.phase == SUCCEEDED && !uncounted.failed.contains(uid) {
            if indexed {
                new_done.extend(index.filter(|index| !done.contains(*index)));
            } else if !uncounted.succeeded.contains(uid) {
                uncounted.succeeded.push(uid.clone());
            }
        } else if failed && valid && !uncounted.failed.contains(uid) {
            if counts {
                uncounted.failed.push(uid.clone());
            }
            return said;
        }
        None
    }

    /// Ends the job when everything is counted and no pod is left; says whether it did.
    pub(super) fn finish(&mut self, fate: Option<&JobCondition>, tracking: &Tracking) -> bool {
        let Some(fate) = fate else { return false };
        let uncounted = self.job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        if tracking.cut || !uncounted.succeeded.is_empty() || !uncounted.failed.is_empty() || self.terminating > 0 {
            return false;
        }
        let last = terminal(fate, self.now);
        if last.type_ == COMPLETE {
            // A clock that was set back must not keep the job from ending: servers refuse an end before the start.
            self.job.status.completion_time = Some(last.last_transition_time).max(self.job.status.start_time);
        }
        set(&mut self.job.status.conditions, last)
    }
}
