//! What a cache puts to rest, and when: in rounds through it, what nobody has asked for since the last one; and what its log
//! still has of objects ([`crate::past`]).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use storage::{Event, EventBatch};
use tokio::time::Instant;

use crate::log::{Log, Settled};
use crate::packed::Packer;
use crate::past::{LARGE, Past};
use crate::{Codec, Snapshot, Stored};

/// From the end of a round to the next. An object is at rest after one to two of them in which it is not asked for.
pub(crate) const ROUND: Duration = Duration::from_secs(60);
/// Between the parts of a round, in which changes are shown and requests answered.
const PAUSE: Duration = Duration::from_millis(20);
/// How many objects are put to rest in a part, or bytes of their stored forms: a millisecond's worth, or two.
const PUT_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 256 << 10;
/// How many are looked at in a part.
const LOOKED_AT_ONCE: usize = 4_096;

/// What a cache puts to rest, and when.
pub(crate) struct Rest {
    rounds: Rounds,
    past: Past,
}

impl Rest {
    pub(crate) fn new(now: Instant) -> Self {
        Self { rounds: Rounds::new(now), past: Past::default() }
    }

    /// Hears of what was written.
    pub(crate) fn hear(&mut self, batches: &[EventBatch], now: Instant) {
        let mut events = batches.iter().flat_map(|batch| batch.events.iter());
        if events.any(|event| matches!(event, Event::Put { kv, .. } if kv.value.len() >= LARGE)) {
            self.past.heard_of_large(now);
        }
    }

    /// Waits until something is to be done.
    pub(crate) async fn due(&self) {
        let due = self.past.due().map_or(self.rounds.due, |due| due.min(self.rounds.due));
        tokio::time::sleep_until(due).await;
    }

    /// Does the next part of what is due.
    pub(crate) fn part(&mut self, log: &RwLock<Log>, codec: &Arc<dyn Codec>, now: Instant) -> Settled {
        if self.past.due().is_some_and(|due| due <= now) {
            return self.past.large(log, codec, now);
        }
        let snapshot = Arc::clone(log.read().snapshot());
        Settled { objects: self.rounds.part(&snapshot, codec, now), ..self.past.old(log, codec, now) }
    }
}

/// Where a cache's round is.
struct Rounds {
    due: Instant,
    /// The first key that was not looked at yet.
    from: Arc<str>,
    packer: Packer,
}

impl Rounds {
    fn new(now: Instant) -> Self {
        Self { due: now + ROUND, from: "".into(), packer: Packer::default() }
    }

    /// The objects of the next part that can be kept at rest.
    fn part(&mut self, snapshot: &Snapshot, codec: &Arc<dyn Codec>, now: Instant) -> Vec<Arc<Stored>> {
        let (mut put, mut bytes) = (Vec::new(), 0);
        for (looked_at, stored) in snapshot.range("", &self.from).enumerate() {
            if looked_at == LOOKED_AT_ONCE || put.len() == PUT_AT_ONCE || bytes >= BYTES_AT_ONCE {
                (self.from, self.due) = (Arc::clone(stored.key()), now + PAUSE);
                return put;
            }
            if stored.was_asked_for() {
                continue;
            }
            if let Some(at_rest) = stored.put_to_rest(codec, &mut self.packer) {
                bytes += stored.stored_bytes();
                put.push(at_rest);
            }
        }
        *self = Self::new(now);
        put
    }
}

#[cfg(test)]
mod tests {
    use storage::Revision;

    use super::*;
    use crate::log::{Batch, CHECKPOINT_EVERY, Log, WINDOW};
    use crate::snapshot::Scope;
    use crate::tests::{JsonCodec, indexes, stored};

    fn log_of(keys: impl Iterator<Item = String>, now: Instant) -> Log {
        let mut log = Log::new(Arc::new(Snapshot::empty(Revision(1), indexes())), indexes());
        let changes = keys.map(|key| (key.as_str().into(), Some(stored(&key, 2, "red")))).collect();
        log.apply(vec![Batch { revision: Revision(2), changes }], now);
        log
    }

    fn of(objects: &[Arc<Stored>]) -> Settled {
        Settled { objects: objects.to_vec(), ..Settled::default() }
    }

    fn codec() -> Arc<dyn Codec> {
        Arc::new(JsonCodec)
    }

