//! What changes of jobs and pods mean: which jobs to look at, and which pods nobody counts any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::batch_v1::Job;
use api_types::core_v1::Pod;
use client::{Change, Informer, ObjectKey};
use controller::{CONTROLLER_UID, Queue, controller_of};
use parking_lot::Mutex;

use super::super::owners::{key, owner_changed, resolve, suitors};
use super::conditions::is_finished;
use super::view::is_tracked;
use super::{Records, is_managed_elsewhere};

/// Changes of pods come in bursts; a job looks at them together.
const BATCH: Duration = Duration::from_secs(1);

/// Pods, by uid, whose finalizer was removed and whose change the cache has not seen, by job.
#[derive(Default)]
pub(super) struct Removals {
    jobs: Mutex<BTreeMap<ObjectKey, BTreeSet<String>>>,
}

impl Removals {
    /// Removals are about to be asked for.
    pub(super) fn expect(&self, job: &ObjectKey, uids: BTreeSet<String>) {
        if !uids.is_empty() {
            self.jobs.lock().entry(job.clone()).or_default().extend(uids);
        }
    }

    /// A removal was seen, or failed.
    pub(super) fn observed(&self, job: &ObjectKey, uid: &str) {
        if let Some(uids) = self.jobs.lock().get_mut(job) {
            uids.remove(uid);
        }
    }

    /// The removals of a job that are still to be seen.
    pub(super) fn of(&self, job: &ObjectKey) -> BTreeSet<String> {
        self.jobs.lock().get(job).cloned().unwrap_or_default()
    }

    pub(super) fn forget(&self, job: &ObjectKey) {
        self.jobs.lock().remove(job);
    }
}

/// Whether a pod may still change, or was seen for the last time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Going,
    Gone,
}

/// The handlers of both watches.
pub(super) struct Watch {
    pub(super) jobs: Informer<Job>,
    pub(super) pods: Informer<Pod>,
    pub(super) queue: Queue,
    /// Of pods.
    pub(super) orphan_queue: Queue,
    pub(super) records: Arc<Records>,
}

impl Watch {
    pub(super) fn notice_job(&self, change: &Change<Job>) {
        let (job, owner) = (change.object(), change.key());
        if matches!(change, Change::Added { .. })
            && let Some(by) = job.spec.managed_by.as_deref().filter(|_| is_managed_elsewhere(job))
        {
            self.records.metrics.managed_elsewhere(by);
        }
        match change {
            Change::Added { .. } => self.queue.add(owner),
            Change::Updated { .. } if is_finished(job) => {
                self.records.forget(&owner);
                self.let_pods_go(job);
            }
            Change::Updated { old, .. } if old.metadata.generation != job.metadata.generation => self.queue.add(owner),
            Change::Updated { .. } => self.queue.add_after(owner, BATCH),
            Change::Deleted { .. } => {
                self.records.forget(&owner);
                self.let_pods_go(job);
                self.queue.add(owner);
            }
        }
    }

    /// The pods of a job that will not count them any more.
    fn let_pods_go(&self, job: &Job) {
        let pods = self.pods.by_index(CONTROLLER_UID, &job.metadata.uid);
        for pod in pods.iter().filter(|pod| is_tracked(pod)) {
            self.orphan_queue.add(key(&**pod));
        }
    }

    pub(super) fn notice_pod(&self, change: &Change<Pod>) {
        let now = (!change.is_deleted()).then(|| &**change.object());
        let before = if change.is_deleted() { Some(&**change.object()) } else { change.old().map(|old| &**old) };
        self.records.metrics.pod_changed(before, now);
        match change {
            Change::Added { object, .. } if object.metadata.deletion_timestamp.is_some() => {
                self.leaving(object, Leaving::Going);
            }
            Change::Added { object, .. } => self.added(object),
            Change::Updated { .. } if change.is_resync() => {}
            Change::Updated { new, .. } if new.metadata.deletion_timestamp.is_some() => {
                self.leaving(new, Leaving::Going);
            }
            Change::Updated { old, new } => self.updated(old, new),
            Change::Deleted { object, .. } => self.leaving(object, Leaving::Gone),
        }
    }

    fn added(&self, pod: &Pod) {
        if controller_of(&pod.metadata).is_none() {
            return self.free(pod);
        }
        if let Some(job) = resolve(&self.jobs, &pod.metadata) {
            let owner = key(&*job);
            self.records.expectations.creation_observed(&owner);
            self.queue.add_after(owner, BATCH);
        }
    }

    /// A pod that nobody owns: those who select it may adopt it, else its finalizer holds it up for nothing.
    fn free(&self, pod: &Pod) {
        if is_tracked(pod) {
            self.orphan_queue.add(key(pod));
        }
        for job in suitors(&self.jobs, &pod.metadata) {
            self.queue.add_after(job, BATCH);
        }
    }

    fn updated(&self, old: &Pod, new: &Pod) {
        let moved = owner_changed(&old.metadata, &new.metadata);
        if let Some(job) = resolve(&self.jobs, &old.metadata).filter(|_| moved) {
            self.queue.add_after(key(&*job), BATCH);
        }
        if controller_of(&new.metadata).is_none() {
            if is_tracked(new) || moved || old.metadata.labels != new.metadata.labels {
                self.free(new);
            }
            return;
        }
        if let Some(job) = resolve(&self.jobs, &new.metadata) {
            let owner = key(&*job);
            if !is_tracked(new) {
                self.records.removals.observed(&owner, &new.metadata.uid);
            }
            self.queue.add_after(owner, BATCH);
        }
    }

    fn leaving(&self, pod: &Pod, leaving: Leaving) {
        // A pod that nobody controls may have been a job's, which let it go when it was deleted.
        let is_free = controller_of(&pod.metadata).is_none_or(|owner| owner.kind == "Job");
        let Some(job) = resolve(&self.jobs, &pod.metadata).filter(|job| !is_finished(job)) else {
            if is_free && is_tracked(pod) && leaving == Leaving::Going {
                self.orphan_queue.add(key(pod));
            }
            return;
        };
        let owner = key(&*job);
        self.records.expectations.deletion_observed(&owner, &key(pod));
        if leaving == Leaving::Gone || !is_tracked(pod) {
            self.records.removals.observed(&owner, &pod.metadata.uid);
        }
        self.queue.add_after(owner, BATCH);
    }
}
