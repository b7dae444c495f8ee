//! A store in memory: the MVCC core and nothing else. For tests and simulation; it forgets at exit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use tokio::sync::Notify;

use crate::mvcc::{Command, Limits, Reply, Staging, State, Store};
use crate::{Backend, EventStream, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};

/// How many leases end in one go.
const EXPIRE_BATCH: usize = 256;

/// The limits of a memory store.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    /// The largest write, key and value, in bytes.
    pub max_request_bytes: usize,
    /// How many bytes of keys and values may exist at once.
    pub quota_bytes: u64,
    /// How many bytes of superseded versions are kept before the store compacts on its own.
    pub max_history_bytes: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            max_request_bytes: limits.request_bytes,
            quota_bytes: limits.live_bytes,
            max_history_bytes: limits.history_bytes,
        }
    }
}

/// A store that lives as long as the process.
pub struct Memory {
    store: Arc<Store>,
    clock: SharedClock,
    limits: Limits,
    lease_granted: Arc<Notify>,
}

impl Memory {
    /// An empty store. A task of `group` ends its leases; watches end when the group is cancelled.
    #[must_use]
    pub fn new(options: MemoryOptions, clock: SharedClock, group: &TaskGroup) -> Arc<Self> {
        let limits = Limits {
            request_bytes: options.max_request_bytes,
            live_bytes: options.quota_bytes,
            history_bytes: options.max_history_bytes,
        };
        let store = Store::new(State::default(), group.token());
        let memory = Arc::new(Self { store, clock, limits, lease_granted: Arc::default() });
        group.spawn_cancellable("storage-leases", expire_leases(Arc::clone(&memory)));
        memory
    }

    fn submit(&self, command: Command) -> Result<Reply, StorageError> {
        let now = self.clock.monotonic();
        self.store.write(|state| {
            let mut staging = Staging::new(state, self.limits);
            let reply = staging.stage(command)?;
            let effects = staging.effects;
            state.apply(&effects, now);
            if state.history_bytes() > self.limits.history_bytes {
                let midway = Revision(i64::midpoint(state.compacted().0, state.revision().0));
                state.apply(&[crate::mvcc::Effect::Compacted(midway)], now);
            }
            Ok(reply)
        })
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Memory")
    }
}

/// Ends leases as their time comes.
async fn expire_leases(memory: Arc<Memory>) {
    loop {
        let granted = memory.lease_granted.notified();
        match memory.store.next_deadline() {
            None => granted.await,
            Some(deadline) => {
                tokio::select! {
                    biased;
                    () = granted => {}
                    () = tokio::time::sleep_until(deadline) => memory.expire_due(),
                }
            }
        }
    }
}

impl Memory {
    fn expire_due(&self) {
        let now = self.clock.monotonic();
        for lease in self.store.read(|state| state.leases().expired(now, EXPIRE_BATCH)) {
            // The only refusal is that somebody else ended it first.
            let _already_ended = self.submit(Command::Revoke { lease });
        }
    }
}

#[async_trait]
impl Backend for Memory {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        Ok(self.store.get(key))
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        self.store.range(range, limit, at).await
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        self.store.count(range).await
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        self.submit(Command::Txn { key: key.clone(), expect, write }).map(Reply::into_txn)?
    }

    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        self.store.watch(range, after)
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        Ok(self.store.revision())
    }

    fn supports_progress(&self) -> bool {
        true
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        let lease = self.submit(Command::Grant { ttl }).map(Reply::into_lease)?;
        self.lease_granted.notify_one();
        lease
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        self.submit(Command::Revoke { lease }).map(drop)
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        self.submit(Command::Compact { at }).map(drop)
    }

    async fn health(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.store.read(|state| state.live_bytes() + state.history_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use base::TokioClock;
    use futures_util::StreamExt as _;

    use super::*;
    use crate::WatchItem;

    /// Longer than what a watcher looks at while it holds the lock.
    #[tokio::test(start_paused = true)]
    async fn a_watcher_finds_its_event_behind_many_others() {
        let group = TaskGroup::new("test");
        let store = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
        let put = async |key: String| match store.txn(&key.into(), Expect::Any, Write::put("x")).await {
            Ok(Txn::Committed { revision, .. }) => revision,
            outcome => panic!("{outcome:?}"),
        };
        let mut expected = Vec::new();
        for index in 0..3 {
            for other in 0..10_000 {
                put(format!("other/{other}")).await;
            }
            expected.push(put(format!("mine/{index}")).await);
        }
        let mut watch = store.watch(KeyRange::prefix("mine/"), Revision(1));
        for revision in expected {
            let item = watch.next().await;
            assert!(matches!(&item, Some(Ok(WatchItem::Events(batch))) if batch.revision == revision), "{item:?}");
        }
        group.cancel();
        assert!(matches!(watch.next().await, Some(Err(StorageError::Closed))));
        assert!(watch.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wide_watch_hears_of_keys_behind_a_narrow_one() {
        let group = TaskGroup::new("test");
        let store = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
        let range = |start: &str, end: &str| KeyRange::between(start.into(), end.into());
        let mut wide = store.watch(range("a", "z"), Revision(1));
        let _narrow = store.watch(range("b", "c"), Revision(1));
        store.txn(&"d".into(), Expect::Any, Write::put("x")).await.expect("a write");
        let heard = tokio::time::timeout(Duration::from_secs(1), wide.next()).await;
        assert!(matches!(heard, Ok(Some(Ok(WatchItem::Events(_))))), "{heard:?}");
    }

    /// A mark taken while another thread writes must not overtake that write.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn marks_never_overtake_a_concurrent_write() {
        const WRITES: i64 = 30_000;
        let group = TaskGroup::new("test");
        let store = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
        let mut watch = store.watch(KeyRange::all(), Revision(1));
        group.spawn("writer", async move {
            for _ in 0..WRITES {
                store.txn(&"k".into(), Expect::Any, Write::put("x")).await.expect("a write");
                tokio::task::yield_now().await;
            }
        });
        let (handle, mut last) = (watch.progress_handle(), Revision(1));
        while last.0 < WRITES + 1 {
            handle.request();
            match watch.next().await.expect("no end").expect("no error") {
                WatchItem::Events(batch) => {
                    assert_eq!(batch.revision, Revision(last.0 + 1));
                    last = batch.revision;
                }
                WatchItem::Progress(mark) => assert_eq!(mark, last, "a mark is not older and not newer"),
            }
        }
        group.cancel();
    }
}
