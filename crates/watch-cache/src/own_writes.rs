//! What this server writes itself: when the store's watch brings a version that is at hand, there is nothing to parse.
//!
//! The watch may bring a version before the store has answered the write. So a write is announced before it is made, and
//! whoever learns its revision first, the writer or the watch, makes the version of it that both use.

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::object::Object;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::Revision;

use crate::{Fingerprint, Stored};

/// More are not kept: their versions are parsed like anybody else's.
const MAX_WAITING: usize = 1024;

/// The writes under way and those that the watch has not brought yet, one per key.
#[derive(Default)]
pub(crate) struct OwnWrites(Mutex<HashMap<Arc<str>, Write>>);

enum Write {
    /// The store has it, or soon will.
    Announced(Box<dyn Object>, Bytes),
    /// The watch brought it before the store answered.
    Brought(Arc<Stored>),
    /// The store answered before the watch brought it.
    Answered(Arc<Stored>),
}

impl OwnWrites {
    /// Announces a write of `value`, which `object` is decoded from; gives the object back where another write of the key
    /// is under way, or too many are.
    fn announce(&self, key: &Arc<str>, object: Box<dyn Object>, value: &Bytes) -> Option<Box<dyn Object>> {
        let mut writes = self.0.lock();
        let is_free = match writes.get(key) {
            None => writes.len() < MAX_WAITING,
            // Of one key the watch brings what came first, first; this one can only be forgotten.
            Some(other) => matches!(other, Write::Answered(_)),
        };
        if !is_free {
            return Some(object);
        }
        writes.insert(Arc::clone(key), Write::Announced(object, value.clone()));
        None
    }

    /// The version that the watch brings, if it is an own one.
    pub(crate) fn brought(&self, key: &str, revision: Revision, value: &Bytes) -> Option<Arc<Stored>> {
        let mut writes = self.0.lock();
        let (key, write) = writes.remove_entry(key)?;
        let (stored, left) = match write {
            Write::Announced(object, own) if own == *value => {
                let stored = Arc::new(Stored::new(Arc::clone(&key), revision, object, Fingerprint::of(&own)));
                (Some(Arc::clone(&stored)), Some(Write::Brought(stored)))
            }
            Write::Answered(stored) if stored.revision() == revision => (Some(stored), None),
            // Of a revision to come.
            Write::Answered(stored) if stored.revision() > revision => (None, Some(Write::Answered(stored))),
            Write::Answered(_) => (None, None),
            other => (None, Some(other)),
        };
        if let Some(left) = left {
            writes.insert(key, left);
        }
        stored
    }

    /// Forgets what the watch will not bring, because everything up to this revision was listed.
    pub(crate) fn listed(&self, revision: Revision) {
        self.0.lock().retain(|_, write| !matches!(write, Write::Answered(stored) if stored.revision() <= revision));
    }

    /// The version that was written, now that the store has answered.
    fn answered(&self, key: &Arc<str>, revision: Revision) -> Arc<Stored> {
        let mut writes = self.0.lock();
        match writes.remove(key).expect(ENDED_BY_ITSELF) {
            Write::Announced(object, value) => {
                let stored = Arc::new(Stored::new(Arc::clone(key), revision, object, Fingerprint::of(&value)));
                writes.insert(Arc::clone(key), Write::Answered(Arc::clone(&stored)));
                stored
            }
            Write::Brought(stored) | Write::Answered(stored) if stored.revision() == revision => stored,
            // Somebody else wrote the same bytes, and that was brought first.
            Write::Brought(stored) | Write::Answered(stored) => Arc::new(stored.at(revision)),
        }
    }

    fn withdrawn(&self, key: &str) -> Box<dyn Object> {
        match self.0.lock().remove(key).expect(ENDED_BY_ITSELF) {
            Write::Announced(object, _) => object,
            Write::Brought(stored) | Write::Answered(stored) => stored.object().clone_object(),
        }
    }
}

/// Why an announcement finds its write: [`OwnWrites`] only lets go of answered ones, and has one per key.
const ENDED_BY_ITSELF: &str = "invariant: a write stays announced until its announcement ends";

/// A write under way. Dropped without an answer, it is withdrawn.
pub struct Announcement<'a> {
    key: Arc<str>,
    /// `None` once it has ended.
    state: Option<State<'a>>,
}

enum State<'a> {
    Heard(&'a OwnWrites),
    /// Nobody was told.
    Unheard(Box<dyn Object>, Fingerprint),
}

impl<'a> Announcement<'a> {
    pub(crate) fn new(writes: &'a OwnWrites, key: &Arc<str>, object: Box<dyn Object>, value: &Bytes) -> Self {
        match writes.announce(key, object, value) {
            None => Self { key: Arc::clone(key), state: Some(State::Heard(writes)) },
            Some(object) => Self::unheard(key, object, value),
        }
    }

