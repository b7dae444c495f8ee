//! Whether a pod may start on this node; critical ones have others make way for them.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};

use super::{Eviction, Inner};
use crate::border::Level;
use crate::pod::admission::{Refusal, Situation, admit, placed, shortages};
use crate::pod::is_critical;
use crate::pod::preemption::{Missing, victims};

const PREEMPTING: &str = "Preempting";

impl Inner {
    pub(super) async fn admit(&self, pod: &Arc<Pod>) -> Result<(), Refusal> {
        // A pod of an earlier kubelet counts with what it was given then.
        let pod = &self.allocations.given(pod);
        match self.judge(pod).await {
            Err(refusal) if is_critical(pod) && refusal.is_shortage() => self.make_room(pod, refusal).await,
            verdict => verdict,
        }
    }

    async fn judge(&self, pod: &Arc<Pod>) -> Result<(), Refusal> {
        let others = self.other_pods(pod);
        let pressures = self.side.node.pressures();
        let mut node = self.side.node.node();
        for fresh in [false, true] {
            if fresh {
                node = self.side.node.fresh_node().await.or(node);
            }
            match admit(pod, &self.situation(node.as_deref(), &others, &pressures)) {
                // Labels may lag behind, above all at start.
                Err(refusal) if refusal.may_be_stale() && !fresh => {}
                verdict => return verdict,
            }
        }
        Ok(())
    }

    fn situation<'a>(
        &'a self,
        node: Option<&'a Node>,
        others: &'a [Arc<Pod>],
        pressures: &'a [String],
    ) -> Situation<'a> {
        let features = self.health.status().and_then(|status| status.features);
        Situation {
            node,
            others,
            pressures,
            shutting_down: self.side.node.shutting_down(),
            unsafe_sysctls: &self.settings.allowed_unsafe_sysctls,
            strict_groups: features.is_some_and(|features| features.supplemental_groups_policy),
            enforces_app_armor: self.settings.enforces_app_armor,
            declared_features: self.settings.declared_features.as_deref(),
        }
    }

    /// Ends other pods so that a critical one has room, if nothing else is in its way.
    async fn make_room(&self, pod: &Arc<Pod>, refusal: Refusal) -> Result<(), Refusal> {
        let Some(node) = self.side.node.node() else { return Err(refusal) };
        let others = self.other_pods(pod);
        if placed(pod, &node, &self.situation(Some(&node), &others, &[])).is_err() {
            return Err(refusal);
        }
        let missing = shortages(pod, &node, &others);
        let missing: Missing = missing.iter().map(|short| (short.name.clone(), short.missing())).collect();
        let victims = victims(pod, &others, &missing).map_err(|error| {
            Refusal::unexpected(&format!("preemption: error finding a set of pods to preempt: {error}"))
        })?;
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
        Ok(())
    }

    pub(super) fn refuse(&self, pod: &Arc<Pod>, refusal: Refusal) {
        let Refusal { reason, message } = refusal;
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
