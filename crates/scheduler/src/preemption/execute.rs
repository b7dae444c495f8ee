//! Carries a preemption out: clears nominations of less important pods, marks the victims and deletes them.

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use base::SharedClock;
use component_helpers::conditions;
use futures_util::future::try_join_all;

use crate::framework::{Candidate, PreemptionGate, WaitingPods};
use crate::pod_info::PodInfo;
use crate::queue::SchedulingQueue;
use crate::writer::{ClusterWriter, EventSink, PodEvent, Severity, WriteError};

/// What a preemption needs.
pub(crate) struct Execution {
    pub(crate) writer: Arc<dyn ClusterWriter>,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) queue: Arc<SchedulingQueue>,
    pub(crate) gate: Arc<PreemptionGate>,
    pub(crate) waiting: Arc<WaitingPods>,
    pub(crate) clock: SharedClock,
    pub(crate) preemptor: Arc<PodInfo>,
    pub(crate) candidate: Candidate,
}

impl Execution {
    /// Closes the gate; nothing is to be done when all victims are going already.
    pub(crate) fn prepare(&mut self) -> bool {
        self.candidate.victims.retain(|victim| !victim.is_terminating());
        let Some(last) = self.candidate.victims.last() else { return false };
        self.gate.close(self.preemptor.uid(), last.uid());
        true
    }

    /// All victims but the last, then the last, so that its end means that all is done. After a failure the last one
    /// is left alone and the preemptor is tried again at once.
    pub(crate) async fn run(self) {
        let cleared = self.clear_nominations().await;
        let outcome = self.evict_all().await.and(cleared);
        self.gate.open(self.preemptor.uid());
        if let Err(error) = outcome {
            tracing::error!(%error, preemptor = %self.preemptor.full_name(), node = %self.candidate.node, "Error occurred during async preemption");
            self.queue.activate(&self.preemptor.pod);
        }
    }

    async fn evict_all(&self) -> Result<(), WriteError> {
        let Some((last, first)) = self.candidate.victims.split_last() else { return Ok(()) };
        // At most as many as pods fit on a node.
        try_join_all(first.iter().map(|victim| self.evict(&victim.pod))).await?;
        self.evict(&last.pod).await
    }

    /// Pods of lower priority that had this node in mind may look elsewhere.
    async fn clear_nominations(&self) -> Result<(), WriteError> {
        let nominated = self.queue.nominator().pods();
        let mut outcome = Ok(());
        for pod in nominated.get(&*self.candidate.node).into_iter().flatten() {
            if pod.priority >= self.preemptor.priority {
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
        let waiting = self.waiting.get(&victim.metadata.uid);
        if let Some(waiting) = waiting {
            // The room that comes back is to find the preemptor ready.
            self.gate.victim_gone(&victim.metadata.uid);
            if waiting.preempt() {
                self.tell(victim, " (in kube-scheduler memory).");
                return Ok(());
            }
        }
        let mut status = victim.status.clone();
        let scheduler = &self.preemptor.pod.spec.scheduler_name;
        let condition = PodCondition {
            type_: "DisruptionTarget".into(),
            status: "True".into(),
            reason: "PreemptionByScheduler".into(),
            message: format!("{scheduler}: preempting to accommodate a higher priority pod"),
            observed_generation: victim.metadata.generation,
            ..PodCondition::default()
        };
        conditions::set(&mut status.conditions, condition, Time::from(self.clock.wall()));
        match self.writer.patch_status(victim, &status).await {
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
            scheduler: &self.preemptor.pod.spec.scheduler_name,
            about: victim,
            related: Some(&self.preemptor.pod),
            severity: Severity::Normal,
            reason: "Preempted",
            action: "Preempting",
            note: format!("Preempted by pod {} on node {}{how}", self.preemptor.uid(), self.candidate.node),
        });
    }
}
