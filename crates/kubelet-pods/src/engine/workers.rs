//! The workers of all pods: one entry and one task for each uid.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api_types::core_v1::Pod;
use base::CancellationToken;
use base::trace::Span;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::state::{Effect, Input, Stage, WorkerState};
use crate::pod::is_static;
use crate::runtime::text::full_name;

/// Those who wait for one pod's end at most; more are told at once.
const MAX_WAITERS: usize = 16;

/// The workers by uid.
#[derive(Default)]
pub(super) struct Workers {
    entries: Mutex<HashMap<String, Entry>>,
    /// How many have come.
    arrivals: AtomicU64,
}

struct Entry {
    state: WorkerState,
    pod: Arc<Pod>,
    wake: Arc<Notify>,
    interrupt: CancellationToken,
    stopped: Vec<oneshot::Sender<()>>,
    /// Order of arrival, for static pods of one name.
    arrival: u64,
    /// When it was first seen.
    born: Instant,
}

/// What a worker's task has to do now.
pub(super) struct Job {
    pub(super) state: WorkerState,
    pub(super) pod: Arc<Pod>,
    pub(super) interrupt: CancellationToken,
}

impl Job {
    /// What its next run is called in metrics and traces; `first` is that which nobody waited for.
    pub(super) fn operation(&self, first: bool) -> &'static str {
        match self.state.stage {
            Stage::Syncing if first => "create",
            Stage::Syncing => "sync",
            _ => "kill",
        }
    }

    /// Says of a span whose it is.
    pub(super) fn tell(&self, first: bool, span: &mut Span) {
        let meta = &self.pod.metadata;
        span.set("k8s.pod.uid", meta.uid.clone());
        span.set("k8s.pod", format!("{}/{}", meta.namespace, meta.name));
        span.set("k8s.pod.name", meta.name.clone());
        span.set("k8s.namespace.name", meta.namespace.clone());
        span.set("k8s.pod.update_type", self.operation(first));
    }
}

/// A worker that needs a task.
pub(super) struct NewWorker {
    pub(super) wake: Arc<Notify>,
}

impl Workers {
    /// Takes what happened to a pod. Returns the worker where it is new and needs a task.
    pub(super) fn input(&self, pod: &Arc<Pod>, input: Input, quiet: bool) -> Option<NewWorker> {
        let mut entries = self.entries.lock();
        let uid = pod.metadata.uid.clone();
        let mut fresh = None;
        let entry = entries.entry(uid).or_insert_with(|| {
            let wake = Arc::new(Notify::new());
            fresh = Some(NewWorker { wake: Arc::clone(&wake) });
            let state = WorkerState::new(pod, quiet);
            Entry {
                state,
                pod: Arc::clone(pod),
                wake,
                interrupt: CancellationToken::new(),
                stopped: Vec::new(),
                // The entries' lock is held, so that the order is theirs.
                arrival: self.arrivals.fetch_add(1, Ordering::Relaxed),
                born: Instant::now(),
            }
        });
        entry.pod = Arc::clone(pod);
        // Who had ended before it was first seen is not asked to come back by being seen.
        let only_cleaned = fresh.is_some() && !entry.state.could_run();
        if !(only_cleaned && input == Input::Created) {
            entry.apply(input);
        }
        fresh
    }

