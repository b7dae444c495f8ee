//! What the log still has of objects is put to rest, too: large ones a second after they were written, shown still or
//! not, as many of them at once are much memory; all others where the log keeps them only as it keeps a few however old.
//!
//! Costs follow changes: nothing is looked at twice, and a log without large objects is not looked at before it is old.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;

use crate::change::Change;
use crate::log::{Log, MIN_CHANGES, Settled, WINDOW};
use crate::packed::Packer;
use crate::{Codec, Snapshot, Stored};

/// Stored forms of this many bytes are large.
pub(crate) const LARGE: usize = 8 << 10;
/// Watchers have seen what is older, and whoever made it has looked at it.
pub(crate) const SETTLED: Duration = Duration::from_secs(1);
/// Between parts; with [`BYTES_AT_ONCE`] it bounds what this takes of a processor.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes of stored forms that are put to rest in a part.
const BYTES_AT_ONCE: usize = 512 << 10;
/// How many changes are looked at in a part.
const LOOKED_AT_ONCE: usize = 1_024;
/// How many objects are remembered as they are before their next change.
const REMEMBERED: usize = 1_024;

/// Where the log's changes are put to rest.
#[derive(Default)]
pub(crate) struct Past {
    /// When the next part is due, while there is something to look at.
    due: Option<Instant>,
    /// The first change that was not looked at for large objects.
    from: u64,
    /// The same, for all others.
    old_from: u64,
    /// What changes led to last: their next ones come from there.
    latest: HashMap<Arc<str>, Arc<Stored>>,
    packer: Packer,
}

impl Past {
    /// A large object was written.
    pub(crate) fn heard_of_large(&mut self, now: Instant) {
        self.due.get_or_insert(now + SETTLED);
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The next changes of large objects, at rest.
    pub(crate) fn large(&mut self, log: &RwLock<Log>, codec: &Arc<dyn Codec>, now: Instant) -> Settled {
        let (changes, snapshot) = taken(log, self.from, LOOKED_AT_ONCE);
        self.due = (changes.len() == LOOKED_AT_ONCE).then_some(now + PAUSE);
        let (mut settled, mut bytes) = (Settled::default(), 0);
        for change in changes {
            if change.received + SETTLED > now || bytes >= BYTES_AT_ONCE {
                self.due = Some((change.received + SETTLED).max(now + PAUSE));
                break;
            }
            self.from = change.sequence + 1;
            if change.stored_bytes() >= LARGE {
                bytes += change.stored_bytes();
                self.put(&change, &snapshot, codec, &mut settled);
            }
        }
        settled
    }

    /// The same of those that the log keeps however old they are.
    pub(crate) fn old(&mut self, log: &RwLock<Log>, codec: &Arc<dyn Codec>, now: Instant) -> Settled {
        let (changes, snapshot) = taken(log, self.old_from, MIN_CHANGES);
        let mut settled = Settled::default();
        for change in changes.iter().take_while(|change| change.received + WINDOW < now) {
            self.old_from = change.sequence + 1;
            self.put(change, &snapshot, codec, &mut settled);
        }
        settled
    }

    fn put(&mut self, change: &Change, snapshot: &Snapshot, codec: &Arc<dyn Codec>, settled: &mut Settled) {
        let previous = change.previous.as_ref().map(|stored| self.at_rest(stored, snapshot, codec));
        let current = change.current.as_ref().map(|stored| self.at_rest(stored, snapshot, codec));
        self.latest.remove(&change.key);
        if let Some(current) = &current {
            if self.latest.len() == REMEMBERED {
                self.latest.clear();
            }
            self.latest.insert(Arc::clone(&change.key), Arc::clone(current));
        }
        let at = (change.sequence, change.revision, change.received);
        settled.changes.push(Arc::new(Change::new(at, Arc::clone(&change.key), current, previous)));
    }

    /// A version of an object at rest, or as it is where somebody else keeps it.
    fn at_rest(&mut self, stored: &Arc<Stored>, snapshot: &Snapshot, codec: &Arc<dyn Codec>) -> Arc<Stored> {
        let known = self.latest.get(stored.key()).or_else(|| snapshot.get(stored.key()));
        if let Some(known) = known.filter(|own| own.revision() == stored.revision() && own.is_at_rest()) {
            return Arc::clone(known);
        }
        stored.put_to_rest_early(codec, &mut self.packer).unwrap_or_else(|| Arc::clone(stored))
    }
}

/// Changes from a number on, and what all of them lead to.
fn taken(log: &RwLock<Log>, from: u64, most: usize) -> (Vec<Arc<Change>>, Arc<Snapshot>) {
    let log = log.read();
    (log.changes_from(from).take(most).cloned().collect(), Arc::clone(log.snapshot()))
}

#[cfg(test)]
mod tests {
    use storage::Revision;

    use super::*;
    use crate::Fingerprint;
    use crate::log::{Batch, CHECKPOINT_EVERY};
    use crate::snapshot::Scope;
    use crate::tests::{JsonCodec, indexes, stored};

    /// A log in which every change is of an object of so many bytes, some of them one after the other.
    struct Fixture {
        log: RwLock<Log>,
        past: Past,
        began: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            let log = Log::new(Arc::new(Snapshot::empty(Revision(1), indexes())), indexes());
            Self { log: RwLock::new(log), past: Past::default(), began: Instant::now() }
        }

        fn change(&self, revision: i64, key: &str, bytes: Option<usize>, at: Duration) {
            let sized = |bytes: usize| {
                let object = stored(key, revision, "red").object().clone_object();
                Arc::new(Stored::new(key.into(), Revision(revision), object, Fingerprint::of(&vec![0; bytes])))
            };
            let changes = vec![(key.into(), bytes.map(sized))];
            self.log.write().apply(vec![Batch { revision: Revision(revision), changes }], self.began + at);
        }

