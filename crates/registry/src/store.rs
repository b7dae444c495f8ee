//! One resource in the store: reads that reuse what the cache has parsed, and writes that win or report who did.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use bytes::Bytes;
use storage::{Backend, Expect, Key, KeyRange, KeyValue, LeasePool, Revision, StorageError, Txn, Write};
use watch_cache::{Announcement, Cache, Stored};

use crate::codec::ObjectCodec;
use crate::counts::Counts;
use crate::failure;
use crate::unreadable::{self, Told};

/// An object as it was last seen.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) item: Arc<Stored>,
    /// The bytes as they were written; missing where the object comes from the cache.
    pub(crate) raw: Option<Bytes>,
    /// Whether it is to be written anew, though nothing may have changed.
    pub(crate) stale: bool,
}

impl Live {
    /// As the cache has it.
    pub(crate) fn guessed(item: Arc<Stored>) -> Self {
        Self { item, raw: None, stale: false }
    }

    /// Whether it was read from the store, and not guessed from the cache.
    pub(crate) fn is_certain(&self) -> bool {
        self.raw.is_some()
    }
}

/// How a write ended.
pub(crate) enum Swap {
    /// It was written (or was there already).
    Done(Arc<Stored>),
    /// Someone else was faster: what is there now.
    Lost(Option<Live>),
}

/// What becomes of the record of field managers when an object is too large for the store with it. It is the one part
/// that grows without the client's doing: better lost than the write, unless the write is about the record itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManagedFields {
    /// The object is written once more without it.
    MayGo,
    /// The write fails.
    Stay,
}

/// One resource in the store.
pub(crate) struct Store {
    pub(crate) backend: Arc<dyn Backend>,
    /// The revision up to which it was compacted.
    pub(crate) compacted: Arc<AtomicI64>,
    pub(crate) codec: Arc<ObjectCodec>,
    pub(crate) resource: GroupResource,
    /// With slashes at both ends.
    pub(crate) prefix: String,
    pub(crate) cache: Option<Arc<Cache>>,
    /// How long objects live, where they do not live for ever.
    pub(crate) lifetime: Option<(Duration, Arc<LeasePool>)>,
    pub(crate) counts: Counts,
    /// What is said of objects that cannot be read.
    pub(crate) told: Told,
    /// Whether the cache was found to differ when it was compared last.
    pub(crate) differs: AtomicBool,
}

impl Store {
    pub(crate) fn key(&self, relative: &str) -> Key {
        Key::from(format!("{}{relative}", self.prefix))
    }

    pub(crate) fn range(&self, list_prefix: &str) -> KeyRange {
        KeyRange::prefix(Key::from(format!("{}{list_prefix}", self.prefix)))
    }

    /// Reads an object from the store, with the store's revision.
    pub(crate) async fn read(&self, relative: &Arc<str>) -> Result<(Option<Live>, Revision), ApiError> {
        let got = self.backend.get(&self.key(relative)).await.map_err(|error| self.failed("get", error))?;
        let live = got.kv.map(|kv| self.live(relative, &kv)).transpose()?;
        Ok((live, got.revision))
    }

    /// The object as the cache has it, or else as the store has it: a first guess for a write.
    pub(crate) async fn guess(&self, relative: &Arc<str>) -> Result<Option<Live>, ApiError> {
        match self.cached(relative) {
            Some(item) => Ok(Some(Live::guessed(item))),
            None => Ok(self.read(relative).await?.0),
        }
    }

    pub(crate) fn cached(&self, relative: &str) -> Option<Arc<Stored>> {
        self.cache.as_ref()?.snapshot().ok()?.get(relative).cloned()
    }

    fn live(&self, relative: &Arc<str>, kv: &KeyValue) -> Result<Live, ApiError> {
        // The same revision is the same object: no need to parse it again, and its encodings are shared.
        let item = match self.cached(relative).filter(|cached| cached.revision() == kv.mod_revision) {
            Some(cached) => cached,
            None => self.decode(kv).map_err(|error| unreadable::met_alone(self.told, &error, kv.mod_revision))?,
        };
        Ok(Live { item, raw: Some(kv.value.clone()), stale: kv.is_stale() })
    }

    pub(crate) fn decode(&self, kv: &KeyValue) -> Result<Arc<Stored>, watch_cache::CorruptObject> {
        let key = kv.key.to_string();
        let relative = key.strip_prefix(&self.prefix).unwrap_or(&key);
        Stored::read(&*self.codec, relative.into(), kv).inspect_err(|_| self.counts.decode_errors.add(1))
    }

