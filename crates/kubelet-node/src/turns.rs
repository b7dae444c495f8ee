//! Whose turn it is, where what is done about one thing must be done one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Whose turn it is about each of many things; what nobody waits for is forgotten.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// What to lock while doing something about `what`.
    pub fn of(&self, what: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock();
        if let Some(turn) = turns.get(what).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(what.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_one_for_each_thing_and_forgotten_when_nobody_waits() {
        let turns = Turns::default();
        let first = turns.of("a");
        assert!(Arc::ptr_eq(&first, &turns.of("a")) && !Arc::ptr_eq(&first, &turns.of("b")));
        drop(first);
        turns.of("c");
        assert_eq!(turns.0.lock().len(), 1);
    }
}
