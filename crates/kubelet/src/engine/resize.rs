//! In-place resize: which resources each pod has been given, whether a change fits, and telling of it.
//!
//! What is wanted (the spec) becomes what is allocated once it fits beside the other pods; workers see allocated values
//! only. Kept on disk, so that after a restart a pod still has what it was given and not what it asks for meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::Pod;
use parking_lot::Mutex;

use super::Inner;
use crate::border::Level;
use crate::pod::admission::{Refusal, fits};
use crate::pod::status::Resize;
use crate::runtime::checkpoint::{Checkpoint, CheckpointError, Entries, Given};
use crate::runtime::record::RuntimePod;

pub(super) struct Allocations {
    entries: Mutex<HashMap<String, Entry>>,
    file: Checkpoint,
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
    pub(super) fn new(root: &Path) -> Self {
        Self { entries: Mutex::default(), file: Checkpoint::new(root, "allocated_pods_state") }
    }

    /// Takes over what an earlier kubelet gave.
    pub(super) fn restore(&self) -> Result<(), CheckpointError> {
        let saved = self.file.load()?.into_iter();
        *self.entries.lock() = saved.map(|(uid, given)| (uid, Entry { given, state: Resize::default() })).collect();
        Ok(())
    }

    fn note(&self, entries: &HashMap<String, Entry>) {
        self.file.note(&all_given(entries));
    }

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

    pub(super) fn keep(&self, uids: &BTreeSet<String>) {
        let mut entries = self.entries.lock();
        let before = entries.len();
        entries.retain(|uid, _| uids.contains(uid));
        if entries.len() != before {
            self.note(&entries);
        }
    }

    /// Pods that wait for room.
    fn pending(&self) -> Vec<String> {
        let entries = self.entries.lock();
        entries.iter().filter(|(_, entry)| entry.state.pending.is_some()).map(|(uid, _)| uid.clone()).collect()
    }

    /// Whether the pod wants something else than it has. A pod that is seen for the first time has what it wants.
    fn differs(&self, pod: &Pod) -> bool {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&pod.metadata.uid) {
            return entry.given != wanted(pod);
        }
        entries.insert(pod.metadata.uid.clone(), Entry { given: wanted(pod), state: Resize::default() });
        self.note(&entries);
        false
    }

    fn settle(&self, pod: &Pod, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            change(entry);
        }
    }

    /// Gives a pod what it wants, once that is on disk: a kubelet that comes back must know what it promised. Where it
    /// cannot be written, the pod keeps what it has.
    fn give(&self, pod: &Pod) -> Result<(), CheckpointError> {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&pod.metadata.uid) else { return Ok(()) };
        let former = std::mem::replace(&mut entry.given, wanted(pod));
        let saved = self.file.save(&all_given(&entries));
        if let Some(entry) = entries.get_mut(&pod.metadata.uid) {
            match saved {
                Ok(()) => entry.state = Resize { in_progress: true, ..Resize::default() },
                Err(_) => entry.given = former,
            }
        }
        saved
    }
}

fn all_given(entries: &HashMap<String, Entry>) -> Entries {
    entries.iter().map(|(uid, entry)| (uid.clone(), entry.given.clone())).collect()
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
            Ok(()) => match self.allocations.give(pod) {
                Ok(()) => {
                    self.tell_resize(pod, Level::Normal, "ResizeStarted", "Pod resize started: ", None);
                    // It may have become smaller.
                    self.wake_pending_resizes();
                }
                Err(error) => {
                    let meta = &pod.metadata;
                    tracing::error!(pod = %meta.name, namespace = %meta.namespace, %error, "A pod is not resized");
                }
            },
            Err(Refusal { message, .. }) => {
                let news = self.allocations.state(&pod.metadata.uid).pending.as_ref() != Some(&message);
                self.allocations.settle(pod, |entry| entry.state.pending = Some(message.clone()));
                if news {
                    self.tell_resize(pod, Level::Warning, "ResizeDeferred", "Pod resize Deferred: ", Some(&message));
                }
            }
        }
        self.allocations.given(pod)
    }

    /// There may be room now for those who wait for it.
    pub(super) fn wake_pending_resizes(&self) {
        self.allocations.pending().iter().for_each(|uid| self.workers.wake(uid));
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
        self.allocations.settle(pod, |entry| entry.state.in_progress = true);
        let Err(error) = self.put_into_effect(pod, seen).await else { return self.finish_resize(pod) };
        let news = self.allocations.state(&pod.metadata.uid).error.as_ref() != Some(&error);
        self.allocations.settle(pod, |entry| entry.state.error = Some(error.clone()));
        if news {
            self.tell_resize(pod, Level::Warning, "ResizeError", "Pod resize error: ", Some(&error));
        }
        Err(error)
    }

    async fn put_into_effect(&self, pod: &Arc<Pod>, seen: &RuntimePod) -> Result<(), String> {
        self.runtime.check_resize(pod, seen).await?;
        // Parents must grow before their children and shrink after them; one of the two attempts is the right one.
        let early = self.side.cgroups.ensure(pod).await;
        self.runtime.actuate(pod, seen).await?;
        if early.is_err() {
            self.side.cgroups.ensure(pod).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn finish_resize(&self, pod: &Arc<Pod>) -> Result<(), String> {
        if self.allocations.state(&pod.metadata.uid).in_progress {
            self.allocations
                .settle(pod, |entry| entry.state = Resize { pending: entry.state.pending.take(), ..Resize::default() });
            self.tell_resize(pod, Level::Normal, "ResizeCompleted", "Pod resize completed: ", None);
        }
        Ok(())
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
