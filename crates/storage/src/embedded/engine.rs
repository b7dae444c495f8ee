//! The store on disk: a commit goes to the journal, and the database catches up in the background. Blocking code, run
//! off the runtime.

use std::sync::Arc;

use redb::DatabaseError;
use tokio::time::Instant;

use super::anchor::Anchor;
use super::checkpoint::{Checkpointer, OpenError, Stored};
use super::commit_error::CommitError;
use super::directory::DataDirectory;
use super::disk::Disk;
use super::entry;
use super::journal::Journal;
use crate::mvcc::{Effect, RowId, State};
use crate::{Revision, StorageError};

/// What was found on disk.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) checkpointer: Checkpointer,
    pub(super) state: State,
    /// What the journal has and the database lacks.
    pub(super) pending: Vec<Effect>,
    /// Rows that the database need not keep.
    pub(super) superfluous: Vec<RowId>,
}

/// What commits go to.
pub(super) struct Engine {
    pub(super) journal: Journal,
    anchor: Anchor,
    durable: Revision,
    _directory: DataDirectory,
}

impl Engine {
    /// Opens and loads the store in a directory: the database, then what the journal has beyond it.
    ///
    /// From `journal_bytes` on the journal is long.
    pub(super) fn open(
        directory: DataDirectory,
        disk: Arc<dyn Disk>,
        journal_bytes: u64,
        now: Instant,
    ) -> Result<Loaded, StorageError> {
        let damaged = |detail: &dyn std::fmt::Display| StorageError::Corrupt {
            path: directory.path().to_owned(),
            detail: detail.to_string(),
        };
        let (anchor, witnessed) = Anchor::open(directory.path())?;
        let stored = Checkpointer::open(Arc::clone(&disk), now).map_err(|error| match error {
            OpenError::Engine(error) => not_opened(&directory, error),
            OpenError::Damaged(error) => damaged(&error),
        })?;
        let Stored { checkpointer, mut state, sequence, mark, mut superfluous } = stored;
        let half = |number| disk.journal(number).map_err(|error| directory.journal_error(number, &error));
        let (journal, payloads) =
            Journal::open([half(0)?, half(1)?], mark, sequence, journal_bytes).map_err(|error| damaged(&error))?;
        let mut pending = Vec::new();
        for payload in &payloads {
            let mut rest = payload.as_slice();
            while !rest.is_empty() {
                let effect = entry::take(&mut rest, &state).map_err(|error| damaged(&error))?;
                superfluous.extend(state.apply(std::slice::from_ref(&effect), now));
                pending.push(effect);
            }
        }
        let durable = state.revision();
        if let Some(witnessed) = witnessed.filter(|witnessed| *witnessed > durable) {
            let detail = format!("it ends at revision {durable}, but revision {witnessed} was acknowledged");
            return Err(damaged(&detail));
        }
        anchor.note(durable);
        let engine = Self { journal, anchor, durable, _directory: directory };
        Ok(Loaded { engine, checkpointer, state, pending, superfluous })
    }

    /// Makes effects durable, all or nothing.
    pub(super) fn commit(&mut self, effects: &[Effect]) -> Result<(), CommitError> {
        self.journal.append(&entry::encode(effects))?;
        if let Some(revision) = effects.iter().rev().find_map(changed_to) {
            self.durable = revision;
            self.anchor.note(revision);
        }
        Ok(())
    }

    /// The newest revision that is durable.
    pub(super) fn durable(&self) -> Revision {
        self.durable
    }
}

fn changed_to(effect: &Effect) -> Option<Revision> {
    if let Effect::Changed(batch) = effect { Some(batch.revision) } else { None }
}

fn not_opened(directory: &DataDirectory, error: DatabaseError) -> StorageError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StorageError::Locked(directory.path().to_owned()),
        DatabaseError::Storage(redb::StorageError::Io(error)) => StorageError::io("open", directory.database(), &error),
        error => StorageError::Corrupt { path: directory.path().to_owned(), detail: error.to_string() },
    }
}
