//! The state behind its lock, with the reads that the memory and the embedded store share.

use std::future::Future;
use std::sync::Arc;

use base::{CancellationToken, SharedClock};
use parking_lot::RwLock;
use tokio::time::Instant;

use super::staging::Effect;
use super::state::{RowId, State};
use super::watch;
use crate::{EventStream, Get, Key, KeyRange, KeyValue, Revision, Slice, StorageError};

/// How many keys a read looks at before it lets writers and other tasks in between; the revision keeps the parts
/// consistent.
const READ_KEYS: usize = 4_096;

/// How large things may grow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Key and value of one write.
    pub(crate) request_bytes: usize,
    /// All keys and values that exist at once.
    pub(crate) live_bytes: u64,
    /// Superseded versions; beyond it the store compacts on its own.
    pub(crate) history_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // etcd's default request limit; its largest recommended database; history for a busy cluster's ten minutes.
        Self { request_bytes: 1_572_864, live_bytes: 8 << 30, history_bytes: 512 << 20 }
    }
}

/// The shared state of a store that lives in this process.
#[derive(Debug)]
pub(crate) struct Store {
    state: RwLock<State>,
    closed: CancellationToken,
}

impl Store {
    pub(crate) fn new(state: State, closed: CancellationToken) -> Arc<Self> {
        Arc::new(Self { state: RwLock::new(state), closed })
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read())
    }

    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        write(&mut self.state.write())
    }

    /// Makes staged effects visible, then wakes watchers; returns the rows no longer needed.
    pub(crate) fn apply(&self, effects: &[Effect], clock: &SharedClock) -> Vec<RowId> {
        let now = clock.monotonic();
        self.write(|state| state.apply(effects, now))
    }

    /// Ends when the store is closed.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.closed.clone().cancelled_owned()
    }

    pub(crate) fn get(&self, key: &Key) -> Get {
        self.read(|state| Get { kv: state.current(key).cloned(), revision: state.revision() })
    }

    pub(crate) fn revision(&self) -> Revision {
        self.read(State::revision)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.read(|state| state.leases().next_deadline())
    }

    pub(crate) async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        let (revision, mut rest, mut total) = (self.revision(), range.clone(), 0);
        loop {
            let chunk = self.chunk(&rest, revision, 0)?;
            total += chunk.seen;
            let Some(last) = chunk.last else { return Ok(total) };
            rest = rest.after(&last);
            tokio::task::yield_now().await;
        }
    }

    /// Reads a range at a revision, a chunk at a time.
    pub(crate) async fn range(
        &self,
        range: &KeyRange,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<Slice, StorageError> {
        let current = self.revision();
        let at = at.unwrap_or(current);
        if at > current {
            return Err(StorageError::FutureRevision { requested: at, current: Some(current) });
        }
        let limit = if limit == 0 { usize::MAX } else { limit };
        let (mut rest, mut kvs, mut seen) = (range.clone(), Vec::new(), 0_u64);
        loop {
            let chunk = self.chunk(&rest, at, limit - kvs.len())?;
            seen += chunk.seen;
            kvs.extend(chunk.kvs);
            let Some(last) = chunk.last else { break };
            rest = rest.after(&last);
            tokio::task::yield_now().await;
        }
        let remaining = seen - kvs.len() as u64;
        Ok(Slice { kvs, remaining, revision: current })
    }

    fn chunk(&self, range: &KeyRange, at: Revision, wanted: usize) -> Result<Chunk, StorageError> {
        self.read(|state| {
            if at < state.compacted() {
                return Err(StorageError::Compacted { requested: at, compacted: Some(state.compacted()) });
            }
            let mut chunk = Chunk::default();
            for (index, kv) in (1..=READ_KEYS).zip(state.range(range, at)) {
                chunk.seen += 1;
                if chunk.kvs.len() < wanted {
                    chunk.kvs.push(kv.clone());
                }
                if index == READ_KEYS {
                    chunk.last = Some(kv.key.clone());
                }
            }
            Ok(chunk)
        })
    }

    pub(crate) fn watch(self: &Arc<Self>, range: KeyRange, after: Revision) -> EventStream {
        watch::watch(Arc::clone(self), range, after)
    }
}

/// Part of a read.
#[derive(Default)]
struct Chunk {
    kvs: Vec<KeyValue>,
    seen: u64,
    /// The key to go on after; `None` where the range is at its end.
    last: Option<Key>,
}
