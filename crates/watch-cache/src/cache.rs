//! The cache of one resource: the task that feeds it, and the ways to read it.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Object;
use api_machinery::reflect;
use arc_swap::{ArcSwap, ArcSwapOption};
use base::{CancellationToken, SharedClock, TaskGroup};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use parking_lot::{Mutex, RwLock};
use storage::{
    Backend, Event, EventBatch, EventStream, Key, KeyRange, KeyValue, ProgressHandle, Revision, StorageError, WatchItem,
};
use tokio::time::Instant;

use crate::counts::Counts;
use crate::direct::PAGE_KEYS;
use crate::log::{Batch, Log};
use crate::own_writes::{Announcement, OwnWrites};
use crate::packed::Packer;
use crate::rest::Rest;
use crate::signal::Signal;
use crate::snapshot::{Index, Matcher, Scope, Snapshot};
use crate::{CacheCounts, CacheError, Codec, CorruptObject, Pace, Stored, Watcher};

/// How long a read waits for the cache to get to a revision.
const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the store is asked how far it is while a read waits.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before a failed list or watch is tried again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// How many revisions are shown at once; more would only make the first of them wait.
pub(crate) const AT_HAND: usize = 64;

/// What a cache is of.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// The resource's name, for logs.
    pub resource: String,
    /// The storage prefix of its keys, with a slash at the end.
    pub prefix: String,
    /// The fields to find objects by.
    pub indexes: Vec<Index>,
}

/// Numbers for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Objects in the cache.
    pub objects: usize,
    /// About how many bytes they take.
    pub object_bytes: usize,
    /// Changes in the log.
    pub changes: usize,
    /// About how many bytes they take.
    pub change_bytes: usize,
    /// Open watches.
    pub watchers: usize,
    /// How far the cache is.
    pub revision: Revision,
}

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// After this revision, which may lie in the future.
    Revision(Revision),
    /// With the objects there are as additions, as of this revision or later (the cache's own where none is given).
    InitialEvents(Option<Revision>),
    /// After this revision or later, once the cache is there (where none is given, where the cache is now).
    Now(Option<Revision>),
}

/// Which bookmarks a watch sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bookmarks {
    /// None.
    None,
    /// From time to time, and before the end.
    Periodic,
    /// Also one after the objects there were at the start, which says so (KEP-3157).
    AndInitialEnd,
}

/// What a watch is about.
#[derive(Clone)]
pub struct WatchRequest {
    /// Where it starts.
    pub since: Since,
    /// Which part of the resource.
    pub scope: Scope,
    /// Which objects of it.
    pub matcher: Option<Matcher>,
    /// Which bookmarks to send.
    pub bookmarks: Bookmarks,
    /// When it ends.
    pub deadline: Option<Instant>,
}

/// The time from one full list to the next: everything that is lost when the storage watch breaks beyond repair.
pub(crate) struct Epoch {
    pub(crate) log: RwLock<Log>,
    pub(crate) token: CancellationToken,
    pub(crate) indexes: Arc<[Index]>,
    pub(crate) counts: Arc<Counts>,
    snapshot: ArcSwap<Snapshot>,
    revision: Signal<Revision>,
}

struct Unready {
    since: Instant,
    last_error: Option<String>,
}

/// The cache of one resource.
pub struct Cache {
    options: CacheOptions,
    indexes: Arc<[Index]>,
    backend: Arc<dyn Backend>,
    codec: Arc<dyn Codec>,
    clock: SharedClock,
    token: CancellationToken,
    epoch: ArcSwapOption<Epoch>,
    ready: Signal<bool>,
    unready: Mutex<Unready>,
    progress: Mutex<ProgressHandle>,
    own_writes: OwnWrites,
    counts: Arc<Counts>,
}

