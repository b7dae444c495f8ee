//! The database file: loading it, and letting it catch up with the journal. Blocking code, run off the runtime.

use std::sync::Arc;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError};
use tokio::time::Instant;

use super::commit_error::CommitError;
use super::disk::Disk;
use super::record;
use super::seal::Mark;
use crate::mvcc::{Effect, RowId, State};
use crate::{Event, EventBatch, LeaseId, Revision};

const META: TableDefinition<'static, &str, i64> = TableDefinition::new("meta");
const ROWS: TableDefinition<'static, RowId, &[u8]> = TableDefinition::new("rows");
const LEASES: TableDefinition<'static, i64, u64> = TableDefinition::new("leases");

const FORMAT: &str = "format";
const REVISION: &str = "revision";
const COMPACTED: &str = "compacted";
const NEXT_LEASE: &str = "next_lease";
/// The newest commit of the journal that the database has; absent before there was a journal.
const SEQUENCE: &str = "sequence";
/// What the frames of the journal begin with.
const MARK: &str = "journal_mark";
/// 2 is 1 with a journal beside it, 3 has other digests there.
const FORMAT_VERSION: i64 = 3;
const OLDEST_FORMAT: i64 = 1;

/// What the database lacks of the journal, and what it need not keep.
pub(super) struct Checkpoint {
    pub(super) effects: Vec<Effect>,
    pub(super) superfluous: Vec<RowId>,
    /// The revision and the sequence that the effects end with.
    pub(super) revision: Revision,
    pub(super) sequence: u64,
}

/// The database, which follows the journal.
pub(super) struct Checkpointer {
    disk: Arc<dyn Disk>,
    /// `None` after the disk was full, until it has been opened again.
    database: Option<Database>,
    /// The newest commit that it has.
    sequence: u64,
}

/// What the database held.
pub(super) struct Stored {
    pub(super) checkpointer: Checkpointer,
    pub(super) state: State,
    pub(super) sequence: u64,
    pub(super) mark: Mark,
    /// Rows that an interrupted compaction left behind.
    pub(super) superfluous: Vec<RowId>,
}

/// Why the database could not be opened.
pub(super) enum OpenError {
    Engine(DatabaseError),
    Damaged(LoadError),
}

impl Checkpointer {
    /// Opens and loads the database.
    pub(super) fn open(disk: Arc<dyn Disk>, now: Instant) -> Result<Stored, OpenError> {
        let database = disk.database().map_err(OpenError::Engine)?;
        initialise(&database).map_err(|error| OpenError::Damaged(error.into()))?;
        let (state, superfluous) = load(&database, now).map_err(OpenError::Damaged)?;
        let numbers = stored_sequence(&database).and_then(|sequence| Ok((sequence, stored_mark(&database)?)));
        let (sequence, mark) = numbers.map_err(|error| OpenError::Damaged(error.into()))?;
        let checkpointer = Self { disk, database: Some(database), sequence };
        Ok(Stored { checkpointer, state, sequence, mark, superfluous })
    }

    /// Makes a checkpoint durable, all or nothing.
    pub(super) fn write(&mut self, checkpoint: &Checkpoint) -> Result<(), CommitError> {
        let written = write(self.database()?, checkpoint);
        match written {
            Ok(()) => {
                self.sequence = checkpoint.sequence;
                Ok(())
            }
            Err(error) => {
                self.database = None;
                Err(error.into())
            }
        }
    }

    /// The database, opened again if the disk was full. What it holds must be what was written.
    fn database(&mut self) -> Result<&Database, CommitError> {
        if self.database.is_none() {
            let database = self.disk.database().map_err(redb::Error::from)?;
            let found = stored_sequence(&database)?;
            if found != self.sequence {
                let detail = format!("the database is at commit {found}, but {} was written", self.sequence);
                return Err(CommitError::Broken(detail));
            }
            self.database = Some(database);
        }
        self.database.as_ref().ok_or_else(|| CommitError::Broken("the database is not open".to_owned()))
    }
}

