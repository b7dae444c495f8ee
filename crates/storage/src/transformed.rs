//! Values that lie in a store in another form than they were written in.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::{
    Backend, Event, EventBatch, EventStream, Expect, Flaw, Get, Key, KeyRange, KeyValue, LeaseId, Revision, Slice,
    StorageError, Txn, WatchItem, Write,
};

/// Why a value cannot be brought from one form into the other; the text is what clients see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadValue {
    /// The value.
    pub value: Bytes,
    /// Whether it should be written anew, as it lies in a form that is no longer written.
    pub stale: bool,
}

/// Brings values from the form that is written into the one that is stored, and back; upstream's `value.Transformer`.
///
/// Both ways may wait for somebody, and know the key: a value that is moved to another key must not be taken for that
/// key's own.
#[async_trait]
pub trait Transformer: Send + Sync + 'static {
    /// The value that lies under a key, as it was written.
    async fn on_read(&self, key: &Key, stored: &Bytes) -> Result<ReadValue, TransformError>;

    /// A value as it is to lie under a key.
    async fn on_write(&self, key: &Key, value: &Bytes) -> Result<Bytes, TransformError>;
}

/// A store whose values all pass a transformer. A value that cannot be read is an error of its own pair
/// ([`KeyValue::unreadable`]), not of the request.
pub struct Transformed {
    backend: Arc<dyn Backend>,
    transformer: Arc<dyn Transformer>,
}

impl Transformed {
    /// Puts a transformer before a store.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, transformer: Arc<dyn Transformer>) -> Arc<Self> {
        Arc::new(Self { backend, transformer })
    }
}

#[async_trait]
impl Backend for Transformed {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        let mut got = self.backend.get(key).await?;
        got.kv = read_if_any(&*self.transformer, got.kv).await;
        Ok(got)
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        let mut slice = self.backend.range(range, limit, at).await?;
        for kv in &mut slice.kvs {
            read(&*self.transformer, kv).await;
        }
        Ok(slice)
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        self.backend.count(range).await
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        let write = match write {
            Write::Put { value, lease } => {
                let stored = self.transformer.on_write(key, &value).await;
                let value = stored.map_err(|TransformError(message)| StorageError::Untransformable { message })?;
                Write::Put { value, lease }
            }
            Write::Delete => Write::Delete,
        };
        Ok(match self.backend.txn(key, expect, write).await? {
            Txn::Committed { revision, previous } => {
                Txn::Committed { revision, previous: read_if_any(&*self.transformer, previous).await }
            }
            Txn::Conflict { current, revision } => {
                Txn::Conflict { current: read_if_any(&*self.transformer, current).await, revision }
            }
        })
    }

    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        let stored = self.backend.watch(range, after);
        let (transformer, progress) = (Arc::clone(&self.transformer), stored.progress_handle());
        let items = stored.then(move |item| {
            let transformer = Arc::clone(&transformer);
            async move {
                Ok(match item? {
                    WatchItem::Events(batch) => WatchItem::Events(read_batch(&*transformer, batch).await),
                    progress @ WatchItem::Progress(_) => progress,
                })
            }
        });
        EventStream::new(items, progress)
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.backend.current_revision().await
    }

    fn supports_progress(&self) -> bool {
        self.backend.supports_progress()
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        self.backend.lease_grant(ttl).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        self.backend.lease_revoke(lease).await
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        self.backend.compact(at).await
    }

    async fn health(&self) -> Result<(), StorageError> {
        self.backend.health().await
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        self.backend.size_bytes().await
    }
}

async fn read_batch(transformer: &dyn Transformer, batch: EventBatch) -> EventBatch {
    let mut events = Vec::with_capacity(batch.events.len());
    for event in batch.events.iter() {
        events.push(match event.clone() {
            Event::Put { mut kv, previous } => {
                read(transformer, &mut kv).await;
                Event::Put { kv, previous: read_if_any(transformer, previous).await }
            }
            Event::Delete { key, revision, previous } => {
                Event::Delete { key, revision, previous: read_if_any(transformer, previous).await }
            }
        });
    }
    EventBatch { revision: batch.revision, events: events.into() }
}

async fn read_if_any(transformer: &dyn Transformer, kv: Option<KeyValue>) -> Option<KeyValue> {
    let mut kv = kv?;
    read(transformer, &mut kv).await;
    Some(kv)
}

async fn read(transformer: &dyn Transformer, kv: &mut KeyValue) {
    /// After a rotation every pair has it, until it is written.
    static STALE: LazyLock<Arc<Flaw>> = LazyLock::new(|| Arc::new(Flaw::Stale));
    match transformer.on_read(&kv.key, &kv.value).await {
        Ok(ReadValue { value, stale }) => {
            kv.value = value;
            kv.flaw = stale.then(|| Arc::clone(&STALE));
        }
        Err(TransformError(why)) => kv.flaw = Some(Arc::new(Flaw::Unreadable(why))),
    }
}

impl std::fmt::Debug for Transformed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Transformed")
    }
}