    /// A write that no watch is told of.
    #[must_use]
    pub fn unheard(key: &Arc<str>, object: Box<dyn Object>, value: &Bytes) -> Self {
        Self { key: Arc::clone(key), state: Some(State::Unheard(object, Fingerprint::of(value))) }
    }

    /// The write happened: the version that it made.
    #[must_use]
    pub fn committed(mut self, revision: Revision) -> Arc<Stored> {
        Arc::new(match self.end() {
            // The cache keeps its version for long, and without the encodings that the writer's answer needs.
            State::Heard(writes) => writes.answered(&self.key, revision).without_encodings(),
            State::Unheard(object, fingerprint) => Stored::new(Arc::clone(&self.key), revision, object, fingerprint),
        })
    }

    /// The write did not happen: the object.
    #[must_use]
    pub fn withdraw(mut self) -> Box<dyn Object> {
        match self.end() {
            State::Heard(writes) => writes.withdrawn(&self.key),
            State::Unheard(object, _) => object,
        }
    }

    fn end(&mut self) -> State<'a> {
        self.state.take().expect("invariant: only what consumes an announcement ends it")
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        if let Some(State::Heard(writes)) = self.state.take() {
            drop(writes.withdrawn(&self.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object::Unstructured;

    use super::*;

    const VALUE: Bytes = Bytes::from_static(b"{}");

    fn announce<'a>(writes: &'a OwnWrites, key: &str) -> Announcement<'a> {
        let object = Box::new(Unstructured::new("example.com/v1", "Thing"));
        Announcement::new(writes, &key.into(), object, &VALUE)
    }

    fn brought(writes: &OwnWrites, key: &str, revision: i64) -> Option<(i64, String)> {
        let found = writes.brought(key, Revision(revision), &VALUE)?;
        Some((found.revision().0, found.object().meta().resource_version.clone()))
    }

    fn waiting(writes: &OwnWrites) -> usize {
        writes.0.lock().len()
    }

    #[test]
    fn whoever_is_first_makes_the_version() {
        let writes = OwnWrites::default();
        let answered_first = announce(&writes, "a").committed(Revision(3));
        assert_eq!(answered_first.revision(), Revision(3));
        assert_eq!(brought(&writes, "a", 3), Some((3, "3".into())));
        assert_eq!(brought(&writes, "a", 3), None, "once");

        let announced = announce(&writes, "a");
        assert_eq!(brought(&writes, "b", 4), None, "of another key");
        assert_eq!(brought(&writes, "a", 5), Some((5, "5".into())));
        assert_eq!(announced.committed(Revision(5)).revision(), Revision(5));
        assert_eq!(waiting(&writes), 0);
    }

    #[test]
    fn versions_of_others_are_not_taken_for_own_ones() {
        let writes = OwnWrites::default();
        let announced = announce(&writes, "a");
        assert!(writes.brought("a", Revision(4), &Bytes::from_static(b"other")).is_none());
        assert_eq!(brought(&writes, "a", 5), Some((5, "5".into())), "the same bytes are the same object");
        let own = announced.committed(Revision(6));
        assert_eq!(own.object().meta().resource_version, "6");
        let _answered = announce(&writes, "a").committed(Revision(8));
        assert_eq!(brought(&writes, "a", 7), None);
        assert_eq!(brought(&writes, "a", 8), Some((8, "8".into())));
        assert_eq!(waiting(&writes), 0);
    }

    #[test]
    fn what_does_not_happen_leaves_nothing() {
        let writes = OwnWrites::default();
        assert_eq!(announce(&writes, "a").withdraw().kind(), "Thing");
        drop(announce(&writes, "a"));
        let first = announce(&writes, "a");
        let second = announce(&writes, "a");
        assert_eq!(second.committed(Revision(9)).revision(), Revision(9), "unheard, as the first is under way");
        drop(first);
        assert_eq!(waiting(&writes), 0);
        let _answered = announce(&writes, "b").committed(Revision(10));
        writes.listed(Revision(9));
        assert_eq!(waiting(&writes), 1);
        writes.listed(Revision(10));
        assert_eq!(waiting(&writes), 0);
    }

    #[test]
    fn a_watch_that_brings_nothing_costs_no_more_than_the_bound() {
        let writes = OwnWrites::default();
        for number in 0..2_000 {
            let _answered = announce(&writes, &format!("k{number}")).committed(Revision(number));
        }
        assert_eq!(waiting(&writes), MAX_WAITING);
    }
}
