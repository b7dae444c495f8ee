//! Versions that this server wrote itself: when the store's watch brings one, there is nothing to parse.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::Revision;

use crate::Stored;

/// More are not kept while the watch does not bring them: those are parsed like anybody else's.
const MAX_WAITING: usize = 1024;

/// Versions that the watch has not brought yet. One revision changes one object, so the revision tells them apart.
#[derive(Default)]
pub(crate) struct OwnWrites(Mutex<BTreeMap<Revision, Arc<Stored>>>);

impl OwnWrites {
    /// Remembers a version that was just written.
    pub(crate) fn note(&self, written: &Arc<Stored>) {
        let mut waiting = self.0.lock();
        if waiting.len() < MAX_WAITING {
            waiting.insert(written.revision(), Arc::clone(written));
        }
    }

    /// The version that `key` has had since `revision`, if it was noted. Earlier ones are forgotten: the watch brought
    /// them before they were noted, and never goes back.
    pub(crate) fn take(&self, key: &str, revision: Revision) -> Option<Arc<Stored>> {
        let mut waiting = self.0.lock();
        while let Some(first) = waiting.first_entry() {
            if *first.key() > revision {
                return None;
            }
            let written = first.remove();
            if written.revision() == revision && **written.key() == *key {
                return Some(written);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object::Unstructured;

    use super::*;

    fn written(key: &str, revision: i64) -> Arc<Stored> {
        let object = Unstructured::new("example.com/v1", "Thing");
        Arc::new(Stored::new(key.into(), Revision(revision), Box::new(object), 10))
    }

    #[test]
    fn each_is_taken_once_and_in_order() {
        let own = OwnWrites::default();
        for (key, revision) in [("a", 3), ("b", 5), ("a", 7)] {
            own.note(&written(key, revision));
        }
        let took = |key: &str, revision: i64| own.take(key, Revision(revision)).map(|found| found.revision().0);
        assert_eq!(took("c", 2), None, "somebody else's");
        assert_eq!(took("a", 3), Some(3));
        assert_eq!(took("a", 3), None);
        assert_eq!(took("c", 5), None, "another key's revision");
        assert_eq!(took("a", 7), Some(7));
        own.note(&written("a", 6));
        assert_eq!(took("b", 8), None, "noted after the watch had brought it");
        assert!(own.0.lock().is_empty());
    }

    #[test]
    fn a_watch_that_brings_nothing_costs_no_more_than_the_bound() {
        let own = OwnWrites::default();
        (0..2_000).for_each(|revision| own.note(&written("a", revision)));
        assert_eq!(own.0.lock().len(), MAX_WAITING);
        assert!(own.take("a", Revision(5_000)).is_none());
        assert!(own.0.lock().is_empty());
    }
}
