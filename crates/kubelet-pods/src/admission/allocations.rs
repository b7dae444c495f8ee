//! Which resources each pod has been given: what it asked for when it was admitted, and at every resize that fitted.
//!
//! Kept on disk, so that after a restart a pod still has what it was given and not what it asks for meanwhile. Upstream:
//! the allocation manager, KEP-1287.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use api_types::core_v1::Pod;
use parking_lot::Mutex;

use super::{Attempt, Handler, Operation, Refusal, Reservation};
use crate::pod::status::{Resize, Retry};
use crate::runtime::checkpoint::{Checkpoint, CheckpointError, Entries, Given};

/// What pods have been given, by uid.
pub(crate) struct Allocations {
    entries: Mutex<HashMap<String, Entry>>,
    file: Checkpoint,
}

#[derive(Clone)]
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
    pub(crate) fn new(root: &Path) -> Self {
        Self { entries: Mutex::default(), file: Checkpoint::new(root, "allocated_pods_state") }
    }

    fn note(&self, entries: &HashMap<String, Entry>) {
        self.file.note(&all_given(entries));
    }

    /// The pod with what it has been given in place of what it wants.
    pub(crate) fn given(&self, pod: &Arc<Pod>) -> Arc<Pod> {
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

    /// How far a pod's resize is.
    pub(crate) fn state(&self, uid: &str) -> Resize {
        self.entries.lock().get(uid).map(|entry| entry.state.clone()).unwrap_or_default()
    }

    /// Pods that wait for room, of which there may be some for this reason.
    pub(crate) fn retry(&self, why: Retry) -> Vec<String> {
        let mut entries = self.entries.lock();
        let waiting = entries.iter_mut().filter(|(_, entry)| entry.state.is_deferred());
        waiting
            .map(|(uid, entry)| {
                entry.state.retry = why;
                uid.clone()
            })
            .collect()
    }

    /// Whether the pod wants something else than it has. A pod that runs without having been admitted has what it wants.
    pub(crate) fn differs(&self, pod: &Pod) -> bool {
        !self.give_first(pod)
            && self.entries.lock().get(&pod.metadata.uid).is_some_and(|entry| entry.given != wanted(pod))
    }

    /// Changes how far a pod's resize is.
    pub(crate) fn update(&self, pod: &Pod, change: impl FnOnce(&mut Resize)) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            change(&mut entry.state);
        }
    }

    /// Gives a pod what it wants if it has nothing yet; tells whether that was so. Where this cannot be written down,
    /// the pod runs all the same, as upstream's does.
    fn give_first(&self, pod: &Pod) -> bool {
        let mut entries = self.entries.lock();
        if entries.contains_key(&pod.metadata.uid) {
            return false;
        }
        entries.insert(pod.metadata.uid.clone(), Entry { given: wanted(pod), state: Resize::default() });
        self.note(&entries);
        true
    }

    /// Gives a pod what it wants, once that is on disk: a kubelet that comes back must know what it promised. Where it
    /// cannot be written, the pod keeps what it has. Returns what it had.
    fn give(&self, pod: &Pod) -> Result<Option<Entry>, CheckpointError> {
        let uid = &pod.metadata.uid;
        let mut entries = self.entries.lock();
        let state = Resize { in_progress: true, ..Resize::default() };
        let former = entries.insert(uid.clone(), Entry { given: wanted(pod), state });
        if let Err(error) = self.file.save(&all_given(&entries)) {
            put_back(&mut entries, uid, former);
            return Err(error);
        }
        Ok(former)
    }

    fn take_back(&self, uid: &str, former: Option<Entry>) {
        let mut entries = self.entries.lock();
        put_back(&mut entries, uid, former);
        self.note(&entries);
    }
}

impl Handler for Arc<Allocations> {
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal> {
        let former = match attempt.operation {
            Operation::Add if !self.give_first(attempt.pod) => return Ok(Reservation::nothing()),
            Operation::Add => None,
            Operation::Resize => self.give(attempt.pod)?,
        };
        let (me, uid) = (Arc::clone(self), attempt.pod.metadata.uid.clone());
        Ok(Reservation::undone_by(move || me.take_back(&uid, former)))
    }

    fn restore(&self) -> Result<(), CheckpointError> {
        let saved = self.file.load()?.into_iter();
        *self.entries.lock() = saved.map(|(uid, given)| (uid, Entry { given, state: Resize::default() })).collect();
        Ok(())
    }

    fn keep(&self, uids: &BTreeSet<String>) {
        let mut entries = self.entries.lock();
        let before = entries.len();
        entries.retain(|uid, _| uids.contains(uid));
        if entries.len() != before {
            self.note(&entries);
        }
    }

    #[cfg(test)]
    fn reserved(&self) -> String {
        format!("{:?}", all_given(&self.entries.lock()))
    }
}

fn put_back(entries: &mut HashMap<String, Entry>, uid: &str, former: Option<Entry>) {
    match former {
        Some(former) => drop(entries.insert(uid.to_owned(), former)),
        None => drop(entries.remove(uid)),
    }
}

fn all_given(entries: &HashMap<String, Entry>) -> Entries {
    entries.iter().map(|(uid, entry)| (uid.clone(), entry.given.clone())).collect()
}
