//! Preemptors whose preemption is being carried out: they are not tried again before that is done.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::pod_groups::GroupKey;

/// The preemptors, and the last victim of each.
#[derive(Debug, Default)]
pub struct PreemptionGate(Mutex<HashMap<PreemptorKey, LastVictim>>);

/// For whom others are evicted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PreemptorKey {
    /// A pod, by its uid.
    Pod(String),
    /// A group of pods.
    Group(GroupKey),
}

#[derive(Debug, Default)]
struct LastVictim {
    uid: String,
    gone: bool,
}

impl PreemptionGate {
    /// A preemption begins.
    pub fn close(&self, preemptor: PreemptorKey, last_victim: &str) {
        let last = LastVictim { uid: last_victim.to_owned(), gone: false };
        self.0.lock().insert(preemptor, last);
    }

    /// A preemption is done, well or not.
    pub fn open(&self, preemptor: &PreemptorKey) {
        self.0.lock().remove(preemptor);
    }

    /// A pod is gone or going. Where it was the last victim, its preemptor may be tried, even before the call that
    /// deleted it has returned: otherwise the event that should wake the preemptor would find the gate closed.
    pub fn victim_gone(&self, victim: &str) {
        for last in self.0.lock().values_mut() {
            last.gone |= last.uid == victim;
        }
    }

    /// Whether the preemptor has to wait.
    #[must_use]
    pub fn is_closed(&self, preemptor: &PreemptorKey) -> bool {
        self.0.lock().get(preemptor).is_some_and(|last| !last.gone)
    }
}