        fn settle(&mut self, at: Duration, part: impl Fn(&mut Past, &RwLock<Log>, Instant) -> Settled) -> usize {
            let settled = part(&mut self.past, &self.log, self.began + at);
            self.log.write().settle(&settled, self.began + at);
            settled.changes.len()
        }

        fn large(&mut self, at: Duration) -> usize {
            self.settle(at, |past, log, now| past.large(log, &codec(), now))
        }

        /// Of each change: whether what it led to and what was before it are at rest; nothing where there is none.
        fn rests(&self) -> Vec<[Option<bool>; 2]> {
            let rests = |stored: &Option<Arc<Stored>>| stored.as_ref().map(|stored| stored.is_at_rest());
            let log = self.log.read();
            log.changes_from(0).map(|change| [rests(&change.previous), rests(&change.current)]).collect()
        }
    }

    fn codec() -> Arc<dyn Codec> {
        Arc::new(JsonCodec)
    }

    #[tokio::test(start_paused = true)]
    async fn large_objects_rest_once_they_are_settled() {
        let mut own = Fixture::new();
        let second = Duration::from_secs(1);
        own.change(2, "a/large", Some(LARGE), Duration::ZERO);
        own.change(3, "a/small", Some(LARGE - 1), Duration::ZERO);
        own.change(4, "a/large", Some(LARGE), second);
        own.change(5, "a/large", None, second * 2);
        own.change(6, "a/later", Some(LARGE), SETTLED * 4);
        own.past.heard_of_large(own.began);
        assert_eq!(own.past.due(), Some(own.began + SETTLED));
        let text = own.log.read().changes_from(2).next().unwrap().current.as_ref().unwrap().json();

        assert_eq!(own.large(SETTLED), 1);
        assert_eq!(own.past.due(), Some(own.began + SETTLED + second), "then the next one is settled");
        assert_eq!(own.large(SETTLED + second * 2), 2);
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(own.rests(), [[None, yes], [None, no], [yes, yes], [yes, None], [None, no]]);
        assert_eq!(own.large(SETTLED * 5), 1);
        assert_eq!(own.past.due(), None, "nothing is left");
        assert!(own.log.read().snapshot().get("a/later").unwrap().is_at_rest(), "shown at rest, too");

        let log = own.log.read();
        let again = log.changes_from(2).next().unwrap();
        assert_eq!((again.revision, again.current.as_ref().unwrap().json()), (Revision(4), text), "it is as it was");
        let before = log.changes_from(3).next().unwrap().previous.clone().unwrap();
        assert!(Arc::ptr_eq(&before, again.current.as_ref().unwrap()), "one of each version");

        let packed = before.put_to_rest(&codec(), &mut Packer::default()).expect("it is packed once more");
        assert_eq!(packed.json(), before.json());
        let packed = packed.put_to_rest(&codec(), &mut Packer::default()).expect("it was asked for");
        assert!(packed.put_to_rest(&codec(), &mut Packer::default()).is_none(), "and then left alone");
    }

    /// A watcher of a scope goes on in its own list of the log's changes.
    #[tokio::test(start_paused = true)]
    async fn checkpoints_and_scopes_keep_the_same() {
        let mut own = Fixture::new();
        let key = |number: u64| format!("a/{:03}", number % 700);
        let last = CHECKPOINT_EVERY * 2;
        for number in 0..=last {
            own.change(number as i64 + 2, &key(number), Some(LARGE), Duration::ZERO);
        }
        let scope = Scope::Namespace("a".into());
        let mut gathering = own.log.read().begin_gathering(Revision(1)).unwrap();
        while own.log.read().gather(&scope, &mut gathering) {}
        own.log.write().join_gathered(&scope, Revision(1), gathering).unwrap();
        let (checkpoint, _) = own.log.read().undo_to(Revision(5)).unwrap();
        assert!(checkpoint.revision() < own.log.read().revision(), "it is not the newest state");
        let first = Arc::downgrade(checkpoint.get(&key(0)).unwrap());
        drop(checkpoint);
        let mut parts = 0;
        while own.past.due().is_some() || parts == 0 {
            assert!(own.large(SETTLED) <= BYTES_AT_ONCE / LARGE, "a part has a bound");
            parts += 1;
        }
        assert_eq!(parts, (last + 1).div_ceil((BYTES_AT_ONCE / LARGE) as u64));
        assert!(first.upgrade().is_none(), "nobody keeps it awake");
        let mut read = Vec::new();
        own.log.read().read(&scope, 0, &mut read).ok().unwrap();
        assert!(!read.is_empty() && read.iter().all(|change| change.current.as_ref().unwrap().is_at_rest()));
        let (checkpoint, changes) = own.log.read().undo_to(Revision(5)).unwrap();
        assert!(changes.iter().all(|change| change.current.as_ref().unwrap().is_at_rest()));
        assert!(checkpoint.range("", "").all(|stored| stored.is_at_rest()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_few_that_are_kept_for_long_rest_whatever_their_size() {
        let mut own = Fixture::new();
        own.change(2, "a/old", Some(10), Duration::ZERO);
        own.change(3, "a/young", Some(10), WINDOW);
        let old = |own: &mut Fixture, at| own.settle(at, |past, log, now| past.old(log, &codec(), now));
        let later = Duration::from_millis(1);
        assert_eq!(old(&mut own, WINDOW), 0);
        assert_eq!(old(&mut own, WINDOW + later), 1);
        assert_eq!(own.rests(), [[None, Some(true)], [None, Some(false)]]);
        assert_eq!([old(&mut own, WINDOW * 2 + later), old(&mut own, WINDOW * 3)], [1, 0], "each is looked at once");
    }
}
