//! Watchers as cursors into the event log.
//!
//! A watcher holds no queue, only the oldest revision it has not delivered. A write looks up the watchers whose range
//! covers its key and wakes those; a watcher none of whose keys change never runs and never falls behind.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::Notify;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::state::State;
use super::store::Store;
use crate::{Event, EventBatch, EventStream, Key, KeyRange, ProgressHandle, Revision, StorageError, WatchItem};

/// How many batches a watcher takes from the log at once, so that it holds the lock only briefly.
const READ_BATCHES: usize = 256;

/// How many log entries a watcher looks at while it holds the lock.
const READ_ENTRIES: i64 = 8_192;

/// How often a watch reports progress of its own accord, as etcd does.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Nothing is waiting to be read.
const CAUGHT_UP: i64 = 0;

/// The part of a watcher that writers touch.
#[derive(Debug)]
pub(crate) struct Slot {
    range: KeyRange,
    after: Revision,
    /// The oldest revision not yet looked at, or [`CAUGHT_UP`]. Writers set it under the write lock, the watcher under
    /// the read lock.
    pending: AtomicI64,
    wake: Notify,
}

impl Slot {
    fn pending(&self) -> i64 {
        self.pending.load(Ordering::Acquire)
    }
}

/// All watchers, ordered by where their ranges start, with how far the ranges up to each reach.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    slots: Vec<Arc<Slot>>,
    /// `reach[i]` is the greatest end of `slots[..=i]`; `None` is no end. Lets a lookup stop early.
    reach: Vec<Option<Key>>,
}

impl Watchers {
    fn add(&mut self, slot: Arc<Slot>) {
        let index = self.slots.partition_point(|other| other.range.start() <= slot.range.start());
        self.slots.insert(index, slot);
        self.rebuild_reach();
    }

    fn remove(&mut self, slot: &Arc<Slot>) {
        self.slots.retain(|other| !Arc::ptr_eq(other, slot));
        self.rebuild_reach();
    }

    fn rebuild_reach(&mut self) {
        self.reach.clear();
        for slot in &self.slots {
            let end = slot.range.end().cloned();
            let furthest = match (self.reach.last(), end) {
                (None, end) => end,
                (Some(Some(furthest)), Some(end)) => Some(end.max(furthest.clone())),
                (Some(_), _) => None,
            };
            self.reach.push(furthest);
        }
    }

    /// Tells the watchers of a key that it changed.
    pub(super) fn notify(&self, key: &Key, revision: Revision) {
        let candidates = self.slots.partition_point(|slot| slot.range.start() <= key);
        for (slot, reach) in self.slots.iter().zip(&self.reach).take(candidates).rev() {
            if reach.as_ref().is_some_and(|reach| reach <= key) {
                break;
            }
            if revision > slot.after && slot.range.contains(key) && slot.pending() == CAUGHT_UP {
                slot.pending.store(revision.0, Ordering::Release);
                slot.wake.notify_one();
            }
        }
    }

    /// Wakes the watchers that a compaction has overtaken, so that they end now and not at their next event.
    pub(super) fn wake_behind(&self, compacted: Revision) {
        for slot in &self.slots {
            if slot.pending() != CAUGHT_UP && slot.pending() <= compacted.0 {
                slot.wake.notify_one();
            }
        }
    }
}

/// The part of a watcher that its reader holds.
struct Cursor {
    store: Arc<Store>,
    slot: Arc<Slot>,
    progress: ProgressHandle,
    /// The reasons to wake up that stay registered from one wait to the next; a busy watch waits very often.
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Made at the first wait, because a watch may be started outside the runtime.
    tick: Option<Interval>,
    ready: VecDeque<EventBatch>,
    /// The newest revision delivered or reported, so that marks never go back.
    reported: Revision,
    failed: bool,
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.store.write(|state| state.watchers.remove(&self.slot));
    }
}

