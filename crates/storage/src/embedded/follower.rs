//! The database's following of the journal, in the background.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::checkpoint::{Checkpoint, Checkpointer};
use super::commit_error::CommitError;
use super::engine::Engine;
use crate::mvcc::{Effect, RowId};

/// How many superfluous rows one checkpoint removes.
const SWEEP: usize = 20_000;

/// A checkpoint that was attempted.
type Attempt = (Checkpointer, Checkpoint, Result<(), CommitError>);

/// What the database lacks, and the checkpoint that is being written.
pub(super) struct Follower {
    /// `None` while a checkpoint is being written, and after one has failed for good.
    checkpointer: Option<Checkpointer>,
    running: Option<JoinHandle<Attempt>>,
    pending: Vec<Effect>,
    superfluous: VecDeque<RowId>,
}

impl Follower {
    pub(super) fn new(checkpointer: Checkpointer, pending: Vec<Effect>, superfluous: Vec<RowId>) -> Self {
        Self { checkpointer: Some(checkpointer), running: None, pending, superfluous: superfluous.into() }
    }

    /// Notes what was committed, and the rows that it made superfluous.
    pub(super) fn note(&mut self, effects: Vec<Effect>, superfluous: Vec<RowId>) {
        self.pending.extend(effects);
        self.superfluous.extend(superfluous);
    }

    /// Whether there are superfluous rows and nothing is being written.
    pub(super) fn may_sweep(&self) -> bool {
        self.checkpointer.is_some() && !self.superfluous.is_empty()
    }

    /// Begins a checkpoint of all that was noted, unless there is nothing or one is being written.
    pub(super) fn catch_up(&mut self, engine: &mut Engine) {
        if self.pending.is_empty() && self.superfluous.is_empty() {
            return;
        }
        let Some(mut checkpointer) = self.checkpointer.take() else { return };
        engine.journal.turn();
        let checkpoint = Checkpoint {
            effects: std::mem::take(&mut self.pending),
            superfluous: self.superfluous.drain(..self.superfluous.len().min(SWEEP)).collect(),
            revision: engine.durable(),
            sequence: engine.journal.sequence(),
        };
        self.running = Some(tokio::task::spawn_blocking(move || {
            let outcome = checkpointer.write(&checkpoint);
            (checkpointer, checkpoint, outcome)
        }));
    }

    /// How the checkpoint that is being written ended; `None`, at once, where there is none.
    ///
    /// What a full disk did not take is kept for the next attempt.
    pub(super) async fn written(&mut self) -> Option<Result<(), CommitError>> {
        let attempt = self.running.as_mut()?.await;
        self.running = None;
        let (checkpointer, checkpoint, outcome) = match attempt {
            Ok(attempt) => attempt,
            Err(panicked) => return Some(Err(CommitError::Broken(panicked.to_string()))),
        };
        self.checkpointer = Some(checkpointer);
        if outcome.is_err() {
            let later = std::mem::replace(&mut self.pending, checkpoint.effects);
            self.pending.extend(later);
            checkpoint.superfluous.into_iter().rev().for_each(|row| self.superfluous.push_front(row));
        }
        Some(outcome)
    }
}
