//! In-place resize: whether a change is admitted, putting it into effect, and telling of it.
//!
//! What is wanted (the spec) becomes what is allocated once the handlers of admission agree; workers see allocated values
//! only.

use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod};
use component_helpers::{pod_requests, qos};
use tokio::time::Instant;

use super::Inner;
use crate::admission::{Operation, Reason, Refusal};
use crate::interfaces::Level;
use crate::pod::status::{Outlook, Pending, Resize, Retry};
use crate::runtime::record::RuntimePod;
use crate::runtime::resize::ResizeError;

impl Inner {
    /// Gives a pod what it wants if that has changed and fits; otherwise it stays as it is and waits.
    pub(super) fn allocate(&self, pod: &Arc<Pod>) -> Arc<Pod> {
        if !self.allocations.differs(pod) {
            self.allocations.update(pod, |state| state.pending = None);
            return self.allocations.given(pod);
        }
        if let Some((detail, message)) = self.infeasible(pod) {
            if self.note_pending(pod, Outlook::Infeasible, message) {
                self.metrics.infeasible_resizes.with(&[detail]).inc();
                self.tell_resize(pod, Level::Warning, "ResizeInfeasible", "Pod resize Infeasible: ", Some(message));
            }
            return self.allocations.given(pod);
        }
        let former = self.allocations.state(&pod.metadata.uid);
        self.allocations.update(pod, |state| state.retry = Retry::default());
        match self.ask(pod, Operation::Resize) {
            Ok(()) => {
                if former.is_deferred() {
                    self.metrics.deferred_resizes.with(&[former.retry.name()]).inc();
                }
                self.tell_resize(pod, Level::Normal, "ResizeStarted", "Pod resize started: ", None);
                // It may have become smaller.
                self.wake_pending_resizes(Retry::PodResized);
            }
            Err(Refusal { reason: Reason::NotWritten, message }) => {
                let meta = &pod.metadata;
                tracing::error!(pod = %meta.name, namespace = %meta.namespace, error = message, "A pod is not resized");
            }
            Err(Refusal { message, .. }) => {
                if self.note_pending(pod, Outlook::Deferred, &message) {
                    self.tell_resize(pod, Level::Warning, "ResizeDeferred", "Pod resize Deferred: ", Some(&message));
                }
            }
        }
        self.allocations.given(pod)
    }

    /// Notes why a pod does not get what it wants; tells whether that is news.
    fn note_pending(&self, pod: &Pod, outlook: Outlook, message: &str) -> bool {
        let pending = Some(Pending { outlook, message: message.to_owned() });
        let news = self.allocations.state(&pod.metadata.uid).pending != pending;
        self.allocations.update(pod, |state| state.pending = pending);
        news
    }

    /// Whether a container that may swap is to have other memory without being started anew: its share of swap would have
    /// to change with it.
    fn swaps_and_changes(&self, pod: &Arc<Pod>) -> bool {
        let given = self.allocations.given(pod);
        let of = |container: &Container| {
            let lists = [&container.resources.requests, &container.resources.limits];
            lists.map(|list| pod_requests::amount(list, "memory"))
        };
        let restarts = |container: &Container| {
            let mut policies = container.resize_policy.iter();
            policies.any(|policy| policy.resource_name == "memory" && policy.restart_policy == "RestartContainer")
        };
        let both = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        both.zip(given.spec.containers.iter().chain(&given.spec.init_containers))
            .any(|(wanted, has)| of(wanted) != of(has) && !restarts(wanted) && self.side.setup.may_swap(&given, has))
    }

    /// Why a pod can never have what it wants while it runs, for metrics and for users.
    fn infeasible(&self, pod: &Arc<Pod>) -> Option<(&'static str, &'static str)> {
        if self.swaps_and_changes(pod) {
            return Some(("swap_limitation", "In-place resize of containers with swap is not supported."));
        }
        if !self.settings.pod_level_resizes && pod.spec.resources != self.allocations.given(pod).spec.resources {
            return Some(("plr_feature_gate_off", "InPlacePodLevelResourcesVerticalScaling is disabled"));
        }
        let topology = self.side.topology.as_ref()?;
        if qos::class_of(pod) != pod_qos_class::GUARANTEED {
            return None;
        }
        let given = self.allocations.given(pod);
        let changes = |kind: &str| {
            let of = |pod: &Pod| pod_requests::amount(&pod_requests::requests(pod), kind);
            let each = |pod: &Pod| {
                let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
                containers.map(|one| pod_requests::amount(&one.resources.requests, kind)).collect::<Vec<_>>()
            };
            of(pod) != of(&given) || each(pod) != each(&given)
        };
        let allowed = self.settings.resizes;
        if topology.cpus.is_static() && !allowed.cpus && changes("cpu") {
            let text = "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"";
            return Some(("guaranteed_pod_cpu_manager_static_policy", text));
        }
        if topology.memory.is_static() && !allowed.memory && changes("memory") {
            let text = "Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"";
            return Some(("guaranteed_pod_memory_manager_static_policy", text));
        }
        None
    }