    /// A pod that only the runtime knows shall go.
    pub(super) fn kill_orphan(&self, pod: &Arc<Pod>) -> Option<NewWorker> {
        let fresh = self.input(pod, Input::Kill { grace: Some(1), forced: None, evict: false }, false)?;
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            entry.state.orphan = true;
            entry.state.deleted = true;
        }
        Some(fresh)
    }

    /// Takes a newer version of a pod of which only the status changed: the older one would be kept for it alone.
    pub(super) fn renew(&self, pod: &Arc<Pod>) {
        if let Some(entry) = self.entries.lock().get_mut(&pod.metadata.uid) {
            entry.pod = Arc::clone(pod);
        }
    }

    /// Takes what happened to a known pod; the pod's object stays.
    pub(super) fn step(&self, uid: &str, input: Input) {
        if let Some(entry) = self.entries.lock().get_mut(uid) {
            entry.apply(input);
        }
    }

    /// Makes the worker run soon.
    pub(super) fn wake(&self, uid: &str) {
        if let Some(entry) = self.entries.lock().get(uid) {
            entry.wake.notify_one();
        }
    }

    /// What the worker of a pod does now; `None` where it has no entry any more.
    pub(super) fn job(&self, uid: &str) -> Option<Job> {
        let entries = self.entries.lock();
        let entry = entries.get(uid)?;
        Some(Job { state: entry.state.clone(), pod: Arc::clone(&entry.pod), interrupt: entry.interrupt.clone() })
    }

    /// Whether a static pod must wait for an older one of its name.
    pub(super) fn must_wait(&self, pod: &Pod) -> bool {
        if !is_static(pod) {
            return false;
        }
        let entries = self.entries.lock();
        let Some(own) = entries.get(&pod.metadata.uid) else { return false };
        let name = full_name(pod);
        entries.values().any(|other| {
            other.arrival < own.arrival && other.state.stage != Stage::Finished && full_name(&other.pod) == name
        })
    }

    /// Resolves once the containers of a pod are stopped; at once where there is nothing to wait for.
    pub(super) fn stopped(&self, uid: &str) -> Option<oneshot::Receiver<()>> {
        let mut entries = self.entries.lock();
        let entry =
            entries.get_mut(uid).filter(|entry| entry.state.could_run() && entry.stopped.len() < MAX_WAITERS)?;
        let (sender, receiver) = oneshot::channel();
        entry.stopped.push(sender);
        Some(receiver)
    }

    pub(super) fn state(&self, uid: &str) -> Option<WorkerState> {
        self.entries.lock().get(uid).map(|entry| entry.state.clone())
    }

    /// The last known object of a pod that is gone from the configuration.
    pub(super) fn pod(&self, uid: &str) -> Option<Arc<Pod>> {
        self.entries.lock().get(uid).map(|entry| Arc::clone(&entry.pod))
    }

    pub(super) fn remove(&self, uid: &str) {
        self.entries.lock().remove(uid);
    }

    /// All uids with their stages and whether a restart is asked for.
    pub(super) fn all(&self) -> Vec<(String, WorkerState)> {
        self.entries.lock().iter().map(|(uid, entry)| (uid.clone(), entry.state.clone())).collect()
    }

    /// Pods that take up the node's resources.
    pub(super) fn active(&self) -> Vec<Arc<Pod>> {
        let entries = self.entries.lock();
        entries.values().filter(|entry| entry.state.could_run()).map(|entry| Arc::clone(&entry.pod)).collect()
    }

    /// How long a pod has been known.
    pub(super) fn age(&self, uid: &str) -> Option<Duration> {
        self.entries.lock().get(uid).map(|entry| entry.born.elapsed())
    }

    /// Pods that run and that nobody has told to end.
    pub(super) fn syncing(&self) -> Vec<Arc<Pod>> {
        let entries = self.entries.lock();
        let syncing = entries.values().filter(|entry| entry.state.stage == Stage::Syncing);
        syncing.map(|entry| Arc::clone(&entry.pod)).collect()
    }

    /// Whether nothing is left to do for a pod.
    pub(super) fn is_finished(&self, uid: &str) -> bool {
        self.state(uid).is_none_or(|state| state.stage == Stage::Finished)
    }

    pub(super) fn uids(&self) -> BTreeSet<String> {
        self.entries.lock().keys().cloned().collect()
    }
}

impl Entry {
    fn apply(&mut self, input: Input) {
        match self.state.step(&self.pod, input) {
            Effect::Nothing => {}
            Effect::Wake => self.wake.notify_one(),
            Effect::Interrupt => {
                std::mem::take(&mut self.interrupt).cancel();
                self.wake.notify_one();
            }
        }
        if !self.state.could_run() {
            for waiter in self.stopped.drain(..) {
                // Who waits no longer needs no answer.
                let _ = waiter.send(());
            }
        }
    }
}
