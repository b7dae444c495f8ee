//! A real etcd under servers on paused time: their time stands while etcd owes them something.
//!
//! Owed are the answer to a call, the event of an acknowledged write to every watch that covers its key, and the mark of
//! progress that a watch was asked for. So a wait in a test means what it means over a store in memory: all that was
//! going to happen at once has happened. Leases alone end by etcd's own clock.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use base::{SharedRng, TaskGroup};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use parking_lot::Mutex;
use storage::{
    Backend, Etcd, EtcdOptions, EventStream, Expect, Get, Key, KeyRange, LeaseId, ProgressHandle, Revision, Slice,
    StorageError, Txn, WatchItem, Write,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::RealEtcd;
use super::held_time::{HeldTime, Hold};

/// How many items of a watch may wait for its reader; a reader that lets more wait does not hold the time.
const BUFFERED: usize = 1024;
/// After how long etcd is asked (again) how far a watch has come.
const NUDGE: Duration = Duration::from_millis(20);
/// For how long time may stand for a watch: one that is cut off gets nothing, however long everybody waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// The servers on one runtime that share an etcd: what one writes is owed to the others' watches, too.
pub struct EtcdWorld {
    etcd: Arc<RealEtcd>,
    time: Arc<HeldTime>,
    watches: Mutex<Vec<Weak<Followed>>>,
    newest: Mutex<Revision>,
}

impl EtcdWorld {
    /// On the runtime that this is called on.
    #[must_use]
    pub fn new(etcd: &Arc<RealEtcd>) -> Arc<Self> {
        let (watches, newest) = (Mutex::default(), Mutex::default());
        Arc::new(Self { etcd: Arc::clone(etcd), time: HeldTime::new(), watches, newest })
    }

    /// One server's connection.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn connect(self: &Arc<Self>, rng: SharedRng) -> Result<Arc<dyn Backend>, StorageError> {
        let tasks = TaskGroup::new("etcd");
        let (options, group) = (EtcdOptions::new([self.etcd.url()]), tasks.clone());
        let etcd = self.real(async move { Etcd::connect(options, rng, &group).await }).await?;
        Ok(Arc::new(HeldEtcd { etcd, world: Arc::clone(self), tasks }))
    }

    /// Does something on real time, while this runtime's stands.
    async fn real<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StorageError>> + Send + 'static,
    ) -> Result<T, StorageError> {
        let hold = self.time.hold();
        let real = self.etcd.real_time().ok_or(StorageError::Closed)?;
        // The hold comes back with the answer: it ends once the answer was taken, or nobody is there to take it.
        let done = real.spawn(async move { (work.await, hold) }).await;
        done.map_or(Err(StorageError::Closed), |(answer, _hold)| answer)
    }

    /// A write was acknowledged.
    fn written(&self, key: &Key, revision: Revision) {
        let mut newest = self.newest.lock();
        *newest = revision.max(*newest);
        self.watches.lock().retain(|watch| {
            let Some(watch) = watch.upgrade() else { return false };
            if watch.range.contains(key) {
                watch.owe(&self.time, |debts| debts.revision = revision.max(debts.revision));
            }
            true
        });
    }

    /// Begins a watch; it is owed what is newer than where it starts.
    fn follow(&self, range: KeyRange, after: Revision) -> Arc<Followed> {
        let newest = self.newest.lock();
        let debts = Debts { seen: after, ..Debts::default() };
        let watch = Arc::new(Followed { range, debts: Mutex::new(debts), asked: Notify::new() });
        watch.owe(&self.time, |debts| debts.revision = *newest);
        self.watches.lock().push(Arc::downgrade(&watch));
        watch
    }
}

/// A watch, as its etcd's debtor.
struct Followed {
    range: KeyRange,
    debts: Mutex<Debts>,
    /// Wakes the task that reads from etcd.
    asked: Notify,
}

#[derive(Default)]
struct Debts {
    /// The newest revision that was handed on.
    seen: Revision,
    /// The newest revision that must be.
    revision: Revision,
    /// Whether a mark of progress was asked for.
    mark: bool,
    hold: Option<Hold>,
}

impl Followed {
    fn owe(&self, time: &Arc<HeldTime>, change: impl FnOnce(&mut Debts)) {
        let mut debts = self.debts.lock();
        change(&mut debts);
        if debts.hold.is_none() && !debts.are_settled() {
            debts.hold = Some(time.hold());
            self.asked.notify_one();
        }
    }

    fn handed_on(&self, item: &WatchItem) {
        let mut debts = self.debts.lock();
        let (revision, is_mark) = match item {
            WatchItem::Events(batch) => (batch.revision, false),
            WatchItem::Progress(revision) => (*revision, true),
        };
        debts.seen = revision.max(debts.seen);
        debts.mark &= !is_mark;
        if debts.are_settled() {
            debts.hold = None;
        }
    }

    /// Lets time go on, whatever is owed.
    fn let_go(&self) {
        let mut debts = self.debts.lock();
        debts.mark = false;
        debts.hold = None;
    }

