//! The mutating pass may run twice for a request: what a webhook or a policy changed, those before it have not seen.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Findings;

/// Which round of the mutating pass runs, and what plugins remember of the first. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Rounds(Arc<State>);

#[derive(Debug, Default)]
struct State {
    second: AtomicBool,
    wanted: AtomicBool,
    notes: Findings,
}

impl Rounds {
    /// Asks for a second round. There is no third, so that two who undo each other's changes come to an end.
    pub fn want_another(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether the second round runs.
    #[must_use]
    pub fn is_second(&self) -> bool {
        self.0.second.load(Ordering::Relaxed)
    }

    /// Begins the second round, if somebody asked for it; says whether it did.
    pub(crate) fn begin_second(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) && !self.0.second.swap(true, Ordering::Relaxed)
    }

    /// What a plugin remembers from one round to the next, by the type of it; made when it is first asked for.
    pub fn memory<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.0.notes.get("").unwrap_or_else(|| {
            let fresh = Arc::new(T::default());
            self.0.notes.note("", Arc::clone(&fresh));
            fresh
        })
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn there_are_two_rounds_at_most() {
        let rounds = Rounds::default();
        assert!(!rounds.begin_second() && !rounds.is_second());
        rounds.clone().want_another();
        assert!(rounds.begin_second() && rounds.is_second());
        rounds.want_another();
        assert!(!rounds.begin_second());
    }

    #[test]
    fn memory_lasts_over_rounds() {
        let rounds = Rounds::default();
        rounds.memory::<Mutex<u8>>();
        *rounds.memory::<Mutex<u8>>().lock() += 1;
        assert_eq!(*rounds.clone().memory::<Mutex<u8>>().lock(), 1);
    }
}