    fn at_rest(log: &Log) -> Vec<String> {
        let found = log.snapshot().range("", "").filter(|stored| stored.is_at_rest());
        found.map(|stored| stored.key().to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_asked_for_waits_for_the_next_round() {
        let now = Instant::now();
        let mut log = log_of(["a/one", "a/two"].map(str::to_owned).into_iter(), now);
        let mut rounds = Rounds::new(now);
        let mut round = |log: &mut Log| {
            let put = rounds.part(&Arc::clone(log.snapshot()), &codec(), now);
            log.settle(&of(&put), now);
        };
        let two = Arc::clone(log.snapshot().get("a/two").unwrap());
        assert_eq!(two.object().meta().labels["colour"], "red");
        round(&mut log);
        assert_eq!(at_rest(&log), ["a/one"]);
        round(&mut log);
        assert_eq!(at_rest(&log), ["a/one", "a/two"]);

        let of_index: Vec<_> = log.snapshot().scoped(&Scope::Indexed(0, "red".into()), "").collect();
        assert!(of_index.len() == 2 && of_index.iter().all(|stored| stored.is_at_rest()));
        let object = of_index[0].shared_object();
        assert_eq!((object.kind(), object.meta().resource_version.as_str()), ("Thing", "2"));
        drop(object);
        round(&mut log);
        assert_eq!(at_rest(&log), ["a/two"], "it is awake now");
        round(&mut log);
        assert_eq!(at_rest(&log), ["a/one", "a/two"]);
    }

    /// One that was asked for gives up again what was made of it; one with nothing to give up is left alone.
    #[tokio::test(start_paused = true)]
    async fn what_is_packed_is_read_again_and_let_go_again() {
        let now = Instant::now();
        let mut log = log_of((0..3).map(|number| format!("a/{number}")), now);
        let all = |log: &Log| log.snapshot().range("", "").cloned().collect::<Vec<_>>();
        let texts = || all(&log_of((0..3).map(|number| format!("a/{number}")), now)).into_iter().map(|own| own.json());
        let mut rounds = Rounds::new(now);
        let mut round = |log: &mut Log| {
            let put = rounds.part(&Arc::clone(log.snapshot()), &codec(), now);
            log.settle(&of(&put), now);
            put.len()
        };
        assert_eq!([round(&mut log), round(&mut log)], [3, 0], "put to rest, and left alone");
        let packed = all(&log);
        assert!(packed.iter().map(|stored| stored.json()).eq(texts()));
        assert_eq!(packed[1].object().meta().labels["colour"], "red");
        assert_eq!([round(&mut log), round(&mut log), round(&mut log)], [0, 3, 0], "asked for, let go, and left alone");
        let again = all(&log);
        assert!(again.iter().zip(&packed).all(|(one, other)| one.is_at_rest() && !Arc::ptr_eq(one, other)));
        assert!(again.iter().map(|stored| stored.json()).eq(texts()));
    }

    #[tokio::test(start_paused = true)]
    async fn large_objects_are_put_to_rest_a_few_at_a_time() {
        let now = Instant::now();
        let keys = (0..5).map(|number| format!("a/{number}"));
        let large = |key: &str| {
            let stored = stored(key, 2, "red");
            let object = stored.object().clone_object();
            Arc::new(Stored::new(key.into(), Revision(2), object, crate::Fingerprint::of(&[0; BYTES_AT_ONCE / 2])))
        };
        let changes = keys.map(|key| (key.as_str().into(), Some(large(&key)))).collect();
        let mut log = Log::new(Arc::new(Snapshot::empty(Revision(1), indexes())), indexes());
        log.apply(vec![Batch { revision: Revision(2), changes }], now);
        let mut rounds = Rounds::new(now);
        let sizes: Vec<_> = (0..3).map(|_| rounds.part(log.snapshot(), &codec(), now).len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_goes_on_where_it_stopped() {
        let now = Instant::now();
        let count = PUT_AT_ONCE * 2 + 1;
        let log = log_of((0..count).map(|number| format!("a/{number:04}")), now);
        let mut rounds = Rounds::new(now);
        let (mut sizes, mut dues) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            sizes.push(rounds.part(log.snapshot(), &codec(), now).len());
            dues.push(rounds.due - now);
        }
        assert_eq!(sizes, [PUT_AT_ONCE, PUT_AT_ONCE, 1]);
        assert_eq!(dues, [PAUSE, PAUSE, ROUND]);
    }

    /// A checkpoint among the last changes has all objects of a cache that nobody writes to any more.
    #[tokio::test(start_paused = true)]
    async fn the_log_keeps_nothing_awake_for_long() {
        let now = Instant::now();
        let mut log = log_of((0..CHECKPOINT_EVERY).map(|number| format!("a/{number:04}")), now);
        let first = Arc::downgrade(log.snapshot().get("a/0000").unwrap());
        for revision in 3..13 {
            let changes = vec![("b/one".into(), Some(stored("b/one", revision, "blue")))];
            log.apply(vec![Batch { revision: Revision(revision), changes }], now);
        }
        let (mut rounds, later) = (Rounds::new(now), now + WINDOW * 2);
        for _ in (0..log.snapshot().len()).step_by(PUT_AT_ONCE) {
            let put = rounds.part(&Arc::clone(log.snapshot()), &codec(), now);
            log.settle(&of(&put), later);
        }
        assert_eq!(at_rest(&log).len(), log.snapshot().len());
        assert!(first.upgrade().is_none());
        assert!(log.undo_to(Revision(11)).is_some(), "what the log still has is still reached");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_changed_meanwhile_is_left_alone() {
        let now = Instant::now();
        let mut log = log_of(std::iter::once("a/one".to_owned()), now);
        let put = Rounds::new(now).part(log.snapshot(), &codec(), now);
        let changes = vec![("a/one".into(), Some(stored("a/one", 3, "blue")))];
        log.apply(vec![Batch { revision: Revision(3), changes }], now);
        log.settle(&of(&put), now);
        let kept = log.snapshot().get("a/one").unwrap();
        assert_eq!((put.len(), kept.revision(), kept.is_at_rest()), (1, Revision(3), false));
    }
}
