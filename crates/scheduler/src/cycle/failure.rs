//! What happens to a pod that could not be scheduled: it goes back into the queue, and people are told why.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition, PodStatus};
use component_helpers::conditions;
use tokio::time::Instant;

use super::Scheduler;
use crate::framework::{Code, Diagnosis, Nomination, Profile, Status};
use crate::metrics::AttemptResult;
use crate::queued_pod::QueuedPod;
use crate::writer::{ClusterWriter, PodEvent, Severity, WriteError};

/// Events longer than this, in bytes, are cut.
const MAX_NOTE: usize = 1024;
const NOTE_END: &str = " ...";

/// Why a pod could not be scheduled.
pub(super) struct Failure {
    code: Code,
    message: String,
    unschedulable: BTreeSet<&'static str>,
    pending: BTreeSet<&'static str>,
}

impl Failure {
    /// Something other than a rejection by plugins.
    pub(super) fn of(status: &Status) -> Self {
        Self { code: status.code, message: status.message(), unschedulable: BTreeSet::new(), pending: BTreeSet::new() }
    }

    /// A plugin says no to a pod that has a node, in its own words.
    pub(super) fn rejected_by(plugin: &'static str, status: &Status) -> Self {
        let mut failure = Self::of(status);
        if status.code.is_rejection() {
            failure.unschedulable.insert(plugin);
        }
        failure
    }

    /// No node fits.
    pub(super) fn no_fit(diagnosis: Diagnosis) -> Self {
        Self {
            code: Code::Unschedulable,
            message: diagnosis.message(),
            unschedulable: diagnosis.unschedulable_plugins,
            pending: diagnosis.pending_plugins,
        }
    }

    /// The same, but what stood in the way may be gone by now: the pod is tried again soon.
    pub(super) fn passing(mut self) -> Self {
        self.unschedulable.clear();
        self.pending.clear();
        self
    }

    /// A plugin said no after the node was chosen; told as if it were the only node.
    pub(super) fn of_chosen(status: &Status) -> Self {
        if !status.code.is_rejection() {
            return Self::of(status);
        }
        let mut diagnosis = Diagnosis { nodes: 1, ..Diagnosis::default() };
        diagnosis.blame(status);
        diagnosis.statuses.insert(0, status.clone());
        Self::no_fit(diagnosis)
    }
}

/// The status that tells why a pod could not be scheduled.
pub struct StatusWrite {
    writer: Arc<dyn ClusterWriter>,
    pod: Arc<Pod>,
    status: PodStatus,
}

impl StatusWrite {
    /// Writes it, unless nothing changed.
    pub async fn run(self) {
        if self.status == self.pod.status {
            return;
        }
        match self.writer.patch_status(&self.pod, &self.status).await {
            Ok(()) | Err(WriteError::NotFound(_)) => {}
            Err(error) => {
                tracing::error!(%error, namespace = %self.pod.metadata.namespace, name = %self.pod.metadata.name, "Error updating pod");
            }
        }
    }
}

impl Scheduler {
    /// Puts the pod back, records the event, and gives what is to be written.
    pub(super) fn failed(
        &self,
        mut pod: QueuedPod,
        profile: &Profile,
        failure: Failure,
        nomination: Nomination,
        started: Instant,
    ) -> StatusWrite {
        let rejected = failure.code.is_rejection();
        let took = self.clock.monotonic().saturating_duration_since(started);
        let result = if rejected { AttemptResult::Unschedulable } else { AttemptResult::Error };
        self.metrics.attempt(result, &profile.name, took);
        if rejected {
            tracing::info!(v = 2, pod = %pod.info.full_name(), reason = %failure.message, "Unable to schedule pod; no fit; waiting");
        } else {
            tracing::error!(error = %failure.message, pod = %pod.info.full_name(), "Error scheduling pod; retrying");
        }
        pod.unschedulable_plugins = failure.unschedulable;
        pod.pending_plugins = failure.pending;
        let info = Arc::clone(&pod.info);
        if !self.put_back(pod, &nomination) {
            let status = info.pod.status.clone();
            return StatusWrite { writer: Arc::clone(&self.writer), pod: Arc::clone(&info.pod), status };
        }
        self.events.event(&PodEvent {
            scheduler: &profile.name,
            about: &info.pod,
            related: None,
            severity: Severity::Warning,
            reason: "FailedScheduling",
            action: "Scheduling",
            note: shortened(&failure.message),
        });
        let reason = if rejected { "Unschedulable" } else { "SchedulerError" };
        let now = Time::from(self.clock.wall());
        let status = unscheduled_status(&info.pod, reason, &failure.message, &nomination, now);
        StatusWrite { writer: Arc::clone(&self.writer), pod: Arc::clone(&info.pod), status }
    }

    /// Requeues the newest version of the pod; false when the failure is no news any more: the pod has a node after all, so
    /// that its status belongs to the kubelet, or another pod took its name.
    fn put_back(&self, mut pod: QueuedPod, nomination: &Nomination) -> bool {
        let meta = &pod.info.pod.metadata;
        let uid = meta.uid.clone();
        let newest = self.pods.find(&meta.namespace, &meta.name);
        let Some(newest) = newest else {
            tracing::info!(v = 2, pod = %pod.info.full_name(), "Pod doesn't exist in informer cache");
            self.queue.done(&uid);
            return true;
        };
        if newest.metadata.uid != uid {
            self.queue.done(&uid);
            return false;
        }
        if !newest.spec.node_name.is_empty() {
            tracing::info!(v = 2, pod = %pod.info.full_name(), "Pod has been assigned to node. Abort adding it back to queue.");
            self.queue.done(&uid);
            return false;
        }
        pod.info = self.cache.pod_info(newest);
        let info = Arc::clone(&pod.info);
        if let Err(error) = self.queue.requeue(pod) {
            tracing::error!(%error, "Error occurred");
        }
        self.queue.nominator().set(&info, &nominated_node(&info.pod, nomination));
        true
    }
}

/// The pod's status with the condition and the nomination.
fn unscheduled_status(pod: &Pod, reason: &str, message: &str, nomination: &Nomination, now: Time) -> PodStatus {
    let mut status = pod.status.clone();
    let condition = PodCondition {
        type_: "PodScheduled".into(),
        status: "False".into(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    let known = conditions::find(&status.conditions, "PodScheduled");
    let same = known.is_some_and(|known| {
        known.status == condition.status && known.reason == condition.reason && known.message == condition.message
    });
    if !same {
        conditions::set(&mut status.conditions, condition, now);
    }
    status.nominated_node_name = nominated_node(pod, nomination);
    status
}

/// The nominated node that a pod's status should have.
fn nominated_node(pod: &Pod, nomination: &Nomination) -> String {
    match nomination {
        Nomination::Keep => pod.status.nominated_node_name.clone(),
        Nomination::Clear => String::new(),
        Nomination::Set(node) => node.clone(),
    }
}

/// Cut at a character boundary.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_NOTE {
        return text.to_owned();
    }
    let mut end = MAX_NOTE - NOTE_END.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{NOTE_END}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(1000);
        let cut = shortened(&long);
        assert!(cut.len() <= MAX_NOTE && cut.ends_with(NOTE_END), "{}", cut.len());
    }
}
