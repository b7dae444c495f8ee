//! The queue's own structures, under its lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use tokio::time::Instant;

use super::QueueOptions;
use super::in_flight::InFlight;
use super::requeue::{Requeue, Rules};
use crate::framework::{ClusterEvent, EventObject, GroupKey};
use crate::metrics::SchedulerMetrics;
use crate::pod_info::PodInfo;
use crate::queued_pod::{QueuedPod, SortKey, whole_seconds};

/// Why a pod could not come back.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("Pod {name} is already present in {sub_queue}")]
pub struct QueueError {
    /// `namespace/name`.
    pub name: String,
    /// Which queue.
    pub sub_queue: &'static str,
}

/// How many pods wait where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSize {
    /// Ready to be tried.
    pub active: usize,
    /// Backing off.
    pub backoff: usize,
    /// Waiting for an event.
    pub unschedulable: usize,
    /// Held back.
    pub gated: usize,
}

impl QueueSize {
    /// As metrics show it.
    fn by_queue(self) -> [(&'static str, usize); 4] {
        [
            ("active", self.active),
            ("backoff", self.backoff),
            ("unschedulable", self.unschedulable),
            ("gated", self.gated),
        ]
    }
}

/// The sub_queue of a pod. The numbers make keys unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubQueue {
    Active(SortKey, u64),
    Backoff(Instant, SortKey, u64),
    ErrorBackoff(Instant, u64),
    Unschedulable,
}

struct Entry {
    pod: QueuedPod,
    sub_queue: SubQueue,
}

/// Everything under the lock.
pub(super) struct State {
    pub(super) in_flight: InFlight,
    pods: HashMap<String, Entry>,
    active: BTreeMap<(SortKey, u64), String>,
    backoff: BTreeMap<(Instant, SortKey, u64), String>,
    error_backoff: BTreeMap<(Instant, u64), String>,
    unschedulable: BTreeSet<String>,
    gated: usize,
    next: u64,
    options: QueueOptions,
    metrics: Arc<SchedulerMetrics>,
    /// Back-offs end at whole seconds since then, and who backs off may be taken early; none where neither is so.
    origin: Option<Instant>,
}

impl State {
    pub(super) fn new(options: QueueOptions, metrics: Arc<SchedulerMetrics>, origin: Option<Instant>) -> Self {
        Self {
            in_flight: InFlight::new(Arc::clone(&metrics)),
            pods: HashMap::new(),
            active: BTreeMap::new(),
            backoff: BTreeMap::new(),
            error_backoff: BTreeMap::new(),
            unschedulable: BTreeSet::new(),
            gated: 0,
            next: 0,
            options,
            metrics,
            origin,
        }
    }

    pub(super) fn size(&self) -> QueueSize {
        QueueSize {
            active: self.active.len(),
            backoff: self.backoff.len() + self.error_backoff.len(),
            unschedulable: self.unschedulable.len() - self.gated,
            gated: self.gated,
        }
    }

    /// Pods were told of an event.
    pub(super) fn handled(&self, event: &ClusterEvent, took: Duration) {
        self.metrics.event_handled(&event.label(), took);
    }

    pub(super) fn publish(&self) {
        self.metrics.pending(self.size().by_queue());
    }

    pub(super) fn info_of(&self, key: &str) -> Option<Arc<PodInfo>> {
        self.pods.get(key).map(|entry| Arc::clone(&entry.pod.info))
    }