/// Fills a new database. One of an earlier format becomes one of this format at once: a version of then could not read what
/// now comes to the journal.
fn initialise(database: &Database) -> Result<(), redb::Error> {
    let found = match database.begin_read()?.open_table(META) {
        Ok(meta) => Some((meta.get(MARK)?.is_some(), meta.get(FORMAT)?.map(|format| format.value()))),
        Err(TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let is_earlier = |format: Option<i64>| format.is_some_and(|own| (OLDEST_FORMAT..FORMAT_VERSION).contains(&own));
    let (has_mark, is_earlier) = found.map_or((false, true), |(has_mark, format)| (has_mark, is_earlier(format)));
    if has_mark && !is_earlier {
        return Ok(());
    }
    let txn = database.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        if is_earlier {
            meta.insert(FORMAT, FORMAT_VERSION)?;
        }
        if found.is_none() {
            meta.insert(REVISION, State::default().revision().0)?;
            meta.insert(COMPACTED, State::default().compacted().0)?;
            meta.insert(NEXT_LEASE, State::default().next_lease())?;
            txn.open_table(ROWS)?;
            txn.open_table(LEASES)?;
        }
        if !has_mark {
            meta.insert(MARK, new_mark().map_err(redb::Error::Io)?)?;
        }
    }
    txn.commit()?;
    Ok(())
}

/// A number that nobody can know: whoever did could write a value that looks like a part of the journal.
fn new_mark() -> std::io::Result<i64> {
    let mut bytes = Mark::default();
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    Ok(i64::from_be_bytes(bytes))
}

fn stored_mark(database: &Database) -> Result<Mark, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let mark = meta.get(MARK)?.map_or(0, |found| found.value());
    Ok(mark.to_be_bytes())
}

fn write(database: &Database, checkpoint: &Checkpoint) -> Result<(), redb::Error> {
    let txn = database.begin_write()?;
    {
        let mut rows = txn.open_table(ROWS)?;
        let mut meta = txn.open_table(META)?;
        let mut leases = txn.open_table(LEASES)?;
        for effect in &checkpoint.effects {
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
        // After the changes: some of these rows came with them.
        for row in &checkpoint.superfluous {
            rows.remove(row)?;
        }
        meta.insert(REVISION, checkpoint.revision.0)?;
        meta.insert(SEQUENCE, checkpoint.sequence.cast_signed())?;
        meta.insert(FORMAT, FORMAT_VERSION)?;
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

fn stored_sequence(database: &Database) -> Result<u64, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let sequence = meta.get(SEQUENCE)?.map_or(0, |found| found.value().cast_unsigned());
    Ok(sequence)
}

/// Why the contents of a database cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Database(#[from] redb::Error),
    #[error("the entry {0} is missing")]
    NoEntry(String),
    #[error("its format is {0}, this program reads {OLDEST_FORMAT} to {FORMAT_VERSION}")]
    Format(i64),
    #[error("row {0:?} is not readable")]
    Row(RowId),
    #[error("revision {0} is missing")]
    Missing(i64),
    #[error("it should end at revision {expected}, but ends at {found}")]
    End { expected: Revision, found: i64 },
}

fn load(database: &Database, now: Instant) -> Result<(State, Vec<RowId>), LoadError> {
    let txn = database.begin_read().map_err(redb::Error::from)?;
    let meta = txn.open_table(META).map_err(redb::Error::from)?;
    let number = |name: &str| match meta.get(name) {
        Ok(Some(found)) => Ok(found.value()),
        Ok(None) => Err(LoadError::NoEntry(name.to_owned())),
        Err(error) => Err(redb::Error::from(error).into()),
    };
    let format = number(FORMAT)?;
    if !(OLDEST_FORMAT..=FORMAT_VERSION).contains(&format) {
        return Err(LoadError::Format(format));
    }
    let (revision, compacted) = (Revision(number(REVISION)?), Revision(number(COMPACTED)?));
    let mut state = State::default();
    load_leases(&txn, &mut state, now)?;
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
) -> Result<(), LoadError> {
    let rows = txn.open_table(ROWS).map_err(redb::Error::from)?;
    let mut log = LogReader { next: compacted.0.max(1) + 1, open: Vec::new(), open_revision: compacted };
    for entry in rows.iter().map_err(redb::Error::from)? {
        let (id, bytes) = entry.map_err(redb::Error::from)?;
        let Some((key, version)) = record::decode(id.value(), bytes.value()) else {
            return Err(LoadError::Row(id.value()));
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
    fn add(&mut self, state: &mut State, at: Revision, event: Event) -> Result<(), LoadError> {
        if at != self.open_revision || self.open.is_empty() {
            self.close(state);
            if at.0 != self.next {
                return Err(LoadError::Missing(self.next));
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

    fn finish(mut self, state: &mut State, revision: Revision) -> Result<(), LoadError> {
        self.close(state);
        if self.next != revision.0 + 1 {
            return Err(LoadError::End { expected: revision, found: self.next - 1 });
        }
        Ok(())
    }
}