    /// There may be room now for those who wait for it.
    pub(super) fn wake_pending_resizes(&self, why: Retry) {
        self.allocations.retry(why).iter().for_each(|uid| self.workers.wake(uid));
    }

    /// Counts what a pod asks for that it did not ask for before: what is said of what it asked for then holds no more.
    pub(super) fn note_request(&self, before: &Pod, now: &Pod) {
        if self.metrics.resize_requested(before, now) {
            self.allocations.update(now, |state| state.pending = None);
        }
    }

    /// The other pods of the node with what they have been given.
    pub(super) fn other_pods(&self, pod: &Pod) -> Vec<Arc<Pod>> {
        let others = self.workers.active().into_iter().filter(|other| other.metadata.uid != pod.metadata.uid);
        others.map(|other| self.allocations.given(&other)).collect()
    }

    /// Has the runtime give running containers what the pod has been given; tells whether anything was to be done.
    pub(super) async fn actuate(&self, pod: &Arc<Pod>, seen: &RuntimePod) -> Result<bool, ResizeError> {
        let former = self.runtime.former(pod, self.allocations.state(&pod.metadata.uid).in_progress);
        if former.is_none() && self.runtime.resized(pod, None, seen).is_empty() {
            self.finish_resize(pod);
            return Ok(false);
        }
        self.allocations.update(pod, |state| state.in_progress = true);
        let began = Instant::now();
        let put = self.put_into_effect(pod, former.as_ref(), seen).await;
        self.metrics.resize_actuated(began.elapsed(), put.is_ok());
        let Err(error) = put else {
            self.finish_resize(pod);
            return Ok(true);
        };
        let text = error.to_string();
        let news = self.allocations.state(&pod.metadata.uid).error.as_ref() != Some(&text);
        self.allocations.update(pod, |state| state.error = Some(text.clone()));
        if news {
            self.tell_resize(pod, Level::Warning, "ResizeError", "Pod resize error: ", Some(&text));
        }
        Err(error)
    }

    async fn put_into_effect(
        &self,
        pod: &Arc<Pod>,
        former: Option<&Pod>,
        seen: &RuntimePod,
    ) -> Result<(), ResizeError> {
        self.runtime.check_resize(pod, former, seen).await?;
        // Parents must grow before their children and shrink after them; one of the two attempts is the right one.
        let early = self.side.cgroups.ensure(pod).await;
        if early.is_ok() {
            self.runtime.tell_sandbox(pod, seen).await;
        }
        self.runtime.actuate(pod, former, seen).await?;
        if early.is_err() {
            self.side.cgroups.ensure(pod).await?;
            self.runtime.tell_sandbox(pod, seen).await;
        }
        self.runtime.actuated.set_pod(pod);
        Ok(())
    }

    fn finish_resize(&self, pod: &Arc<Pod>) {
        if self.allocations.state(&pod.metadata.uid).in_progress {
            self.allocations
                .update(pod, |state| *state = Resize { pending: state.pending.take(), ..Resize::default() });
            self.tell_resize(pod, Level::Normal, "ResizeCompleted", "Pod resize completed: ", None);
        }
    }

    fn tell_resize(&self, pod: &Pod, level: Level, reason: &str, prefix: &str, error: Option<&str>) {
        let list = |containers: &[api_types::core_v1::Container]| {
            let items = containers.iter().map(|container| {
                format!("{{\"name\":{:?},\"resources\":{}}}", container.name, json::encode(&container.resources))
            });
            items.collect::<Vec<_>>().join(",")
        };
        let init = &pod.spec.init_containers;
        let init = if init.is_empty() { String::new() } else { format!("\"initContainers\":[{}],", list(init)) };
        let containers = list(&pod.spec.containers);
        let generation = pod.metadata.generation;
        let error = error.map(|error| format!(",\"error\":{}", serde_json::Value::from(error))).unwrap_or_default();
        let text = format!("{prefix}{{{init}\"containers\":[{containers}],\"generation\":{generation}{error}}}");
        self.runtime.pod_event(pod, level, reason, &text);
    }
}
