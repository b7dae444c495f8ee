//! Pods that are being scheduled, and what has happened since each of them was taken: events that came too late for
//! the decision but may matter when the pod comes back.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::framework::{ClusterEvent, EventObject};

/// Events kept while pods are in flight. When more happen, the oldest go, and pods taken before count as concerned.
const MAX_EVENTS: usize = 100_000;

/// The pods in flight and the events since.
#[derive(Default)]
pub(super) struct InFlight {
    /// For each pod the number of the first event after it was taken.
    pods: HashMap<String, u64>,
    /// How many pods have each of these numbers, so that the oldest is always at hand.
    waiting_from: BTreeMap<u64, usize>,
    events: VecDeque<(ClusterEvent, EventObject)>,
    /// The number of the first event that is still there.
    first: u64,
}

/// What a pod missed.
pub(super) struct Missed<'a> {
    /// Whether some events are not known any more.
    pub(super) lost: bool,
    /// The events.
    pub(super) events: Box<dyn Iterator<Item = &'a (ClusterEvent, EventObject)> + 'a>,
}

impl InFlight {
    /// A pod was taken; false when it was in flight already.
    pub(super) fn take(&mut self, uid: &str) -> bool {
        if self.pods.contains_key(uid) {
            return false;
        }
        let next = self.first + self.events.len() as u64;
        self.pods.insert(uid.to_owned(), next);
        *self.waiting_from.entry(next).or_default() += 1;
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
            self.events.pop_front();
            self.first += 1;
        }
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
        if let Some(pods) = self.waiting_from.get_mut(&from) {
            *pods -= 1;
            if *pods == 0 {
                self.waiting_from.remove(&from);
            }
        }
        let Some((oldest, _)) = self.waiting_from.first_key_value() else {
            self.first += self.events.len() as u64;
            self.events.clear();
            return;
        };
        while self.first < *oldest && self.events.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// How many events are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}
