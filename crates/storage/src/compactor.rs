//! Regular compaction by the servers that use a store, so that no one of them has to be in charge.
//!
//! The servers meet at one key. Per interval one of them wins the right to write it, and compacts at the revision it
//! learned an interval earlier; so the history of the last one to two intervals stays. The key and its meaning are
//! upstream's, servers of both kinds can share an etcd.

use std::sync::Arc;
use std::time::Duration;

use crate::{Backend, Expect, Get, Key, Revision, StorageError, Txn, Write};

/// The key at which the servers meet. Its value is the revision last compacted, in decimal.
pub const COMPACT_REVISION_KEY: &str = "compact_rev_key";

/// Compacts a store at intervals, taking turns with other servers.
#[derive(Debug)]
pub struct Compactor<B: ?Sized> {
    interval: Duration,
    /// The version of the key that this server expects.
    version: i64,
    /// What to compact at next; 0 before the first interval is over.
    revision: Revision,
    backend: Arc<B>,
}

impl<B: Backend + ?Sized> Compactor<B> {
    /// A compactor that does nothing until it is run.
    #[must_use]
    pub fn new(backend: Arc<B>, interval: Duration) -> Self {
        Self { interval, version: 0, revision: Revision(0), backend }
    }

    /// Compacts for ever; an interval of zero means never. Errors are logged and tried again an interval later.
    pub async fn run(mut self) {
        if self.interval.is_zero() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.interval).await;
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "cannot compact the store");
            }
        }
    }

    /// One round; returns the revision that was compacted, if this server won and there was something to do.
    ///
    /// # Errors
    /// Those of the backend; the state is kept, so the next round goes on from here.
    pub async fn round(&mut self) -> Result<Option<Revision>, StorageError> {
        let key = Key::from(COMPACT_REVISION_KEY);
        let Get { kv, revision } = self.backend.get(&key).await?;
        let version = kv.as_ref().map_or(0, |kv| kv.version);
        if version != self.version {
            return Ok(self.lost(version, revision));
        }
        let expect = kv.map_or(Expect::Absent, |kv| Expect::At(kv.mod_revision));
        match self.backend.txn(&key, expect, Write::put(self.revision.to_string())).await? {
            Txn::Conflict { current, revision } => Ok(self.lost(current.map_or(0, |kv| kv.version), revision)),
            Txn::Committed { revision, .. } => {
                let at = std::mem::replace(&mut self.revision, revision);
                self.version += 1;
                self.compact(at).await
            }
        }
    }

    /// Another server was first: its turn counts for all.
    fn lost(&mut self, version: i64, revision: Revision) -> Option<Revision> {
        (self.version, self.revision) = (version, revision);
        None
    }

    async fn compact(&self, at: Revision) -> Result<Option<Revision>, StorageError> {
        if at == Revision(0) {
            return Ok(None);
        }
        match self.backend.compact(at).await {
            Ok(()) => Ok(Some(at)),
            // Somebody compacted further by other means: nothing is left to do.
            Err(StorageError::Compacted { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{TaskGroup, TokioClock};

    use super::*;
    use crate::{Memory, MemoryOptions};

    #[tokio::test(start_paused = true)]
    async fn servers_take_turns_and_keep_one_interval() {
        let group = TaskGroup::new("test");
        let store = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
        let interval = Duration::from_secs(300);
        let (mut one, mut two) =
            (Compactor::new(Arc::clone(&store), interval), Compactor::new(Arc::clone(&store), interval));
        assert_eq!(one.round().await, Ok(None), "nothing is remembered yet");
        assert_eq!(two.round().await, Ok(None), "lost: the other was first");
        for _ in 0..3 {
            store.txn(&"k".into(), Expect::Any, Write::put("v")).await.expect("a write");
        }
        let compacted = two.round().await.expect("a round");
        assert_eq!(compacted, Some(Revision(2)), "the revision of the first round");
        assert_eq!(one.round().await, Ok(None), "lost this time");
        let gone = store.range(&crate::KeyRange::all(), 0, Some(Revision(1))).await;
        assert!(matches!(gone, Err(StorageError::Compacted { .. })));
        assert_eq!(one.round().await, Ok(Some(Revision(6))), "its turn again");
    }
}
