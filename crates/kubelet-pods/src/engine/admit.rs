//! Whether a pod may start on this node; critical ones have others make way for them.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};

use super::{Eviction, Inner};
use crate::admission::{Admitted, Attempt, Missing, Operation, Refusal, Remedy, Room, Situation, shortages, victims};
use crate::interfaces::Level;
use crate::pod::is_critical;

const PREEMPTING: &str = "Preempting";

impl Inner {
    /// Whether a new pod may run; what it is given is reserved then.
    pub(super) async fn admit(&self, pod: &Arc<Pod>) -> Result<(), Refusal> {
        // A pod of an earlier kubelet counts with what it was given then.
        let pod = &self.allocations.given(pod);
        let mut node = self.side.node.node();
        let mut answer = self.ask_of(pod, Operation::Add, Room::Counted, node.as_deref());
        if answer.as_ref().is_err_and(|refusal| refusal.remedy() == Remedy::FreshNode) {
            node = self.side.node.fresh_node().await.or(node);
            answer = self.ask_of(pod, Operation::Add, Room::Counted, node.as_deref());
        }
        match answer {
            Err(refusal) if is_critical(pod) && refusal.remedy() == Remedy::Preemption => {
                self.make_room(pod, refusal).await
            }
            answer => {
                answer?.confirmed().await?.commit();
                Ok(())
            }
        }
    }

    /// Whether a pod may have what it asks for now; it is reserved then.
    pub(super) fn ask(&self, pod: &Pod, operation: Operation) -> Result<(), Refusal> {
        let node = self.side.node.node();
        self.ask_of(pod, operation, Room::Counted, node.as_deref()).map(Admitted::commit)
    }

    fn ask_of(&self, pod: &Pod, operation: Operation, room: Room, node: Option<&Node>) -> Result<Admitted, Refusal> {
        let (others, pressures) = (self.other_pods(pod), self.side.node.pressures());
        let status = self.health.status();
        let declared = self.settings.declared_features.as_ref().map(|declared| match &status {
            Some(status) => declared.with(status.features.as_ref()),
            None => declared.unknown_runtime(),
        });
        let features = status.and_then(|status| status.features);
        let situation = Situation {
            node,
            others: &others,
            pressures: &pressures,
            shutting_down: self.side.node.shutting_down(),
            unsafe_sysctls: &self.settings.allowed_unsafe_sysctls,
            strict_groups: features.is_some_and(|features| features.supplemental_groups_policy),
            comparing: self.settings.comparing,
            enforces_app_armor: self.settings.enforces_app_armor,
            pod_level_resources: self.settings.pod_level_resources,
            counts_claims: self.settings.node_allocatable_claims,
            declared_features: declared.as_deref(),
        };
        self.admission.admit(&Attempt { pod, operation, room, situation })
    }

    /// Ends other pods so that a critical one has room, if nothing else is in its way. What it is given is held from
    /// before the first of them ends, and given back if they would not do.
    async fn make_room(&self, pod: &Arc<Pod>, refusal: Refusal) -> Result<(), Refusal> {
        let Some(node) = self.side.node.node() else { return Err(refusal) };
        let Ok(admitted) = self.ask_of(pod, Operation::Add, Room::Made, Some(&node)) else { return Err(refusal) };
        let admitted = admitted.confirmed().await?;
        let others = self.other_pods(pod);
        let short = shortages(pod, &node, &others, self.settings.node_allocatable_claims);
        let missing: Missing = short.iter().map(|short| (short.name.clone(), short.missing())).collect();
        let victims = victims(pod, &others, &missing)?;
        let signal = missing.keys().next().map_or("", String::as_str);
        for victim in victims {
            self.metrics.preemptions.with(&[signal]).inc();
            let (uid, name) = (&victim.metadata.uid, &victim.metadata.name);
            tracing::info!(pod = %name, namespace = %victim.metadata.namespace, "Preempting a pod to admit a critical one");
            let eviction = Eviction {
                reason: PREEMPTING.to_owned(),
                message: "Preempted in order to admit critical pod".to_owned(),
                grace: None,
                condition_message: Some("Pod was preempted by Kubelet to accommodate a critical pod.".to_owned()),
                annotations: Default::default(),
            };
            if let Err(error) = self.evict(uid, eviction).await {
                // It goes on ending; the newcomer starts beside it.
                tracing::error!(pod = %name, %error, "Failed to preempt a pod");
            }
        }
        admitted.commit();
        Ok(())
    }

    pub(super) fn refuse(&self, pod: &Arc<Pod>, refusal: Refusal) {
        let (reason, message) = (refusal.reason.to_string(), refusal.message);
        self.metrics.refused(&reason);
        tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, %reason, %message, "Pod rejected");
        self.refused.lock().insert(pod.metadata.uid.clone());
        self.runtime.pod_event(pod, Level::Warning, &reason, &message);
        let mut status = pod.status.clone();
        "Failed".clone_into(&mut status.phase);
        status.reason = reason;
        status.message = format!("Pod was rejected: {message}");
        component_helpers::qos::class_of(pod).clone_into(&mut status.qos_class);
        status.container_statuses.clear();
        status.init_container_statuses.clear();
        status.ephemeral_container_statuses.clear();
        status.start_time = status.start_time.or(Some(self.now()));
        status.observed_generation = pod.metadata.generation;
        self.board.set(pod, status);
    }
}
