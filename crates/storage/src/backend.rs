//! The interface of a store. It speaks etcd's model and knows no kinds.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream;
use tokio::sync::Notify;

use crate::{EventBatch, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};

/// A store of keys with history.
///
/// Reads without a revision are linearizable: they see every write that was acknowledged before they began.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Reads one key.
    async fn get(&self, key: &Key) -> Result<Get, StorageError>;

    /// Reads the keys of a range in order, at most `limit` of them (0 is no limit), as they were at revision `at`
    /// (`None` is now). The pages of a list share the revision of the first.
    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError>;

    /// How many keys a range has now.
    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError>;

    /// Writes only if the key is as expected; otherwise returns what is there, so that callers retry without a read.
    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError>;

    /// Follows a range from the revision after `after`, which may lie in the past or in the future.
    ///
    /// Batches come in the order of their revisions, each once, none left out. The stream ends after its first error:
    /// [`StorageError::Compacted`] when the history it would need is gone, because it started too far back or its
    /// reader was too slow; any other error may be met by watching again after the last revision seen.
    fn watch(&self, range: KeyRange, after: Revision) -> EventStream;

    /// The store's revision, not older than any write acknowledged before the call.
    async fn current_revision(&self) -> Result<Revision, StorageError>;

    /// Whether [`ProgressHandle::request`] leads to trustworthy marks. Where not, a consistent read from a cache must
    /// read the store instead.
    fn supports_progress(&self) -> bool;

    /// Makes a lease that ends after `ttl` (rounded up to seconds; a store may have a minimum). At its end every key
    /// attached to it is deleted, all in one revision.
    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError>;

    /// Ends a lease now.
    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError>;

    /// Forgets superseded values up to and including revision `at`; the state at `at` itself stays readable.
    async fn compact(&self, at: Revision) -> Result<(), StorageError>;

    /// Whether the store can serve linearizable reads now. A full store is healthy; one that needs a restart is not.
    async fn health(&self) -> Result<(), StorageError>;

    /// How many bytes the store occupies (of several members, the largest).
    async fn size_bytes(&self) -> Result<u64, StorageError>;
}

/// One item of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchItem {
    /// The changes of one revision.
    Events(EventBatch),
    /// Everything up to and including this revision has been delivered; later batches are newer.
    Progress(Revision),
}

/// A running watch. Dropping it ends it.
pub struct EventStream {
    items: Pin<Box<dyn Stream<Item = Result<WatchItem, StorageError>> + Send>>,
    progress: ProgressHandle,
}

impl EventStream {
    /// A watch of these items, whose marks are asked for by `progress`.
    pub fn new(
        items: impl Stream<Item = Result<WatchItem, StorageError>> + Send + 'static,
        progress: ProgressHandle,
    ) -> Self {
        Self { items: Box::pin(items), progress }
    }

    /// A handle that asks this watch for a progress mark; it stays useful while the stream is read elsewhere.
    #[must_use]
    pub fn progress_handle(&self) -> ProgressHandle {
        self.progress.clone()
    }
}

impl Stream for EventStream {
    type Item = Result<WatchItem, StorageError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EventStream")
    }
}

/// Asks one watch to report how far it has come.
#[derive(Debug, Clone, Default)]
pub struct ProgressHandle(Arc<Notify>);

impl ProgressHandle {
    /// Asks for a [`WatchItem::Progress`] at a revision that is current now or later, once the watch has delivered all
    /// before it. Requests made before the stream got round to the first one are answered together, and one may be
    /// lost while a watch reconnects, so a caller that waits asks again at intervals.
    pub fn request(&self) {
        self.0.notify_one();
    }

    /// Waits until a mark is asked for.
    pub async fn requested(&self) {
        self.0.notified().await;
    }
}
