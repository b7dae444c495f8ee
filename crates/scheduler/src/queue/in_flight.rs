//! Pods that are being scheduled, and what has happened since each of them was taken: events that came too late for
//! the decision but may matter when the pod comes back.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::framework::{ClusterEvent, EventObject};
use crate::metrics::SchedulerMetrics;

/// Events kept while pods are in flight. When more happen, the oldest go, and pods taken before count as concerned.
const MAX_EVENTS: usize = 100_000;

/// How metrics call a pod that is in flight.
const TAKEN: &str = "PodPopped";

/// The pods in flight and the events since.
pub(super) struct InFlight {
    /// For each pod the number of the first event after it was taken.
    pods: HashMap<String, u64>,
    /// How many pods have each of these numbers, so that the oldest is always at hand.
    waiting_from: BTreeMap<u64, usize>,
    events: VecDeque<(ClusterEvent, EventObject)>,
    /// The number of the first event that is still there.
    first: u64,
    metrics: Arc<SchedulerMetrics>,
}

/// What a pod missed.
pub(super) struct Missed<'a> {
    /// Whether some events are not known any more.
    pub(super) lost: bool,
    /// The events.
    pub(super) events: Box<dyn Iterator<Item = &'a (ClusterEvent, EventObject)> + 'a>,
}

impl InFlight {
    pub(super) fn new(metrics: Arc<SchedulerMetrics>) -> Self {
        let (pods, waiting_from, events) = (HashMap::new(), BTreeMap::new(), VecDeque::new());
        Self { pods, waiting_from, events, first: 0, metrics }
    }

    /// A pod was taken; false when it was in flight already.
    pub(super) fn take(&mut self, uid: &str) -> bool {
        if self.pods.contains_key(uid) {
            return false;
        }
        let next = self.first + self.events.len() as u64;
        self.pods.insert(uid.to_owned(), next);
        *self.waiting_from.entry(next).or_default() += 1;
        self.metrics.in_flight(TAKEN, 1.0);
        true
    }

    /// Whether the pod is in flight.
    pub(super) fn contains(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// Takes note of an event, if any pod is in flight.
    pub(super) fn note(&mut self, event: ClusterEvent, object: &EventObject) {
        if self.pods.is_empty() {
            return;
        }
        if self.events.len() >= MAX_EVENTS {
            if let Some((oldest, _)) = self.events.pop_front() {
                self.metrics.in_flight(&oldest.label(), -1.0);
            }
            self.first += 1;
        }
        self.metrics.in_flight(&event.label(), 1.0);
        self.events.push_back((event, object.clone()));
    }

    /// What happened since the pod was taken.
    pub(super) fn missed(&self, uid: &str) -> Missed<'_> {
        let Some(from) = self.pods.get(uid) else {
            return Missed { lost: false, events: Box::new(std::iter::empty()) };
        };
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        Missed { lost: *from < self.first, events: Box::new(self.events.iter().skip(skip)) }
    }

    /// The pod is not in flight any more; events that no other pod waits for go.
    pub(super) fn done(&mut self, uid: &str) {
        let Some(from) = self.pods.remove(uid) else { return };
        self.metrics.in_flight(TAKEN, -1.0);
        if let Some(pods) = self.waiting_from.get_mut(&from) {
            *pods -= 1;
            if *pods == 0 {
                self.waiting_from.remove(&from);
            }
        }
        let oldest = self.waiting_from.first_key_value().map_or(u64::MAX, |(oldest, _)| *oldest);
        // Told all at once: there may be very many, and others wait for the queue.
        let mut gone: BTreeMap<Cow<'static, str>, f64> = BTreeMap::new();
        while self.first < oldest {
            let Some((event, _)) = self.events.pop_front() else { break };
            *gone.entry(event.label()).or_default() += 1.0;
            self.first += 1;
        }
        for (event, count) in gone {
            self.metrics.in_flight(&event, -count);
        }
    }

    /// How many events are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}