impl Cache {
    /// Starts a cache; a task of `group` fills it and keeps it current until [`Self::stop`] or the group's end.
    pub fn start(
        options: CacheOptions,
        backend: Arc<dyn Backend>,
        codec: Arc<dyn Codec>,
        clock: SharedClock,
        group: &TaskGroup,
    ) -> Arc<Self> {
        let cache = Arc::new(Self {
            indexes: options.indexes.clone().into(),
            options,
            backend,
            codec,
            token: group.token().child_token(),
            epoch: ArcSwapOption::empty(),
            ready: Signal::new(false),
            unready: Mutex::new(Unready { since: clock.monotonic(), last_error: None }),
            clock,
            progress: Mutex::default(),
            own_writes: OwnWrites::default(),
            counts: Arc::default(),
        });
        let running = Arc::clone(&cache);
        group.spawn("watch-cache", async move {
            let token = running.token.clone();
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = running.run() => {}
            }
            running.epoch.store(None);
        });
        cache
    }

    /// Ends the cache and every watch on it.
    pub fn stop(&self) {
        self.token.cancel();
    }

    /// Waits until the cache is filled, or stopped.
    pub async fn filled(&self) {
        tokio::select! {
            biased;
            () = self.token.cancelled() => {}
            () = self.ready.wait_for(|ready| ready) => {}
        }
    }

    /// Whether the cache can answer now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.epoch.load().is_some()
    }

    /// The newest snapshot there is, however old.
    ///
    /// # Errors
    /// When the cache is not filled.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, CacheError> {
        Ok(self.current_epoch()?.snapshot.load_full())
    }

    /// A snapshot not older than `revision`.
    ///
    /// # Errors
    /// When the cache is not filled, or does not get there in three seconds.
    pub async fn not_older_than(&self, revision: Revision) -> Result<Arc<Snapshot>, CacheError> {
        let epoch = self.current_epoch()?;
        self.wait_for(&epoch, revision).await?;
        Ok(epoch.snapshot.load_full())
    }

    /// A snapshot that shows every write acknowledged before the call.
    ///
    /// # Errors
    /// When the cache is not filled, the store cannot be asked, or the cache does not catch up in three seconds.
    pub async fn consistent(&self) -> Result<Arc<Snapshot>, CacheError> {
        self.current_epoch()?;
        let revision = self.backend.current_revision().await?;
        self.not_older_than(revision).await
    }

    /// The snapshot at exactly `revision`, if it is still (or already) known.
    ///
    /// # Errors
    /// When the cache is not filled.
    pub fn exactly(&self, revision: Revision) -> Result<Option<Arc<Snapshot>>, CacheError> {
        let epoch = self.current_epoch()?;
        let found = epoch.log.read().undo_to(revision);
        Ok(found.map(|(base, changes)| {
            if changes.is_empty() && base.revision() == revision {
                return base;
            }
            let mut snapshot = Snapshot::clone(&base);
            for change in changes.iter().rev() {
                snapshot.replace(&change.key, change.previous.clone());
            }
            snapshot.set_revision(revision);
            Arc::new(snapshot)
        }))
    }

    /// Announces a write of this process, so that what the store's watch brings of it need not be parsed. The object must
    /// be what `value` decodes to.
    pub fn announce(&self, key: &Arc<str>, object: Box<dyn Object>, value: &Bytes) -> Announcement<'_> {
        Announcement::new(&self.own_writes, key, object, value)
    }

    /// Starts a watch.
    ///
    /// # Errors
    /// When the cache is not filled, the start is too far back, or the cache does not get to it in three seconds.
    pub async fn watch(&self, request: WatchRequest) -> Result<Watcher, CacheError> {
        let epoch = self.current_epoch()?;
        if let Since::InitialEvents(Some(revision)) | Since::Now(Some(revision)) = request.since {
            self.wait_for(&epoch, revision).await?;
        }
        Watcher::start(epoch, request, Arc::clone(&self.clock)).await
    }

    /// Numbers for metrics; all 0 while the cache is not filled.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let Some(epoch) = self.epoch.load_full() else { return CacheStats::default() };
        let log = epoch.log.read();
        CacheStats {
            objects: log.snapshot().len(),
            object_bytes: log.snapshot().size_bytes(),
            changes: log.len(),
            change_bytes: log.bytes(),
            watchers: log.watchers(),
            revision: log.revision(),
        }
    }

    /// What passed through the cache, however often it was filled.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        self.counts.now()
    }

    fn current_epoch(&self) -> Result<Arc<Epoch>, CacheError> {
        if self.token.is_cancelled() {
            return Err(CacheError::Stopped);
        }
        self.epoch.load_full().ok_or_else(|| self.not_ready())
    }

    fn not_ready(&self) -> CacheError {
        let unready = self.unready.lock();
        let since = self.clock.monotonic().saturating_duration_since(unready.since);
        CacheError::NotReady { since, last_error: unready.last_error.clone() }
    }

    async fn wait_for(&self, epoch: &Epoch, revision: Revision) -> Result<(), CacheError> {
        let begun = self.clock.monotonic();
        let outcome = self.wait(epoch, revision).await;
        self.counts.read_waits.add(self.clock.monotonic().saturating_duration_since(begun));
        outcome
    }

    async fn wait(&self, epoch: &Epoch, revision: Revision) -> Result<(), CacheError> {
        if epoch.revision.get() >= revision {
            return Ok(());
        }
        let asking = async {
            loop {
                self.progress.lock().request();
                tokio::time::sleep(PROGRESS_INTERVAL).await;
            }
        };
        tokio::select! {
            biased;
            () = epoch.token.cancelled() => Err(self.not_ready()),
            () = epoch.revision.wait_for(|at| at >= revision) => Ok(()),
            () = tokio::time::sleep(FRESHNESS_TIMEOUT) => {
                Err(CacheError::TooLarge { requested: revision, current: epoch.revision.get() })
            }
            () = asking => Ok(()),
        }
    }

    async fn run(&self) {
        loop {
            let ended = match self.fill().await {
                Ok(epoch) => {
                    let ended = self.follow(&epoch).await;
                    self.ready.set(false);
                    self.epoch.store(None);
                    ended
                }
                Err(error) => error,
            };
            tracing::warn!(resource = %self.options.resource, error = %ended, "watch cache is filled anew");
            {
                let mut unready = self.unready.lock();
                if unready.last_error.is_none() {
                    unready.since = self.clock.monotonic();
                }
                unready.last_error = Some(ended.to_string());
            }
            tokio::time::sleep(RESTART_DELAY).await;
        }
    }

    /// Lists everything, in pages of one revision, and makes it readable.
    async fn fill(&self) -> Result<Arc<Epoch>, FeedError> {
        let everything = KeyRange::prefix(Key::from(self.options.prefix.as_str()));
        let (mut rest, mut at) = (everything, None);
        let (mut snapshot, mut pace) = (Snapshot::empty(Revision(0), Arc::clone(&self.indexes)), Pace::default());
        let mut packer = Packer::default();
        loop {
            let page = self.backend.range(&rest, PAGE_KEYS, at).await?;
            let revision = *at.get_or_insert(page.revision);
            for kv in &page.kvs {
                let stored = self.decode(kv)?;
                snapshot.replace(stored.key(), Some(Arc::clone(&stored)));
                if let Some(at_rest) = stored.put_to_rest(&self.codec, &mut packer) {
                    snapshot.keep_as(&at_rest);
                }
                pace.after(Pace::CODED).await;
            }
            let Some(last) = page.kvs.last().filter(|_| page.more()) else {
                snapshot.set_revision(revision);
                break;
            };
            rest = rest.after(&last.key);
        }
        Ok(self.begin_epoch(Arc::new(snapshot)))
    }

    fn begin_epoch(&self, snapshot: Arc<Snapshot>) -> Arc<Epoch> {
        let epoch = Arc::new(Epoch {
            revision: Signal::new(snapshot.revision()),
            log: RwLock::new(Log::new(Arc::clone(&snapshot), Arc::clone(&self.indexes))),
            token: self.token.child_token(),
            indexes: Arc::clone(&self.indexes),
            counts: Arc::clone(&self.counts),
            snapshot: ArcSwap::new(snapshot),
        });
        self.counts.initializations.add(1);
        self.unready.lock().last_error = None;
        self.own_writes.listed(epoch.revision.get());
        self.epoch.store(Some(Arc::clone(&epoch)));
        self.ready.set(true);
        epoch
    }

    /// Feeds an epoch until it cannot be continued, and then ends it. A storage watch that merely breaks is met by
    /// another from the same place, which the epoch's watchers do not notice.
    async fn follow(&self, epoch: &Epoch) -> FeedError {
        let _end = epoch.token.clone().drop_guard();
        let everything = KeyRange::prefix(Key::from(self.options.prefix.as_str()));
        let mut rest = Rest::new(self.clock.monotonic());
        loop {
            let after = epoch.revision.get();
            let mut stream = self.backend.watch(everything.clone(), after);
            *self.progress.lock() = stream.progress_handle();
            while let Some(item) = self.next_of(&mut stream, epoch, &mut rest).await {
                let (events, other) = with_those_at_hand(&mut stream, item);
                rest.hear(&events, self.clock.monotonic());
                if let Err(error) = self.apply(epoch, &events) {
                    return error;
                }
                match other {
                    None | Some(Ok(WatchItem::Events(_))) => {}
                    Some(Ok(WatchItem::Progress(revision))) => {
                        self.counts.bookmarks.add(1);
                        epoch.publish(|log| log.advance(revision));
                    }
                    Some(Err(compacted @ StorageError::Compacted { .. })) => return compacted.into(),
                    Some(Err(error)) => {
                        tracing::debug!(resource = %self.options.resource, %error, "storage watch broke");
                        break;
                    }
                }
            }
            tokio::time::sleep(RESTART_DELAY).await;
        }
    }

    /// The next item of a watch; while there is none, and now and then otherwise, objects are put to rest.
    async fn next_of(
        &self,
        stream: &mut EventStream,
        epoch: &Epoch,
        rest: &mut Rest,
    ) -> Option<Result<WatchItem, StorageError>> {
        loop {
            tokio::select! {
                biased;
                () = rest.due() => {
                    let now = self.clock.monotonic();
                    let settled = rest.part(&epoch.log, &self.codec, now);
                    epoch.publish(|log| log.settle(&settled, now));
                }
                item = stream.next() => return item,
            }
        }
    }

    /// Shows what several revisions changed. Where one of them cannot be read, those before it are shown.
    fn apply(&self, epoch: &Epoch, batches: &[EventBatch]) -> Result<(), FeedError> {
        self.counts.events_received.add(batches.iter().map(|batch| batch.events.len()).sum());
        let mut read = Vec::with_capacity(batches.len());
        let outcome = batches.iter().try_for_each(|batch| {
            read.push(self.changes_of(batch)?);
            Ok(())
        });
        if !read.is_empty() {
            self.counts.events_dispatched.add(read.iter().map(|batch: &Batch| batch.changes.len()).sum());
            let now = self.clock.monotonic();
            epoch.publish(|log| log.apply(read, now));
        }
        outcome
    }

    fn changes_of(&self, batch: &EventBatch) -> Result<Batch, CorruptObject> {
        let mut changes = Vec::with_capacity(batch.events.len());
        for event in batch.events.iter() {
            changes.push(match event {
                Event::Put { kv, .. } => {
                    let stored = self.own_or_decoded(kv)?;
                    (Arc::clone(stored.key()), Some(stored))
                }
                Event::Delete { key, .. } => (self.relative(key), None),
            });
        }
        Ok(Batch { revision: batch.revision, changes })
    }

    fn own_or_decoded(&self, kv: &KeyValue) -> Result<Arc<Stored>, CorruptObject> {
        let key = self.relative(&kv.key);
        let Some(own) = self.own_writes.brought(&key, kv.mod_revision, &kv.value) else { return self.decode(kv) };
        let written = own.object().as_reflect();
        debug_assert!(
            reflect::equal_structs(self.decode(kv)?.object().as_reflect(), written),
            "{own:?} is not what its stored bytes decode to"
        );
        Ok(own)
    }

    fn decode(&self, kv: &KeyValue) -> Result<Arc<Stored>, CorruptObject> {
        Stored::read(&*self.codec, self.relative(&kv.key), kv)
    }

    fn relative(&self, key: &Key) -> Arc<str> {
        let text = key.to_string();
        text.strip_prefix(&self.options.prefix).unwrap_or(&text).into()
    }
}

impl Epoch {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Changes the log, and then shows everyone where it is.
    fn publish(&self, change: impl FnOnce(&mut Log)) {
        let snapshot = {
            let mut log = self.log.write();
            change(&mut log);
            Arc::clone(log.snapshot())
        };
        let revision = snapshot.revision();
        self.snapshot.store(snapshot);
        self.revision.set(revision);
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cache({})", self.options.resource)
    }
}

/// The events that can be had without waiting, from `first` on, and what came after them that is none.
///
/// One snapshot is made for all of them: what each revision changed is in the log.
fn with_those_at_hand(
    stream: &mut EventStream,
    first: Result<WatchItem, StorageError>,
) -> (Vec<EventBatch>, Option<Result<WatchItem, StorageError>>) {
    let mut events = Vec::new();
    let mut next = Some(first);
    loop {
        match next {
            Some(Ok(WatchItem::Events(batch))) => events.push(batch),
            other => return (events, other),
        }
        if events.len() == AT_HAND {
            return (events, None);
        }
        next = stream.next().now_or_never().flatten();
    }
}

/// Why the cache has to be filled anew.
#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{0}")]
    Corrupt(#[from] CorruptObject),
}
