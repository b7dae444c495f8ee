//! In-place resize: which resources each pod has been given, whether a change fits, and telling of it.
//!
//! What is wanted (the spec) becomes what is allocated once it fits beside the other pods; workers see allocated values
//! only. Kept in memory: after a restart of the kubelet the spec counts as allocated.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::{Pod, ResourceRequirements};
use parking_lot::Mutex;

use super::Inner;
use crate::border::Level;
use crate::pod::admission::{Refusal, fits};
use crate::pod::status::Resize;
use crate::runtime::record::RuntimePod;

/// What the containers of one pod have been given, by name; the pod's own under the empty name.
type Given = BTreeMap<String, ResourceRequirements>;

#[derive(Default)]
pub(super) struct Allocations {
    entries: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    given: Given,
    state: Resize,
}

fn wanted(pod: &Pod) -> Given {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let mut out: Given = containers.map(|container| (container.name.clone(), container.resources.clone())).collect();
    out.extend(pod.spec.resources.clone().map(|resources| (String::new(), resources)));
    out
}

impl Allocations {
    /// The pod with what it has been given in place of what it wants.
    pub(super) fn given(&self, pod: &Arc<Pod>) -> Arc<Pod> {
        let entries = self.entries.lock();
        let Some(entry) = entries.get(&pod.metadata.uid).filter(|entry| entry.given != wanted(pod)) else {
            return Arc::clone(pod);
        };
        let mut out = Pod::clone(pod);
        for container in out.spec.init_containers.iter_mut().chain(&mut out.spec.containers) {
            if let Some(given) = entry.given.get(&container.name) {
                container.resources = given.clone();
            }
        }
        out.spec.resources = entry.given.get("").cloned();
        Arc::new(out)
    }

    pub(super) fn state(&self, uid: &str) -> Resize {
        self.entries.lock().get(uid).map(|entry| entry.state.clone()).unwrap_or_default()
    }

    pub(super) fn keep(&self, uids: &std::collections::BTreeSet<String>) {
        self.entries.lock().retain(|uid, _| uids.contains(uid));
    }

    /// Whether the pod wants something else than it has.
    fn differs(&self, pod: &Pod) -> bool {
        let mut entries = self.entries.lock();
        let fresh = || Entry { given: wanted(pod), state: Resize::default() };
        entries.entry(pod.metadata.uid.clone()).or_insert_with(fresh).given != wanted(pod)
    }

    fn settle(&self, pod: &Pod, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            change(entry);
        }
    }
}

impl Inner {
    /// Gives a pod what it wants if that has changed and fits; otherwise it stays as it is and waits.
    pub(super) fn allocate(&self, pod: &Arc<Pod>) -> Arc<Pod> {
        if !self.allocations.differs(pod) {
            self.allocations.settle(pod, |entry| entry.state.pending = None);
            return self.allocations.given(pod);
        }
        let others = self.other_pods(pod);
        match self.side.node.node().map_or(Ok(()), |node| fits(pod, &node, &others)) {
            Ok(()) => {
                self.allocations.settle(pod, |entry| {
                    entry.given = wanted(pod);
                    entry.state = Resize { pending: None, in_progress: true };
                });
                self.tell_resize(pod, Level::Normal, "ResizeStarted", "Pod resize started: ");
            }
            Err(Refusal { message, .. }) => {
                let news = self.allocations.state(&pod.metadata.uid).pending.as_ref() != Some(&message);
                self.allocations.settle(pod, |entry| entry.state.pending = Some(message));
                if news {
                    self.tell_resize(pod, Level::Warning, "ResizeDeferred", "Pod resize Deferred: ");
                }
            }
        }
        self.allocations.given(pod)
    }

    /// The other pods of the node with what they have been given.
    pub(super) fn other_pods(&self, pod: &Pod) -> Vec<Arc<Pod>> {
        let others = self.workers.active().into_iter().filter(|other| other.metadata.uid != pod.metadata.uid);
        others.map(|other| self.allocations.given(&other)).collect()
    }

    /// Has the runtime give running containers what the pod has been given.
    pub(super) async fn actuate(&self, pod: &Arc<Pod>, seen: &RuntimePod) -> Result<(), String> {
        if self.runtime.resized(pod, seen).is_empty() {
            return self.finish_resize(pod);
        }
        // Parents must grow before their children and shrink after them; one of the two attempts is the right one.
        let early = self.side.cgroups.ensure(pod);
        if let Err(error) = self.runtime.actuate(pod, seen).await {
            self.tell_resize(pod, Level::Warning, "ResizeError", "Pod resize error: ");
            return Err(error);
        }
        if early.is_err() {
            self.side.cgroups.ensure(pod).map_err(|error| error.to_string())?;
        }
        self.finish_resize(pod)
    }

    fn finish_resize(&self, pod: &Arc<Pod>) -> Result<(), String> {
        if self.allocations.state(&pod.metadata.uid).in_progress {
            self.allocations.settle(pod, |entry| entry.state.in_progress = false);
            self.tell_resize(pod, Level::Normal, "ResizeCompleted", "Pod resize completed: ");
        }
        Ok(())
    }

    fn tell_resize(&self, pod: &Pod, level: Level, reason: &str, prefix: &str) {
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
        let text = format!("{prefix}{{{init}\"containers\":[{containers}],\"generation\":{generation}}}");
        self.runtime.pod_event(pod, level, reason, &text);
    }
}