    /// Writes an object that is not there yet; `Lost` gives the one that is.
    pub(crate) async fn create(
        &self,
        relative: &Arc<str>,
        mut object: Box<dyn Object>,
        managed_fields: ManagedFields,
    ) -> Result<Swap, ApiError> {
        let value = self.codec.encode(&mut *object);
        self.write(relative, Expect::Absent, (object, value), managed_fields, "create").await
    }

    /// Writes an object over the one that was seen. Writing what is there already does nothing.
    pub(crate) async fn replace(
        &self,
        live: &Live,
        mut object: Box<dyn Object>,
        managed_fields: ManagedFields,
    ) -> Result<Swap, ApiError> {
        let value = self.codec.encode(&mut *object);
        let relative = live.item.key();
        match &live.raw {
            Some(raw) if *raw == value && !live.stale => return Ok(Swap::Done(Arc::clone(&live.item))),
            Some(_) => {}
            None if live.item.may_be_stored_as(&value) => {
                // The cache may be behind, so that "nothing to do" has to be seen in the store itself. And what is there
                // may be of an older version: then there is something to do.
                match self.read(relative).await?.0 {
                    Some(now) if now.item.revision() != live.item.revision() => return Ok(Swap::Lost(Some(now))),
                    Some(now) if now.raw.as_ref() == Some(&value) && !now.stale => return Ok(Swap::Done(now.item)),
                    Some(_) => {}
                    None => return Ok(Swap::Lost(None)),
                }
            }
            None => {}
        }
        self.write(relative, Expect::At(live.item.revision()), (object, value), managed_fields, "update").await
    }

    /// Removes the object that was seen; `Done` gives it as of its deletion.
    pub(crate) async fn remove(&self, live: &Live) -> Result<Swap, ApiError> {
        let relative = live.item.key();
        let expect = Expect::At(live.item.revision());
        match self.backend.txn(&self.key(relative), expect, Write::Delete).await {
            Ok(Txn::Committed { revision, .. }) => Ok(Swap::Done(Arc::new(live.item.at(revision)))),
            Ok(Txn::Conflict { current, .. }) => self.lost(relative, current),
            Err(error) => Err(self.failed("delete", error)),
        }
    }

    async fn write(
        &self,
        relative: &Arc<str>,
        expect: Expect,
        (mut object, mut value): (Box<dyn Object>, Bytes),
        managed_fields: ManagedFields,
        operation: &str,
    ) -> Result<Swap, ApiError> {
        let may_shrink = managed_fields == ManagedFields::MayGo && !object.meta().managed_fields.is_empty();
        // What a reader sees: some defaults follow from what was filled in after the first time they were set.
        self.codec.rules.set_defaults(&mut *object);
        let mut announced = self.announce(relative, object, &value);
        let mut written = self.put(relative, expect, &value).await;
        if matches!(written, Err(StorageError::RequestTooLarge)) && may_shrink {
            let mut object = announced.withdraw();
            object.meta_mut().managed_fields.clear();
            value = self.codec.encode(&mut *object);
            announced = self.announce(relative, object, &value);
            written = self.put(relative, expect, &value).await;
        }
        match written {
            Ok(Txn::Committed { revision, .. }) => Ok(Swap::Done(announced.committed(revision))),
            Ok(Txn::Conflict { current, .. }) => self.lost(relative, current),
            Err(error) => Err(self.failed(operation, error)),
        }
    }

    fn announce(&self, relative: &Arc<str>, object: Box<dyn Object>, value: &Bytes) -> Announcement<'_> {
        match &self.cache {
            Some(cache) => cache.announce(relative, object, value),
            None => Announcement::unheard(relative, object, value),
        }
    }

    async fn put(&self, relative: &str, expect: Expect, value: &Bytes) -> Result<Txn, StorageError> {
        let lease = match &self.lifetime {
            Some((lifetime, pool)) => Some(pool.lease(*lifetime).await?),
            None => None,
        };
        self.backend.txn(&self.key(relative), expect, Write::Put { value: value.clone(), lease }).await
    }

    fn lost(&self, relative: &Arc<str>, current: Option<KeyValue>) -> Result<Swap, ApiError> {
        Ok(Swap::Lost(current.map(|kv| self.live(relative, &kv)).transpose()?))
    }

    pub(crate) fn failed(&self, operation: &str, error: StorageError) -> ApiError {
        failure::storage(&self.resource, operation, error)
    }
}