/// Starts a watch of `range` from the revision after `after`.
pub(super) fn watch(store: Arc<Store>, range: KeyRange, after: Revision) -> EventStream {
    let progress = ProgressHandle::default();
    let slot = store.write(|state| {
        let pending = if after < state.revision() { after.0.max(0) + 1 } else { CAUGHT_UP };
        let slot = Arc::new(Slot { range, after, pending: AtomicI64::new(pending), wake: Notify::new() });
        state.watchers.add(Arc::clone(&slot));
        slot
    });
    let cursor = Cursor {
        closed: Box::pin(store.closed()),
        store,
        slot,
        progress: progress.clone(),
        tick: None,
        ready: VecDeque::new(),
        reported: after,
        failed: false,
    };
    EventStream::new(items(cursor), progress)
}

fn items(cursor: Cursor) -> impl Stream<Item = Result<WatchItem, StorageError>> + Send {
    unfold(cursor, |mut cursor| async move {
        if cursor.failed {
            return None;
        }
        let item = cursor.next().await;
        cursor.failed = item.is_err();
        Some((item, cursor))
    })
}

impl Cursor {
    async fn next(&mut self) -> Result<WatchItem, StorageError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.reported = batch.revision;
                return Ok(WatchItem::Events(batch));
            }
            self.fill()?;
            if !self.ready.is_empty() {
                continue;
            }
            if self.slot.pending() != CAUGHT_UP {
                // A long stretch of other keys' changes: let others have the lock in between.
                tokio::task::yield_now().await;
                continue;
            }
            if let Some(mark) = self.wait().await? {
                return Ok(WatchItem::Progress(mark));
            }
        }
    }

    fn fill(&mut self) -> Result<(), StorageError> {
        let (slot, ready) = (&self.slot, &mut self.ready);
        self.store.read(|state| read_log(state, slot, ready))
    }

    /// Waits for a change or for a reason to report progress; a mark is returned only where nothing is unread.
    async fn wait(&mut self) -> Result<Option<Revision>, StorageError> {
        let tick = self.tick.get_or_insert_with(progress_interval);
        tokio::select! {
            biased;
            () = &mut self.closed => return Err(StorageError::Closed),
            () = self.slot.wake.notified() => return Ok(None),
            () = self.progress.requested() => {}
            _ = tick.tick() => {}
        }
        let slot = &self.slot;
        let mark = self.store.read(|state| (slot.pending() == CAUGHT_UP).then(|| state.revision()));
        match mark {
            Some(mark) if mark >= self.reported => {
                self.reported = mark;
                Ok(Some(mark))
            }
            // Unread changes come first, and the request is answered after them.
            None => {
                self.progress.request();
                Ok(None)
            }
            Some(_) => Ok(None),
        }
    }
}

fn progress_interval() -> Interval {
    let mut tick = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

/// Moves what the slot has not seen into `ready`, within the limits, and advances the slot.
fn read_log(state: &State, slot: &Slot, ready: &mut VecDeque<EventBatch>) -> Result<(), StorageError> {
    let pending = slot.pending();
    if pending == CAUGHT_UP {
        return Ok(());
    }
    if pending <= state.compacted().0 {
        let compacted = Some(state.compacted());
        return Err(StorageError::Compacted { requested: Revision(pending - 1), compacted });
    }
    let last = state.revision().0.min(pending.saturating_add(READ_ENTRIES));
    let mut next = pending;
    while next <= last && ready.len() < READ_BATCHES {
        ready.extend(state.logged(Revision(next)).and_then(|batch| within(batch, &slot.range)));
        next += 1;
    }
    let unread = if next > state.revision().0 { CAUGHT_UP } else { next };
    slot.pending.store(unread, Ordering::Release);
    Ok(())
}

/// The part of a batch that lies in a range, sharing the events where that is all of them.
fn within(batch: &EventBatch, range: &KeyRange) -> Option<EventBatch> {
    let matching = batch.events.iter().filter(|event| range.contains(event.key())).count();
    if matching == batch.events.len() {
        return Some(batch.clone());
    }
    let events: Vec<Event> = batch.events.iter().filter(|event| range.contains(event.key())).cloned().collect();
    (!events.is_empty()).then(|| EventBatch { revision: batch.revision, events: events.into() })
}
