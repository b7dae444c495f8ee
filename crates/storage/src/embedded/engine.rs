//! The database file: loading it, and committing batches of effects to it. Blocking code, run off the runtime.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError};
use tokio::time::Instant;

use super::anchor::Anchor;
use super::directory::{DataDirectory, database};
use super::record;
use crate::mvcc::{Effect, RowId, State};
use crate::{Event, EventBatch, LeaseId, Revision, StorageError};

const META: TableDefinition<'static, &str, i64> = TableDefinition::new("meta");
const ROWS: TableDefinition<'static, RowId, &[u8]> = TableDefinition::new("rows");
const LEASES: TableDefinition<'static, i64, u64> = TableDefinition::new("leases");

const FORMAT: &str = "format";
const REVISION: &str = "revision";
const COMPACTED: &str = "compacted";
const NEXT_LEASE: &str = "next_lease";
const FORMAT_VERSION: i64 = 1;

/// Pages kept by the engine. Values live in our own memory, so this only serves the inner pages of the tree.
const CACHE_BYTES: usize = 64 << 20;

/// Opens the database; called again after the disk was full.
pub(super) type Opener = Arc<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// Opens the file in a data directory, verifying every page.
pub(super) fn file_opener(directory: &Path) -> Opener {
    let path = database(directory);
    Arc::new(move || builder().create(&path))
}

pub(super) fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    builder
}

/// Why a commit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommitError {
    /// There is no room; nothing was written, and the next attempt may succeed.
    Full(String),
    /// What is on disk is unknown; no further write may be acknowledged by this process.
    Broken(String),
}

/// What was found on disk.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) state: State,
    /// Rows that an interrupted compaction left behind.
    pub(super) superfluous: Vec<RowId>,
}

pub(super) struct Engine {
    opener: Opener,
    /// `None` after the disk was full, until it has been opened again.
    database: Option<Database>,
    anchor: Anchor,
    durable: Revision,
    _directory: DataDirectory,
}

impl Engine {
    /// Opens and loads the database of a directory.
    pub(super) fn open(directory: DataDirectory, opener: Opener, now: Instant) -> Result<Loaded, StorageError> {
        let damaged = |detail: String| StorageError::Corrupt { path: directory.path().to_owned(), detail };
        let (anchor, witnessed) = Anchor::open(directory.path())?;
        let database = opener().map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StorageError::Locked(directory.path().to_owned()),
            DatabaseError::Storage(redb::StorageError::Io(error)) => {
                StorageError::io("open", directory.database(), &error)
            }
            error => damaged(error.to_string()),
        })?;
        initialise(&database).map_err(|error| damaged(error.to_string()))?;
        let loaded = load(&database, now).map_err(damaged)?;
        let (state, superfluous) = loaded;
        let durable = state.revision();
        if let Some(witnessed) = witnessed.filter(|witnessed| *witnessed > durable) {
            let detail = format!("it ends at revision {durable}, but revision {witnessed} was acknowledged");
            return Err(damaged(detail));
        }
        anchor.note(durable);
        let engine = Self { opener, database: Some(database), anchor, durable, _directory: directory };
        Ok(Loaded { engine, state, superfluous })
    }

    /// Makes effects durable and removes rows no longer needed, all or nothing.
    pub(super) fn commit(&mut self, effects: &[Effect], superfluous: &[RowId]) -> Result<(), CommitError> {
        let revision = effects.iter().rev().find_map(changed_to).unwrap_or(self.durable);
        let written = match self.database() {
            Ok(database) => write(database, effects, superfluous, revision),
            Err(error) => return Err(error),
        };
        match written {
            Ok(()) => {
                self.durable = revision;
                self.anchor.note(revision);
                Ok(())
            }
            Err(error) => {
                self.database = None;
                Err(classify(&error))
            }
        }
    }

    /// The database, opened again if the disk was full. What it holds must be what was acknowledged.
    fn database(&mut self) -> Result<&Database, CommitError> {
        if self.database.is_none() {
            let database = (self.opener)().map_err(|error| classify(&error.into()))?;
            let found = stored_revision(&database).map_err(|error| classify(&error))?;
            if found != self.durable {
                let detail = format!("the disk is at revision {found}, but {} was acknowledged", self.durable);
                return Err(CommitError::Broken(detail));
            }
            self.database = Some(database);
        }
        self.database.as_ref().ok_or_else(|| CommitError::Broken("the database is not open".to_owned()))
    }
}

fn changed_to(effect: &Effect) -> Option<Revision> {
    if let Effect::Changed(batch) = effect { Some(batch.revision) } else { None }
}

/// Tells a full disk, which heals, from everything else, which does not.
fn classify(error: &redb::Error) -> CommitError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error {
        redb::Error::Io(io) if matches!(io.kind(), StorageFull | QuotaExceeded | FileTooLarge) => {
            CommitError::Full(io.to_string())
        }
        error => CommitError::Broken(error.to_string()),
    }
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    match database.begin_read()?.open_table(META) {
        Ok(_) => return Ok(()),
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let txn = database.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        meta.insert(FORMAT, FORMAT_VERSION)?;
        meta.insert(REVISION, State::default().revision().0)?;
        meta.insert(COMPACTED, State::default().compacted().0)?;
        meta.insert(NEXT_LEASE, State::default().next_lease())?;
        txn.open_table(ROWS)?;
        txn.open_table(LEASES)?;
    }
    txn.commit()?;
    Ok(())
}

