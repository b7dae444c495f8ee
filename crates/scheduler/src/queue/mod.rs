//! The scheduling queue: pods that are ready to be tried, pods that back off, and pods that wait for something to
//! happen.
//!
//! A pod that was rejected waits until an event comes that the plugins which rejected it care about. Events that come
//! while it is being tried are remembered for it.

mod in_flight;
mod nominator;
mod requeue;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use base::{CancellationToken, SharedClock};
use component_base::{Feature, Gates};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use nominator::Nominator;
pub use state::{QueueError, QueueSize};

use crate::framework::{ClusterEvent, EventObject, Profile, pod_update_events};
use crate::metrics::SchedulerMetrics;
use crate::pod_info::PodInfo;
use crate::queued_pod::QueuedPod;
use requeue::Rules;
use state::State;

/// How often pods whose back-off is over are moved.
const BACKOFF_PERIOD: Duration = Duration::from_secs(1);
/// How often pods that waited too long are moved.
const UNSCHEDULABLE_PERIOD: Duration = Duration::from_secs(30);

/// While no pod is active, one that backs off is tried early; for this, back-offs end at whole seconds.
pub(crate) const EARLY: Feature = Feature::named("SchedulerPopFromBackoffQ");

/// Delays of the queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueOptions {
    /// The first back-off.
    pub initial_backoff: Duration,
    /// The longest back-off.
    pub max_backoff: Duration,
    /// How long a pod may wait for an event.
    pub max_in_unschedulable: Duration,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_in_unschedulable: Duration::from_secs(300),
        }
    }
}

/// The queue of pods to schedule.
pub struct SchedulingQueue {
    state: Mutex<State>,
    ready: Notify,
    nominator: Nominator,
    rules: Rules,
    clock: SharedClock,
}

impl SchedulingQueue {
    /// An empty queue for these profiles, of which there must be one.
    #[must_use]
    pub fn new(
        profiles: &[Arc<Profile>],
        options: QueueOptions,
        gates: &Gates,
        clock: SharedClock,
        metrics: Arc<SchedulerMetrics>,
    ) -> Option<Self> {
        let origin = gates.enabled(EARLY).then(|| clock.monotonic());
        let rules = Rules::of(profiles, &metrics)?;
        Some(Self {
            state: Mutex::new(State::new(options, metrics, origin)),
            ready: Notify::new(),
            nominator: Nominator::default(),
            rules,
            clock,
        })
    }

    /// The pods that have a node in mind.
    #[must_use]
    pub fn nominator(&self) -> &Nominator {
        &self.nominator
    }

    /// A pod has come that wants a node.
    pub fn add(&self, info: Arc<PodInfo>) {
        self.nominator.refresh(None, &info);
        self.change(|state, queue| {
            let pod = QueuedPod::new(info, queue.clock.monotonic());
            state.enter_active(&queue.rules, pod, &ClusterEvent::UNSCHEDULABLE_POD_ADD, queue.clock.monotonic());
        });
    }

    /// A pod that waits has changed.
    pub fn update(&self, old: &Arc<Pod>, new: Arc<PodInfo>) {
        let events = pod_update_events(old, &new.pod);
        let object = EventObject::Pod { old: Some(Arc::clone(old)), new: Some(Arc::clone(&new.pod)) };
        let key = new.full_name();
        let now = self.clock.monotonic();
        let mut known = None;
        self.change(|state, queue| {
            if state.in_flight.contains(new.uid()) {
                for event in &events {
                    state.in_flight.note(*event, &object);
                }
                return;
            }
            known = Some(state.info_of(&key));
            state.update(&queue.rules, &new, &events, &object, now);
        });
        if let Some(before) = known {
            self.nominator.refresh(before.as_deref(), &new);
        }
    }

    /// A pod is gone, or has a node.
    pub fn delete(&self, pod: &Pod) {
        self.nominator.remove(&pod.metadata.uid);
        self.change(|state, _| {
            state.take(&format!("{}/{}", pod.metadata.namespace, pod.metadata.name));
        });
    }

    /// Something happened: pods that wait for it are moved.
    pub fn move_all(&self, event: &ClusterEvent, object: &EventObject, concerns: impl Fn(&PodInfo) -> bool) {
        if !self.rules.wanted(event) {
            return;
        }
        let now = self.clock.monotonic();
        self.change(|state, queue| {
            state.move_all(&queue.rules, event, object, &concerns, now);
            state.handled(event, queue.clock.monotonic().saturating_duration_since(now));
        });
    }

    /// Puts a pod forward, without back-off.
    pub fn activate(&self, pod: &Arc<Pod>) {
        let now = self.clock.monotonic();
        self.change(|state, queue| state.activate(&queue.rules, pod, now));
    }

    /// The next pod to try; none once `stop` is cancelled.
    pub async fn pop(&self, stop: &CancellationToken) -> Option<QueuedPod> {
        loop {
            let woken = self.ready.notified();
            if let Some(pod) = self.try_pop() {
                return Some(pod);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = woken => {}
            }
        }
    }

    /// The next pod to try, if there is one now. While no pod is active, one that backs off after a rejection may be
    /// taken early.
    pub fn try_pop(&self) -> Option<QueuedPod> {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        let pod = state.pop(&self.rules, now);
        state.publish();
        pod
    }

    /// Takes those of these pods that are in the queue and not held back, to be tried with another.
    pub fn take_all(&self, pods: &[Arc<Pod>]) -> Vec<QueuedPod> {
        let now = self.clock.monotonic();
        let mut taken = Vec::new();
        self.change(|state, queue| {
            taken = pods.iter().filter_map(|pod| state.take_active(&queue.rules, pod, now)).collect();
        });
        taken
    }

    /// The pod is not being tried any more.
    pub fn done(&self, uid: &str) {
        self.state.lock().in_flight.done(uid);
    }

    /// A pod that was tried comes back.
    ///
    /// # Errors
    /// When it is in the queue already.
    pub fn requeue(&self, pod: QueuedPod) -> Result<(), QueueError> {
        let now = self.clock.monotonic();
        let mut outcome = Ok(());
        self.change(|state, queue| outcome = state.requeue(&queue.rules, pod, now));
        outcome
    }

    /// Moves pods whose back-off is over.
    pub fn flush_backoff(&self) {
        let now = self.clock.monotonic();
        self.change(|state, queue| state.flush_backoff(&queue.rules, now));
    }

    /// Moves pods that waited for an event for too long.
    pub fn flush_unschedulable(&self) {
        let now = self.clock.monotonic();
        self.change(|state, queue| state.flush_unschedulable(&queue.rules, now));
    }

    /// How many pods wait where.
    #[must_use]
    pub fn size(&self) -> QueueSize {
        self.state.lock().size()
    }

    /// Moves pods as time passes, until `stop` is cancelled.
    pub async fn run(&self, stop: CancellationToken) {
        let mut backoff = tokio::time::interval(BACKOFF_PERIOD);
        let mut unschedulable = tokio::time::interval(UNSCHEDULABLE_PERIOD);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = backoff.tick() => self.flush_backoff(),
                _ = unschedulable.tick() => self.flush_unschedulable(),
            }
        }
    }

    /// Changes the state and wakes whoever waits for a pod.
    fn change(&self, change: impl FnOnce(&mut State, &Self)) {
        let mut state = self.state.lock();
        change(&mut state, self);
        state.publish();
        drop(state);
        self.ready.notify_one();
    }
}