    /// Takes a pod out, wherever it is.
    pub(super) fn take(&mut self, key: &str) -> Option<QueuedPod> {
        let entry = self.pods.remove(key)?;
        self.count_rejections(&entry.pod, -1.0);
        match entry.sub_queue {
            SubQueue::Active(sort, number) => drop(self.active.remove(&(sort, number))),
            SubQueue::Backoff(expiry, sort, number) => drop(self.backoff.remove(&(expiry, sort, number))),
            SubQueue::ErrorBackoff(expiry, number) => drop(self.error_backoff.remove(&(expiry, number))),
            SubQueue::Unschedulable => {
                self.unschedulable.remove(key);
                self.gated -= usize::from(entry.pod.gating_plugin.is_some());
            }
        }
        Some(entry.pod)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn put(&mut self, pod: QueuedPod, sub_queue: SubQueue) {
        let key = pod.info.full_name();
        self.take(&key);
        match sub_queue {
            SubQueue::Active(sort, number) => drop(self.active.insert((sort, number), key.clone())),
            SubQueue::Backoff(expiry, sort, number) => drop(self.backoff.insert((expiry, sort, number), key.clone())),
            SubQueue::ErrorBackoff(expiry, number) => drop(self.error_backoff.insert((expiry, number), key.clone())),
            SubQueue::Unschedulable => {
                self.unschedulable.insert(key.clone());
                self.gated += usize::from(pod.gating_plugin.is_some());
            }
        }
        self.count_rejections(&pod, 1.0);
        self.pods.insert(key, Entry { pod, sub_queue });
    }

    /// Pods count for the plugins that rejected them until they are tried again or gone.
    fn count_rejections(&self, pod: &QueuedPod, step: f64) {
        for plugin in &pod.unschedulable_plugins {
            self.metrics.rejected(plugin, &pod.info.pod.spec.scheduler_name, step);
        }
    }

    fn put_unschedulable(&mut self, pod: QueuedPod) {
        self.put(pod, SubQueue::Unschedulable);
    }

    /// Runs the gates: a pod that is held back is put aside, and none comes back.
    fn pass_gates(&mut self, rules: &Rules, mut pod: QueuedPod) -> Option<QueuedPod> {
        match rules.gate(&pod.info, pod.gating_plugin) {
            Ok(()) => {
                pod.gating_plugin = None;
                Some(pod)
            }
            Err(status) => {
                tracing::debug!(pod = %pod.info.full_name(), plugin = status.plugin, reason = %status, "Pod is held back");
                pod.gating_plugin = Some(status.plugin);
                pod.unschedulable_plugins.insert(status.plugin);
                self.put_unschedulable(pod);
                None
            }
        }
    }

    /// Into the active queue, unless a gate holds the pod back.
    pub(super) fn enter_active(&mut self, rules: &Rules, pod: QueuedPod, event: &ClusterEvent, now: Instant) {
        if let Some(pod) = self.pass_gates(rules, pod) {
            self.push_active(rules, pod, event, now);
        }
    }

    fn push_active(&mut self, rules: &Rules, mut pod: QueuedPod, event: &ClusterEvent, now: Instant) {
        pod.first_attempt.get_or_insert(now);
        let sub_queue = SubQueue::Active(rules.sort().key(&pod), self.number());
        self.put(pod, sub_queue);
        self.metrics.incoming("active", &event.label());
    }

    fn enter_backoff(&mut self, rules: &Rules, pod: QueuedPod, event: &ClusterEvent, now: Instant) {
        // Who may be taken early passes the gates now, and not again when it is taken.
        let passed = if self.origin.is_some() { self.pass_gates(rules, pod) } else { Some(pod) };
        let Some(mut pod) = passed else { return };
        let expiry = pod.expiry(self.options.initial_backoff, self.options.max_backoff, self.origin).unwrap_or(now);
        let sub_queue = if pod.was_rejected() {
            SubQueue::Backoff(expiry, rules.sort().key(&pod), self.number())
        } else {
            SubQueue::ErrorBackoff(expiry, self.number())
        };
        self.put(pod, sub_queue);
        self.metrics.incoming("backoff", &event.label());
    }

    /// Into the active queue from one in which it backed off.
    fn leave_backoff(&mut self, rules: &Rules, pod: QueuedPod, event: &ClusterEvent, now: Instant) {
        if self.origin.is_some() {
            self.push_active(rules, pod, event, now);
        } else {
            self.enter_active(rules, pod, event, now);
        }
    }

    fn is_backing_off(&self, pod: &mut QueuedPod, now: Instant) -> bool {
        let expiry = pod.expiry(self.options.initial_backoff, self.options.max_backoff, self.origin);
        expiry.is_some_and(|expiry| expiry >= whole_seconds(now, self.origin))
    }

    /// Acts on a decision other than to stay.
    fn act(&mut self, rules: &Rules, mut pod: QueuedPod, decision: Requeue, event: &ClusterEvent, now: Instant) {
        if decision == Requeue::AfterBackoff && self.is_backing_off(&mut pod, now) {
            self.enter_backoff(rules, pod, event, now);
        } else {
            self.enter_active(rules, pod, event, now);
        }
    }

    pub(super) fn update(
        &mut self,
        rules: &Rules,
        new: &Arc<PodInfo>,
        events: &[ClusterEvent],
        object: &EventObject,
        now: Instant,
    ) {
        let key = new.full_name();
        let Some(entry) = self.pods.get_mut(&key) else {
            let pod = QueuedPod::new(Arc::clone(new), now);
            return self.enter_active(rules, pod, &ClusterEvent::UNSCHEDULABLE_POD_UPDATE, now);
        };
        entry.pod.info = Arc::clone(new);
        match entry.sub_queue {
            SubQueue::Active(..) => {
                let Some(pod) = self.take(&key) else { return };
                let sub_queue = SubQueue::Active(rules.sort().key(&pod), self.number());
                self.put(pod, sub_queue);
            }
            SubQueue::Backoff(..) | SubQueue::ErrorBackoff(..) => {}
            SubQueue::Unschedulable => {
                let decided = events
                    .iter()
                    .map(|event| (event, rules.decide(&entry.pod, event, object)))
                    .find(|(_, decision)| *decision != Requeue::Stay);
                let Some((event, decision)) = decided else { return };
                let Some(pod) = self.take(&key) else { return };
                self.act(rules, pod, decision, event, now);
            }
        }
    }

    pub(super) fn move_all(
        &mut self,
        rules: &Rules,
        event: &ClusterEvent,
        object: &EventObject,
        concerns: &dyn Fn(&PodInfo) -> bool,
        now: Instant,
    ) {
        let decide = |key: &String| {
            let pod = &self.pods.get(key)?.pod;
            let decision = if concerns(&pod.info) { rules.decide(pod, event, object) } else { Requeue::Stay };
            (decision != Requeue::Stay).then(|| (key.clone(), decision))
        };
        let moving: Vec<(String, Requeue)> = self.unschedulable.iter().filter_map(decide).collect();
        for (key, decision) in moving {
            if let Some(pod) = self.take(&key) {
                self.act(rules, pod, decision, event, now);
            }
        }
        self.in_flight.note(*event, object);
    }

    pub(super) fn activate(&mut self, rules: &Rules, pod: &Arc<Pod>, now: Instant) {
        if self.in_flight.contains(&pod.metadata.uid) {
            let object = EventObject::Pod { old: None, new: Some(Arc::clone(pod)) };
            self.in_flight.note(ClusterEvent::FORCE_ACTIVATE, &object);
            return;
        }
        let key = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        let Some(sub_queue) = self.pods.get(&key).map(|entry| entry.sub_queue) else { return };
        match sub_queue {
            SubQueue::Active(..) => {}
            SubQueue::Unschedulable => {
                if let Some(pod) = self.take(&key) {
                    self.enter_active(rules, pod, &ClusterEvent::FORCE_ACTIVATE, now);
                }
            }
            SubQueue::Backoff(..) | SubQueue::ErrorBackoff(..) => {
                if let Some(pod) = self.take(&key) {
                    self.leave_backoff(rules, pod, &ClusterEvent::FORCE_ACTIVATE, now);
                }
            }
        }
    }

    /// The next pod; one that is in flight already is dropped.
    pub(super) fn pop(&mut self, rules: &Rules, now: Instant) -> Option<QueuedPod> {
        loop {
            if self.active.is_empty() && self.origin.is_some() {
                let key = self.backoff.first_key_value()?.1.clone();
                let pod = self.take(&key)?;
                self.push_active(rules, pod, &ClusterEvent::POP_FROM_BACKOFF_Q, now);
            }
            let key = self.active.first_key_value()?.1.clone();
            let pod = self.take(&key)?;
            if let Some(pod) = self.begin(pod) {
                return Some(pod);
            }
        }
    }

    /// An attempt of a pod begins; not of one that is in flight already.
    fn begin(&mut self, mut pod: QueuedPod) -> Option<QueuedPod> {
        pod.attempts = pod.attempts.saturating_add(1);
        self.in_flight.take(pod.info.uid()).then_some(pod)
    }

    /// Takes a pod that may be tried, as if its turn had come; not one that is held back.
    pub(super) fn take_active(&mut self, rules: &Rules, pod: &Arc<Pod>, now: Instant) -> Option<QueuedPod> {
        let key = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        self.pods.get(&key).filter(|entry| entry.pod.info.uid() == pod.metadata.uid)?;
        self.activate(rules, pod, now);
        let is_active = self.pods.get(&key).is_some_and(|entry| matches!(entry.sub_queue, SubQueue::Active(..)));
        let pod = if is_active { self.take(&key)? } else { return None };
        self.begin(pod)
    }

    pub(super) fn requeue(&mut self, rules: &Rules, mut pod: QueuedPod, now: Instant) -> Result<(), QueueError> {
        let uid = pod.info.uid().to_owned();
        let key = pod.info.full_name();
        if let Some(entry) = self.pods.get(&key) {
            let sub_queue = match entry.sub_queue {
                SubQueue::Active(..) => "the active queue",
                SubQueue::Backoff(..) | SubQueue::ErrorBackoff(..) => "the backoff queue",
                SubQueue::Unschedulable => "unschedulable queue",
            };
            self.in_flight.done(&uid);
            return Err(QueueError { name: key, sub_queue });
        }
        pod.timestamp = now;
        pod.backoff_expiry = None;
        pod.flushed = false;
        let event = ClusterEvent::SCHEDULE_ATTEMPT_FAILURE;
        if pod.was_rejected() {
            pod.unschedulable_count = pod.unschedulable_count.saturating_add(1);
            pod.error_count = 0;
            let is_grouped = GroupKey::of(&pod.info.pod).is_some();
            match self.missed(rules, &pod) {
                // What helps a group may help another of its pods than the one that was rejected.
                Requeue::Stay if is_grouped => self.act(rules, pod, Requeue::AfterBackoff, &event, now),
                Requeue::Stay => self.put_unschedulable(pod),
                decision => self.act(rules, pod, decision, &event, now),
            }
        } else {
            pod.error_count = pod.error_count.saturating_add(1);
            self.enter_backoff(rules, pod, &event, now);
        }
        self.in_flight.done(&uid);
        Ok(())
    }

    /// The best that the events which the pod missed come to.
    fn missed(&self, rules: &Rules, pod: &QueuedPod) -> Requeue {
        let missed = self.in_flight.missed(pod.info.uid());
        let mut best = if missed.lost { Requeue::AfterBackoff } else { Requeue::Stay };
        for (event, object) in missed.events {
            match rules.decide(pod, event, object) {
                Requeue::Now => return Requeue::Now,
                Requeue::AfterBackoff => best = Requeue::AfterBackoff,
                Requeue::Stay => {}
            }
            if best == Requeue::AfterBackoff && pod.pending_plugins.is_empty() {
                break;
            }
        }
        best
    }

    pub(super) fn flush_backoff(&mut self, rules: &Rules, now: Instant) {
        let now_seconds = whole_seconds(now, self.origin);
        let rejected =
            self.backoff.iter().take_while(|((expiry, ..), _)| *expiry < now_seconds).map(|(_, key)| key.clone());
        let failed =
            self.error_backoff.iter().take_while(|((expiry, _), _)| *expiry < now_seconds).map(|(_, key)| key.clone());
        let ready: Vec<String> = rejected.chain(failed).collect();
        for key in ready {
            if let Some(pod) = self.take(&key) {
                self.leave_backoff(rules, pod, &ClusterEvent::BACKOFF_COMPLETE, now);
            }
        }
    }

    pub(super) fn flush_unschedulable(&mut self, rules: &Rules, now: Instant) {
        let limit = self.options.max_in_unschedulable;
        let late = |key: &&String| {
            let entry = self.pods.get(*key);
            entry.is_some_and(|entry| {
                entry.pod.gating_plugin.is_none() && now.saturating_duration_since(entry.pod.timestamp) > limit
            })
        };
        let late: Vec<String> = self.unschedulable.iter().filter(late).cloned().collect();
        for key in late {
            if let Some(mut pod) = self.take(&key) {
                pod.flushed = true;
                self.act(rules, pod, Requeue::AfterBackoff, &ClusterEvent::UNSCHEDULABLE_TIMEOUT, now);
            }
        }
    }
}
