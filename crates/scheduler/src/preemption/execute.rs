//! Carries a preemption out: clears nominations of less important pods, marks the victims and deletes them.

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use api_types::scheduling_v1alpha2::PodGroup;
use base::SharedClock;
use client::object_reference;
use component_base::Feature;
use component_helpers::conditions;
use futures_util::future::try_join_all;

use super::units::priority_of;
use crate::framework::{Candidate, GroupKey, PreemptionGate, PreemptorKey, WaitingPods};
use crate::metrics::SchedulerMetrics;
use crate::pod_info::PodInfo;
use crate::queue::SchedulingQueue;
use crate::writer::{ClusterWriter, EventSink, PodEvent, Severity, WriteError};

/// Others are evicted while the preemptor waits in the queue already (KEP-4832).
pub(crate) const ASYNC_PREEMPTION: Feature = Feature::named("SchedulerAsyncPreemption");

/// What a preemption needs.
pub(crate) struct Execution {
    pub(crate) writer: Arc<dyn ClusterWriter>,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) queue: Arc<SchedulingQueue>,
    pub(crate) gate: Arc<PreemptionGate>,
    pub(crate) waiting: Arc<WaitingPods>,
    pub(crate) clock: SharedClock,
    pub(crate) metrics: Arc<SchedulerMetrics>,
    pub(crate) preemptor: Preemptor,
    pub(crate) candidate: Candidate,
}

/// For whom others are evicted.
pub(crate) enum Preemptor {
    Pod(Arc<PodInfo>),
    /// The group, and its pods that wait.
    Group(Arc<PodGroup>, Vec<Arc<PodInfo>>),
}

impl Preemptor {
    fn key(&self) -> PreemptorKey {
        match self {
            Self::Pod(pod) => PreemptorKey::Pod(pod.uid().to_owned()),
            Self::Group(group, _) => PreemptorKey::Group(GroupKey::named(group)),
        }
    }

    /// Its pods.
    fn pods(&self) -> &[Arc<PodInfo>] {
        match self {
            Self::Pod(pod) => std::slice::from_ref(pod),
            Self::Group(_, pods) => pods,
        }
    }

    fn object(&self) -> &dyn Object {
        match self {
            Self::Pod(pod) => &*pod.pod,
            Self::Group(group, _) => &**group,
        }
    }

    fn priority(&self) -> i32 {
        match self {
            Self::Pod(pod) => pod.priority,
            Self::Group(group, _) => priority_of(group),
        }
    }

    /// As people are told of it.
    fn noun(&self) -> &'static str {
        match self {
            Self::Pod(_) => "pod",
            Self::Group(..) => "podgroup",
        }
    }

    /// The scheduler of its pods, which have the same.
    fn scheduler(&self) -> &str {
        self.pods().first().map_or("", |pod| &pod.pod.spec.scheduler_name)
    }
}

impl Execution {
    /// Closes the gate; nothing is to be done when all victims are going already.
    pub(crate) fn prepare(&mut self) -> bool {
        self.candidate.victims.retain(|victim| !victim.is_terminating());
        let Some(last) = self.candidate.victims.last() else { return false };
        self.gate.close(self.preemptor.key(), last.uid());
        true
    }

    /// All victims but the last, then the last, so that its end means that all is done. After a failure the last one
    /// is left alone and the preemptor is tried again at once.
    pub(crate) async fn run(self) {
        let started = self.clock.monotonic();
        let cleared = self.clear_nominations().await;
        let outcome = self.evict_all().await.and(cleared);
        self.metrics.preempted(outcome.is_ok(), self.clock.monotonic().saturating_duration_since(started));
        self.gate.open(&self.preemptor.key());
        if let Err(error) = &outcome {
            let meta = self.preemptor.object().meta();
            tracing::error!(%error, namespace = %meta.namespace, preemptor = %meta.name, node = %self.candidate.node, "Error occurred during async preemption");
        }
        // The end of the last victim wakes a pod. What has held a group's pods back need not have been room.
        if outcome.is_err() || matches!(self.preemptor, Preemptor::Group(..)) {
            self.preemptor.pods().iter().for_each(|pod| self.queue.activate(&pod.pod));
        }
    }

    /// All victims at once, before the preemptor is back in the queue: nobody waits for the last one. A failure ends it.
    pub(crate) async fn run_at_once(self) -> Result<(), WriteError> {
        let going = self.candidate.victims.iter().filter(|victim| !victim.is_terminating());
        try_join_all(going.map(|victim| self.evict(&victim.pod))).await?;
        if let Err(error) = self.clear_nominations().await {
            let meta = self.preemptor.object().meta();
            tracing::error!(%error, namespace = %meta.namespace, preemptor = %meta.name, "Cannot clear 'NominatedNodeName' field");
        }
        Ok(())
    }

    async fn evict_all(&self) -> Result<(), WriteError> {
        let Some((last, first)) = self.candidate.victims.split_last() else { return Ok(()) };
        // At most as many as pods fit on a node, or on all nodes for a group.
        try_join_all(first.iter().map(|victim| self.evict(&victim.pod))).await?;
        self.evict(&last.pod).await
    }

    /// Pods of lower priority that had this node in mind may look elsewhere.
    async fn clear_nominations(&self) -> Result<(), WriteError> {
        let nominated = self.queue.nominator().pods();
        let mut outcome = Ok(());
        for pod in nominated.get(&*self.candidate.node).into_iter().flatten() {
            if pod.priority >= self.preemptor.priority() {
                continue;
            }
            let mut status = pod.pod.status.clone();
            status.nominated_node_name.clear();
            self.queue.nominator().remove(pod.uid());
            match self.writer.patch_status(&pod.pod, &status).await {
                Ok(()) | Err(WriteError::NotFound(_)) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    async fn evict(&self, victim: &Pod) -> Result<(), WriteError> {
        let uid = &victim.metadata.uid;
        if self.waiting.holds(uid) {
            // The room that comes back is to find the preemptor ready.
            self.gate.victim_gone(uid);
            if self.waiting.preempt(uid, super::NAME) {
                self.tell(victim, " (in kube-scheduler memory).");
                return Ok(());
            }
        }
        let mut status = victim.status.clone();
        let (scheduler, noun) = (self.preemptor.scheduler(), self.preemptor.noun());
        let condition = PodCondition {
            type_: "DisruptionTarget".into(),
            status: "True".into(),
            reason: "PreemptionByScheduler".into(),
            message: format!("{scheduler}: preempting to accommodate a higher priority {noun}"),
            observed_generation: victim.metadata.generation,
            ..PodCondition::default()
        };
        conditions::set(&mut status.conditions, condition, Time::from(self.clock.wall()));
        match self.writer.patch_victim(victim, &status).await {
            Err(WriteError::NotFound(_)) => return Ok(()),
            outcome => outcome?,
        }
        match self.writer.delete(victim).await {
            Err(WriteError::NotFound(_)) => return Ok(()),
            outcome => outcome?,
        }
        self.tell(victim, "");
        Ok(())
    }

    /// What people see in the victim's events.
    fn tell(&self, victim: &Pod, how: &str) {
        self.events.event(&PodEvent {
            scheduler: self.preemptor.scheduler(),
            about: victim,
            related: Some(object_reference(self.preemptor.object())),
            severity: Severity::Normal,
            reason: "Preempted",
            action: "Preempting",
            note: format!(
                "Preempted by {} {} on node {}{how}",
                self.preemptor.noun(),
                self.preemptor.object().meta().uid,
                self.candidate.node
            ),
        });
    }
}