    fn is_held(&self) -> bool {
        self.debts.lock().hold.is_some()
    }
}

impl Debts {
    fn are_settled(&self) -> bool {
        self.seen >= self.revision && !self.mark
    }
}

/// What comes of a watch.
type Item = Result<WatchItem, StorageError>;

/// Reads from etcd, on real time, and hands on.
struct Pump {
    watch: Arc<Followed>,
    items: EventStream,
    reader: mpsc::Sender<Item>,
}

impl Pump {
    /// Reads until the watch ends or its reader does.
    async fn run(mut self) {
        let progress = self.items.progress_handle();
        // When etcd is asked again, and when it is given up on.
        let mut waiting: Option<(Instant, Instant)> = None;
        loop {
            let nudge = waiting.map_or_else(Instant::now, |(nudge, _)| nudge);
            tokio::select! {
                biased;
                () = self.reader.closed() => break,
                item = self.items.next() => match item {
                    Some(item) => self.hand_on(item).await,
                    None => break,
                },
                () = self.watch.asked.notified() => {
                    progress.request();
                    waiting = Some((Instant::now() + NUDGE, Instant::now() + PATIENCE));
                }
                () = tokio::time::sleep_until(nudge), if waiting.is_some() => {
                    waiting = waiting.filter(|_| self.watch.is_held()).and_then(|(_, end)| self.ask_again(&progress, end));
                }
            }
        }
        self.watch.let_go();
    }

    fn ask_again(&self, progress: &ProgressHandle, end: Instant) -> Option<(Instant, Instant)> {
        if Instant::now() > end {
            tracing::warn!(range = ?self.watch.range, "Time goes on although etcd owes a watch something");
            self.watch.let_go();
            return None;
        }
        progress.request();
        Some((Instant::now() + NUDGE, end))
    }

    async fn hand_on(&mut self, item: Item) {
        let copy = item.as_ref().ok().cloned();
        if let Err(mpsc::error::TrySendError::Full(item)) = self.reader.try_send(item) {
            self.watch.let_go();
            // Fails where the reader has gone, which the loop sees, too.
            let _gone = self.reader.send(item).await;
        }
        match copy {
            Some(item) => self.watch.handed_on(&item),
            None => self.watch.let_go(),
        }
    }
}

/// etcd as one server sees it.
struct HeldEtcd {
    etcd: Arc<Etcd>,
    world: Arc<EtcdWorld>,
    tasks: TaskGroup,
}

impl Drop for HeldEtcd {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[async_trait]
impl Backend for HeldEtcd {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        let (etcd, key) = (Arc::clone(&self.etcd), key.clone());
        self.world.real(async move { etcd.get(&key).await }).await
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        let (etcd, range) = (Arc::clone(&self.etcd), range.clone());
        self.world.real(async move { etcd.range(&range, limit, at).await }).await
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        let (etcd, range) = (Arc::clone(&self.etcd), range.clone());
        self.world.real(async move { etcd.count(&range).await }).await
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        let (etcd, world, key) = (Arc::clone(&self.etcd), Arc::clone(&self.world), key.clone());
        let is_delete = write == Write::Delete;
        let work = async move {
            let done = etcd.txn(&key, expect, write).await?;
            // A removal of nothing makes no revision.
            if let Txn::Committed { revision, previous } = &done
                && (!is_delete || previous.is_some())
            {
                world.written(&key, *revision);
            }
            Ok(done)
        };
        self.world.real(work).await
    }

    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        let watch = self.world.follow(range.clone(), after);
        let (reader, items) = mpsc::channel(BUFFERED);
        let pump = Pump { watch: Arc::clone(&watch), items: self.etcd.watch(range, after), reader };
        if let Some(real) = self.world.etcd.real_time() {
            let token = self.tasks.token();
            real.spawn(async move { token.run_until_cancelled(pump.run()).await });
        }
        let (progress, time) = (ProgressHandle::default(), Arc::clone(&self.world.time));
        let handle = progress.clone();
        let items = unfold(items, move |mut items| {
            let (progress, watch, time) = (progress.clone(), Arc::clone(&watch), Arc::clone(&time));
            async move {
                loop {
                    tokio::select! {
                        biased;
                        item = items.recv() => return item.map(|item| (item, items)),
                        () = progress.requested() => {
                            watch.owe(&time, |debts| debts.mark = true);
                            watch.asked.notify_one();
                        }
                    }
                }
            }
        });
        EventStream::new(items, handle)
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.current_revision().await }).await
    }

    fn supports_progress(&self) -> bool {
        self.etcd.supports_progress()
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.lease_grant(ttl).await }).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.lease_revoke(lease).await }).await
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.compact(at).await }).await
    }

    async fn health(&self) -> Result<(), StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.health().await }).await
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        let etcd = Arc::clone(&self.etcd);
        self.world.real(async move { etcd.size_bytes().await }).await
    }
}
