//! The state itself: the index of keys, the event log, leases and watchers. Plain data behind the lock of `Store`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use tokio::time::Instant;

use super::history::{History, Version};
use super::lease::Leases;
use super::staging::Effect;
use super::watch::Watchers;
use crate::{Event, EventBatch, Key, KeyRange, KeyValue, LeaseId, Revision};

/// Names a retained version: its revision and its position among the changes of that revision.
pub(crate) type RowId = (u64, u32);

/// An empty store is at revision 1, as etcd is.
const FIRST_REVISION: Revision = Revision(1);

#[derive(Debug)]
pub(crate) struct State {
    revision: Revision,
    compacted: Revision,
    next_lease: i64,
    keys: BTreeMap<Key, History>,
    /// Every change after `compacted`, one batch per revision without a gap.
    log: VecDeque<EventBatch>,
    leases: Leases,
    live_bytes: u64,
    history_bytes: u64,
    pub(super) watchers: Watchers,
}

impl Default for State {
    fn default() -> Self {
        Self {
            revision: FIRST_REVISION,
            compacted: Revision(0),
            next_lease: 1,
            keys: BTreeMap::new(),
            log: VecDeque::new(),
            leases: Leases::default(),
            live_bytes: 0,
            history_bytes: 0,
            watchers: Watchers::default(),
        }
    }
}

impl State {
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(crate) fn next_lease(&self) -> i64 {
        self.next_lease
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Bytes of keys and values that exist now.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Roughly what superseded versions and deletions take.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    pub(crate) fn current(&self, key: &Key) -> Option<&KeyValue> {
        self.keys.get(key).and_then(History::current)
    }

    /// The versions of a range's keys that existed at `at`, in order.
    pub(crate) fn range<'state>(
        &'state self,
        range: &KeyRange,
        at: Revision,
    ) -> impl Iterator<Item = &'state KeyValue> + use<'state> {
        let end = range.end().map_or(Bound::Unbounded, |end| Bound::Excluded(end.clone()));
        // BTreeMap panics on a range that ends before it starts.
        let bounds = if range.is_empty() {
            (Bound::Included(range.start().clone()), Bound::Excluded(range.start().clone()))
        } else {
            (Bound::Included(range.start().clone()), end)
        };
        self.keys.range::<Key, _>(bounds).filter_map(move |(_, history)| history.at(at))
    }

    /// The batch of one revision, if it is still in the log.
    pub(super) fn logged(&self, revision: Revision) -> Option<&EventBatch> {
        let first = self.log.front()?.revision;
        usize::try_from(revision.0 - first.0).ok().and_then(|index| self.log.get(index))
    }

    /// Makes staged effects part of the state and returns the rows that compaction made superfluous.
    pub(crate) fn apply(&mut self, effects: &[Effect], now: Instant) -> Vec<RowId> {
        let mut superfluous = Vec::new();
        for effect in effects {
            match effect {
                Effect::Changed(batch) => self.change(batch),
                Effect::LeaseGranted { lease, ttl } => {
                    self.next_lease = self.next_lease.max(lease.0 + 1);
                    self.leases.grant(*lease, *ttl, now);
                }
                Effect::LeaseEnded(lease) => self.leases.drop_lease(*lease),
                Effect::Compacted(at) => superfluous.extend(self.compact(*at)),
            }
        }
        superfluous
    }

    fn change(&mut self, batch: &EventBatch) {
        self.revision = batch.revision;
        for (position, event) in (0_u32..).zip(batch.events.iter()) {
            let (key, kv) = match event {
                Event::Put { kv, .. } => (&kv.key, Some(kv.clone())),
                Event::Delete { key, .. } => (key, None),
            };
            self.push_version(key, Version { revision: batch.revision, position, kv });
            self.watchers.notify(key, batch.revision);
        }
        self.log.push_back(batch.clone());
    }

    fn push_version(&mut self, key: &Key, version: Version) {
        let lease = version.kv.as_ref().and_then(|kv| kv.lease);
        let added = version.kv.as_ref().map_or(0, |kv| live_weight(key, kv));
        let history = if let Some(history) = self.keys.get_mut(key) {
            history
        } else {
            self.keys.entry(key.clone()).or_default()
        };
        if version.kv.is_none() {
            self.history_bytes += version.weight();
        }
        if let Some((old, kv)) = history.newest().and_then(|old| old.kv.as_ref().map(|kv| (old, kv))) {
            self.history_bytes += old.weight();
            self.live_bytes = self.live_bytes.saturating_sub(live_weight(key, kv));
            if let Some(old_lease) = kv.lease {
                self.leases.detach(old_lease, key);
            }
        }
        history.push(version);
        self.live_bytes += added;
        if let Some(lease) = lease {
            self.leases.attach(lease, key);
        }
    }

    fn compact(&mut self, at: Revision) -> Vec<RowId> {
        self.compacted = at;
        while self.log.front().is_some_and(|batch| batch.revision <= at) {
            self.log.pop_front();
        }
        let mut rows = Vec::new();
        let mut freed = 0;
        self.keys.retain(|_, history| {
            if history.is_settled() {
                return true;
            }
            for version in history.compact(at) {
                freed += version.weight();
                rows.push((version.revision.0.unsigned_abs(), version.position));
            }
            !history.is_empty()
        });
        self.history_bytes = self.history_bytes.saturating_sub(freed);
        self.watchers.wake_behind(at);
        rows
    }
}

/// Rebuilding from disk: rows come in the order of their revisions, then `finish_restore`.
impl State {
    pub(crate) fn restore_lease(&mut self, lease: LeaseId, ttl: std::time::Duration, now: Instant) {
        self.next_lease = self.next_lease.max(lease.0 + 1);
        self.leases.grant(lease, ttl, now);
    }

    /// Adds one retained version and returns it as the event that it was.
    pub(crate) fn restore_version(&mut self, key: Key, version: Version) -> Event {
        let previous = self.current(&key).cloned();
        let event = match &version.kv {
            Some(kv) => Event::Put { kv: kv.clone(), previous },
            None => Event::Delete { key: key.clone(), revision: version.revision, previous },
        };
        self.push_version(&key, version);
        event
    }

    pub(crate) fn restore_log(&mut self, batch: EventBatch) {
        self.log.push_back(batch);
    }

    /// Sets the counters and returns the rows that an interrupted compaction left behind.
    pub(crate) fn finish_restore(&mut self, revision: Revision, compacted: Revision, next_lease: i64) -> Vec<RowId> {
        self.revision = revision;
        self.next_lease = self.next_lease.max(next_lease);
        self.compact(compacted)
    }
}

fn live_weight(key: &Key, kv: &KeyValue) -> u64 {
    (key.as_bytes().len() + kv.value.len()) as u64
}
