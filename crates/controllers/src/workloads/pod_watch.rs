//! What the pod-creating controllers do when a pod changes: lower expectations and queue those whom it concerns.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::Pod;
use client::{Change, Expectations, Informer, ObjectKey};
use component_helpers::pod_state;
use controller::{Queue, controller_of};

use super::owners::{Owner, key, owner_changed, resolve, suitors};

/// The pods of one kind of owner.
pub(crate) struct PodWatch<O> {
    /// The owners.
    pub owners: Informer<O>,
    /// Their queue.
    pub queue: Queue,
    /// What they expect to see.
    pub expectations: Arc<Expectations>,
    /// How much later than `minReadySeconds` after a pod got ready its owner looks again.
    pub slack: Duration,
}

impl<O: Owner> PodWatch<O> {
    /// Takes note of a change.
    pub(crate) fn notice(&self, change: &Change<Pod>) {
        match change {
            Change::Added { object, .. } if object.metadata.deletion_timestamp.is_some() => self.gone(object),
            Change::Added { object, .. } => self.added(object),
            Change::Updated { .. } if change.is_resync() => {}
            Change::Updated { old, new } => self.updated(old, new),
            Change::Deleted { object, .. } => self.gone(object),
        }
    }

    fn queue_all(&self, keys: Vec<ObjectKey>) {
        for owner in keys {
            self.queue.add(owner);
        }
    }

    fn added(&self, pod: &Pod) {
        if controller_of(&pod.metadata).is_none() {
            return self.queue_all(suitors(&self.owners, &pod.metadata));
        }
        if let Some(owner) = resolve(&self.owners, &pod.metadata) {
            let owner = key(&*owner);
            self.expectations.creation_observed(&owner);
            self.queue.add(owner);
        }
    }

    fn gone(&self, pod: &Pod) {
        if let Some(owner) = resolve(&self.owners, &pod.metadata) {
            let owner = key(&*owner);
            self.expectations.deletion_observed(&owner, &key(pod));
            self.queue.add(owner);
        }
    }

    fn updated(&self, old: &Pod, new: &Pod) {
        let relabelled = old.metadata.labels != new.metadata.labels;
        if new.metadata.deletion_timestamp.is_some() {
            // Seen once more at the final deletion; the expectation of a named pod counts once.
            self.gone(new);
            if relabelled {
                self.gone(old);
            }
            return;
        }
        let moved = owner_changed(&old.metadata, &new.metadata);
        if moved {
            self.queue_owner(&old.metadata);
        }
        if controller_of(&new.metadata).is_some() {
            if let Some(owner) = self.queue_owner(&new.metadata) {
                self.look_again_when_available(&*owner, old, new);
            }
        } else if relabelled || moved {
            self.queue_all(suitors(&self.owners, &new.metadata));
        }
    }

    fn queue_owner(&self, pod: &ObjectMeta) -> Option<Arc<O>> {
        let owner = resolve(&self.owners, pod)?;
        self.queue.add(key(&*owner));
        Some(owner)
    }

    /// A pod becomes available by the passing of time, which no event tells.
    fn look_again_when_available(&self, owner: &O, old: &Pod, new: &Pod) {
        let seconds = u64::try_from(owner.min_ready_seconds()).unwrap_or(0);
        if seconds > 0 && !pod_state::is_ready(old) && pod_state::is_ready(new) {
            self.queue.add_after(key(owner), Duration::from_secs(seconds) + self.slack);
        }
    }
}
