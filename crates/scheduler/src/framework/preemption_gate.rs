//! Pods whose preemption is being carried out: they are not tried again before that is done.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The preemptors, and the last victim of each.
#[derive(Debug, Default)]
pub struct PreemptionGate(Mutex<HashMap<String, LastVictim>>);

#[derive(Debug, Default)]
struct LastVictim {
    uid: String,
    gone: bool,
}

impl PreemptionGate {
    /// The preemption of a pod begins.
    pub fn close(&self, preemptor: &str, last_victim: &str) {
        let last = LastVictim { uid: last_victim.to_owned(), gone: false };
        self.0.lock().insert(preemptor.to_owned(), last);
    }

    /// The preemption of a pod is done, well or not.
    pub fn open(&self, preemptor: &str) {
        self.0.lock().remove(preemptor);
    }

    /// A pod is gone or going. Where it was the last victim, its preemptor may be tried, even before the call that
    /// deleted it has returned: otherwise the event that should wake the preemptor would find the gate closed.
    pub fn victim_gone(&self, victim: &str) {
        for last in self.0.lock().values_mut() {
            last.gone |= last.uid == victim;
        }
    }

    /// Whether the pod has to wait.
    #[must_use]
    pub fn is_closed(&self, preemptor: &str) -> bool {
        self.0.lock().get(preemptor).is_some_and(|last| !last.gone)
    }
}
