//! The durable store inside the process: the MVCC core in memory, every change on disk before it is acknowledged.
//!
//! All live state and the index are in memory, so reads never touch the disk. One writer task collects the requests
//! that arrived while it was busy, works them out together, commits them with one sync and only then makes them
//! visible and answers. A commit goes to a journal; redb, a checksummed copy-on-write tree in one file, catches up with
//! it in the background, and whatever it lacks is taken from the journal when the store is opened.
//!
//! Not here: replication. A cluster that must survive the loss of a machine uses etcd.

mod anchor;
mod checkpoint;
mod commit_error;
mod directory;
mod disk;
mod engine;
mod entry;
#[cfg(any(test, feature = "contract"))]
mod faults;
mod follower;
mod journal;
mod record;
mod seal;
#[cfg(test)]
mod tests;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::directory::DataDirectory;
use self::disk::{Disk, FileDisk};
use self::engine::{Engine, Loaded};
#[cfg(any(test, feature = "contract"))]
pub use self::faults::{FaultyDisk, Images, Wreck};
use self::follower::Follower;
use self::writer::{Request, Writer};
use crate::mvcc::{Command, Limits, Reply, Store};
use crate::{Backend, EventStream, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};

/// How many writes may wait for the writer; more wait in their callers.
const QUEUE: usize = 1_024;

/// How many bytes may wait for the writer, whatever their number.
const QUEUE_BYTES: u32 = 64 << 20;

/// How long the journal usually becomes.
const JOURNAL_BYTES: u64 = 8 << 20;

/// Where an embedded store is and how large it may grow.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The data directory; made with mode 0700 where it does not exist. One process at a time may use it.
    pub directory: PathBuf,
    /// The largest write, key and value, in bytes.
    pub max_request_bytes: usize,
    /// How many bytes of keys and values may exist at once.
    pub quota_bytes: u64,
    /// How many bytes of superseded versions are kept before the store compacts on its own.
    pub max_history_bytes: u64,
    /// How long the journal becomes before the database catches up with it; read again when the store is opened.
    pub journal_bytes: u64,
}

impl EmbeddedOptions {
    /// The usual limits: 1.5 MiB for a write, 8 GiB of data, 512 MiB of history, 8 MiB of journal.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let limits = Limits::default();
        Self {
            directory: directory.into(),
            max_request_bytes: limits.request_bytes,
            quota_bytes: limits.live_bytes,
            max_history_bytes: limits.history_bytes,
            journal_bytes: JOURNAL_BYTES,
        }
    }
}

/// A durable store in this process.
pub struct Embedded {
    store: Arc<Store>,
    requests: mpsc::Sender<Request>,
    queue_bytes: Arc<Semaphore>,
    health: Arc<Mutex<Result<(), StorageError>>>,
    group: TaskGroup,
    directory: PathBuf,
}

impl Embedded {
    /// Opens the store in a directory, or makes one.
    ///
    /// The writer is a task of `group`; cancelling the group ends watches, finishes the writes already queued and
    /// releases the directory. Time to open grows with the data: every page's checksum is verified.
    ///
    /// # Errors
    /// [`StorageError::Locked`] when another process has it, [`StorageError::Corrupt`] when the files are damaged or
    /// older than what was acknowledged, [`StorageError::Io`] when the directory cannot be used.
    pub async fn open(
        options: EmbeddedOptions,
        clock: SharedClock,
        group: &TaskGroup,
    ) -> Result<Arc<Self>, StorageError> {
        let disk = Arc::new(FileDisk::new(&options.directory));
        Self::open_with(options, clock, group, disk).await
    }

    /// Opens a store whose files are on a disk with faults; only the witness of the newest write is in the directory.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[cfg(any(test, feature = "contract"))]
    pub async fn open_on(
        disk: &FaultyDisk,
        options: EmbeddedOptions,
        clock: SharedClock,
        group: &TaskGroup,
    ) -> Result<Arc<Self>, StorageError> {
        Self::open_with(options, clock, group, Arc::new(disk.clone())).await
    }

    async fn open_with(
        options: EmbeddedOptions,
        clock: SharedClock,
        group: &TaskGroup,
        disk: Arc<dyn Disk>,
    ) -> Result<Arc<Self>, StorageError> {
        let path = options.directory.clone();
        let load = {
            let path = path.clone();
            let (now, journal_bytes) = (clock.monotonic(), options.journal_bytes);
            move || {
                let directory = DataDirectory::claim(&path)?;
                Engine::open(directory, disk, journal_bytes, now)
            }
        };
        // The engine promises errors, not panics, on damaged files; a panic is treated as the damage it shows.
        let damaged = |error: tokio::task::JoinError| StorageError::Corrupt {
            path: path.clone(),
            detail: format!("it could not be read ({error})"),
        };
        let loaded = tokio::task::spawn_blocking(load).await.map_err(damaged)??;
        let Loaded { engine, checkpointer, state, pending, superfluous } = loaded;
        let group = group.child("embedded-store");
        let store = Store::new(state, group.token());
        let health = Arc::new(Mutex::new(Ok(())));
        let (requests, queue) = mpsc::channel(QUEUE);
        let limits = Limits {
            request_bytes: options.max_request_bytes,
            live_bytes: options.quota_bytes,
            history_bytes: options.max_history_bytes,
        };
        let follower = Follower::new(checkpointer, pending, superfluous);
        let writer = Writer::new(engine, follower, Arc::clone(&store), clock, limits, Arc::clone(&health));
        group.spawn("writer", writer.run(queue, group.token()));
        let queue_bytes = Arc::new(Semaphore::new(QUEUE_BYTES as usize));
        Ok(Arc::new(Self { store, requests, queue_bytes, health, group, directory: path }))
    }

    /// Finishes the writes already queued, ends the watches and releases the directory, at most within `deadline`.
    pub async fn close(&self, deadline: Duration) {
        self.group.shutdown(deadline).await;
    }

    async fn submit(&self, command: Command) -> Result<Reply, StorageError> {
        let bytes = u32::try_from(command.bytes()).unwrap_or(QUEUE_BYTES).min(QUEUE_BYTES);
        let _room = self.queue_bytes.acquire_many(bytes).await.map_err(|_| StorageError::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { command, reply }).await.map_err(|_| StorageError::Closed)?;
        answer.await.map_err(|_| StorageError::Closed)?
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Embedded").field("directory", &self.directory).finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Embedded {
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
        self.submit(Command::Txn { key: key.clone(), expect, write }).await?.into_txn()
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
        self.submit(Command::Grant { ttl }).await?.into_lease()
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        self.submit(Command::Revoke { lease }).await.map(drop)
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        self.submit(Command::Compact { at }).await.map(drop)
    }

    async fn health(&self) -> Result<(), StorageError> {
        if self.requests.is_closed() {
            return Err(StorageError::Closed);
        }
        match self.health.lock().clone() {
            // As with etcd's alarm: reads are served, and taking the server out of service would mend nothing.
            Err(StorageError::NoSpace { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        let mut bytes = 0;
        for file in directory::files(&self.directory) {
            let metadata = tokio::fs::metadata(&file).await;
            bytes += metadata.map_err(|error| StorageError::io("stat", &file, &error))?.len();
        }
        Ok(bytes)
    }
}