fn write(
    database: &Database,
    effects: &[Effect],
    superfluous: &[RowId],
    revision: Revision,
) -> Result<(), redb::Error> {
    let txn = database.begin_write()?;
    {
        let mut rows = txn.open_table(ROWS)?;
        let mut meta = txn.open_table(META)?;
        let mut leases = txn.open_table(LEASES)?;
        for row in superfluous {
            rows.remove(row)?;
        }
        for effect in effects {
            match effect {
                Effect::Changed(batch) => write_batch(&mut rows, batch)?,
                Effect::LeaseGranted { lease, ttl } => {
                    leases.insert(lease.0, ttl.as_secs())?;
                    meta.insert(NEXT_LEASE, lease.0 + 1)?;
                }
                Effect::LeaseEnded(lease) => drop(leases.remove(lease.0)?),
                Effect::Compacted(at) => drop(meta.insert(COMPACTED, at.0)?),
            }
        }
        meta.insert(REVISION, revision.0)?;
    }
    txn.commit()?;
    Ok(())
}

fn write_batch(rows: &mut redb::Table<'_, RowId, &[u8]>, batch: &EventBatch) -> Result<(), redb::Error> {
    for (position, event) in (0_u32..).zip(batch.events.iter()) {
        let mut record =
            rows.insert_reserve((batch.revision.0.unsigned_abs(), position), record::encoded_len(event))?;
        record::encode(event, record.as_mut());
    }
    Ok(())
}

fn stored_revision(database: &Database) -> Result<Revision, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let revision = meta.get(REVISION)?.map_or(0, |found| found.value());
    Ok(Revision(revision))
}

fn load(database: &Database, now: Instant) -> Result<(State, Vec<RowId>), String> {
    let say = |error: redb::Error| error.to_string();
    let txn = database.begin_read().map_err(|error| error.to_string())?;
    let meta = txn.open_table(META).map_err(|error| error.to_string())?;
    let number = |name: &str| match meta.get(name) {
        Ok(Some(found)) => Ok(found.value()),
        Ok(None) => Err(format!("the entry {name} is missing")),
        Err(error) => Err(say(error.into())),
    };
    let format = number(FORMAT)?;
    if format != FORMAT_VERSION {
        return Err(format!("its format is {format}, this program reads {FORMAT_VERSION}"));
    }
    let (revision, compacted) = (Revision(number(REVISION)?), Revision(number(COMPACTED)?));
    let mut state = State::default();
    load_leases(&txn, &mut state, now).map_err(say)?;
    load_rows(&txn, &mut state, revision, compacted)?;
    let superfluous = state.finish_restore(revision, compacted, number(NEXT_LEASE)?);
    Ok((state, superfluous))
}

/// Leases begin anew when a store is opened, as they do when an etcd cluster gets a new leader.
fn load_leases(txn: &redb::ReadTransaction, state: &mut State, now: Instant) -> Result<(), redb::Error> {
    for entry in txn.open_table(LEASES)?.iter()? {
        let (lease, ttl) = entry?;
        state.restore_lease(LeaseId(lease.value()), Duration::from_secs(ttl.value()), now);
    }
    Ok(())
}

fn load_rows(
    txn: &redb::ReadTransaction,
    state: &mut State,
    revision: Revision,
    compacted: Revision,
) -> Result<(), String> {
    let rows = txn.open_table(ROWS).map_err(|error| error.to_string())?;
    let mut log = LogReader { next: compacted.0.max(1) + 1, open: Vec::new(), open_revision: compacted };
    for entry in rows.iter().map_err(|error| error.to_string())? {
        let (id, bytes) = entry.map_err(|error| error.to_string())?;
        let Some((key, version)) = record::decode(id.value(), bytes.value()) else {
            return Err(format!("row {:?} is not readable", id.value()));
        };
        let at = version.revision;
        let event = state.restore_version(key, version);
        if at > compacted {
            log.add(state, at, event)?;
        }
    }
    log.finish(state, revision)
}

/// Rebuilds the event log and checks that no revision of it is missing.
struct LogReader {
    next: i64,
    open: Vec<Event>,
    open_revision: Revision,
}

impl LogReader {
    fn add(&mut self, state: &mut State, at: Revision, event: Event) -> Result<(), String> {
        if at != self.open_revision || self.open.is_empty() {
            self.close(state);
            if at.0 != self.next {
                return Err(format!("revision {} is missing", self.next));
            }
            self.open_revision = at;
            self.next += 1;
        }
        self.open.push(event);
        Ok(())
    }

    fn close(&mut self, state: &mut State) {
        if !self.open.is_empty() {
            let events = std::mem::take(&mut self.open);
            state.restore_log(EventBatch { revision: self.open_revision, events: events.into() });
        }
    }

    fn finish(mut self, state: &mut State, revision: Revision) -> Result<(), String> {
        self.close(state);
        if self.next != revision.0 + 1 {
            return Err(format!("it should end at revision {revision}, but ends at {}", self.next - 1));
        }
        Ok(())
    }
}
