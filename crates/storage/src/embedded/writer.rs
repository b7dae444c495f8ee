//! The one task that writes: group commit, lease expiry, clearing away what compaction freed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::{CancellationToken, SharedClock};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::engine::{CommitError, Engine};
use crate::mvcc::{Command, Effect, Limits, Reply, RowId, Staging, Store};
use crate::{Revision, StorageError};

/// How many requests share one commit. More would only make the first of them wait.
const BATCH: usize = 512;

/// How many superfluous rows one commit removes, so that a compaction never holds up writes for long.
const SWEEP: usize = 2_000;

/// How long an otherwise idle writer waits before it commits a sweep of its own.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);

/// How many leases end in one commit.
const EXPIRE_BATCH: usize = 256;

/// How long after a full disk the next attempt is made.
const FULL_PAUSE: Duration = Duration::from_secs(1);

type Answer = Result<Reply, StorageError>;

/// A command that waits for its answer.
pub(super) struct Request {
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Answer>,
}

pub(super) struct Writer {
    /// `None` once a write has failed for good.
    engine: Option<Engine>,
    store: Arc<Store>,
    clock: SharedClock,
    limits: Limits,
    health: Arc<Mutex<Result<(), StorageError>>>,
    superfluous: VecDeque<RowId>,
    /// After a full disk: nothing is attempted before this.
    pause_until: Option<Instant>,
}

/// Why the writer woke up.
enum Wake {
    Requests(usize),
    Leases,
    Sweep,
    Stop,
}

impl Writer {
    pub(super) fn new(
        engine: Engine,
        store: Arc<Store>,
        clock: SharedClock,
        limits: Limits,
        health: Arc<Mutex<Result<(), StorageError>>>,
    ) -> Self {
        let superfluous = VecDeque::new();
        Self { engine: Some(engine), store, clock, limits, health, superfluous, pause_until: None }
    }

    /// Serves requests until the queue is closed; on cancellation serves what is queued already.
    pub(super) async fn run(
        mut self,
        mut queue: mpsc::Receiver<Request>,
        stop: CancellationToken,
        superfluous: Vec<RowId>,
    ) {
        self.superfluous.extend(superfluous);
        let mut requests = Vec::with_capacity(BATCH);
        let mut stopping = false;
        loop {
            match self.wake(&mut queue, &mut requests, &stop, stopping).await {
                Wake::Requests(0) => break,
                Wake::Requests(_) => self.serve(std::mem::take(&mut requests)).await,
                Wake::Leases => self.expire().await,
                Wake::Sweep => self.internal(Vec::new()).await,
                Wake::Stop => {
                    stopping = true;
                    queue.close();
                }
            }
        }
        // Closing the database writes its final state: not on the runtime's threads.
        let engine = self.engine.take();
        if tokio::task::spawn_blocking(move || drop(engine)).await.is_err() {
            tracing::warn!("the store did not close cleanly; it will be verified when it is opened again");
        }
    }

    async fn wake(
        &self,
        queue: &mut mpsc::Receiver<Request>,
        requests: &mut Vec<Request>,
        stop: &CancellationToken,
        stopping: bool,
    ) -> Wake {
        let deadline = self.store.next_deadline().map(|deadline| deadline.max(self.pause_until.unwrap_or(deadline)));
        let can_write = self.engine.is_some() && !stopping;
        let (expires, sweeps) = (can_write && deadline.is_some(), can_write && !self.superfluous.is_empty());
        let sweep_pause = self.pause_until.map_or(SWEEP_PAUSE, |_| FULL_PAUSE);
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopping => Wake::Stop,
            () = sleep_until(deadline), if expires => Wake::Leases,
            count = queue.recv_many(requests, BATCH) => Wake::Requests(count),
            () = tokio::time::sleep(sweep_pause), if sweeps => Wake::Sweep,
        }
    }

    async fn expire(&mut self) {
        let now = self.clock.monotonic();
        let expired = self.store.read(|state| state.leases().expired(now, EXPIRE_BATCH));
        self.internal(expired.into_iter().map(|lease| Command::Revoke { lease }).collect()).await;
    }

    /// Carries out commands that nobody waits for.
    async fn internal(&mut self, commands: Vec<Command>) {
        let unheard = |command| Request { command, reply: oneshot::channel().0 };
        self.serve(commands.into_iter().map(unheard).collect()).await;
    }

    /// Works out requests together, commits them together, then makes them visible and answers.
    async fn serve(&mut self, requests: Vec<Request>) {
        let limits = self.limits;
        let (answers, effects) = self.store.read(|state| {
            let mut staging = Staging::new(state, limits);
            let stage = |request: Request| (request.reply, staging.stage(request.command));
            let answers: Vec<_> = requests.into_iter().map(stage).collect();
            (answers, staging.effects)
        });
        let outcome = self.commit(effects).await;
        for (reply, answer) in answers {
            // What was worked out on top of changes that did not happen is void, refusals included.
            let answer = outcome.clone().and(answer);
            // A caller that went away is not owed an answer.
            let _gone = reply.send(answer);
        }
        if outcome.is_ok() {
            self.bound_history().await;
        }
    }

    async fn commit(&mut self, effects: Vec<Effect>) -> Result<(), StorageError> {
        if effects.is_empty() && self.superfluous.is_empty() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        if self.pause_until.is_some_and(|until| now < until) {
            return self.health.lock().clone();
        }
        let Some(mut engine) = self.engine.take() else { return self.health.lock().clone() };
        let sweep: Vec<RowId> = self.superfluous.iter().take(SWEEP).copied().collect();
        let swept = sweep.len();
        let committed = tokio::task::spawn_blocking(move || {
            let outcome = engine.commit(&effects, &sweep);
            (engine, effects, outcome)
        });
        match committed.await {
            Ok((engine, effects, Ok(()))) => {
                self.engine = Some(engine);
                self.pause_until = None;
                self.superfluous.drain(..swept);
                self.superfluous.extend(self.store.apply(&effects, &self.clock));
                *self.health.lock() = Ok(());
                Ok(())
            }
            Ok((engine, _, Err(CommitError::Full(detail)))) => {
                tracing::error!(error = %detail, "the store's disk is full; reads go on, writes are refused");
                self.engine = Some(engine);
                self.pause_until = Some(self.clock.monotonic() + FULL_PAUSE);
                self.fail(StorageError::NoSpace { detail: format!(": {detail}") })
            }
            Ok((_, _, Err(CommitError::Broken(detail)))) => self.stop_writing(detail),
            Err(panicked) => self.stop_writing(panicked.to_string()),
        }
    }

    /// After a failed sync nobody knows what is on disk, and trying again would not tell.
    fn stop_writing(&mut self, detail: String) -> Result<(), StorageError> {
        tracing::error!(error = %detail, "a write to the store failed; no further write is accepted");
        self.engine = None;
        self.fail(StorageError::Failed(detail))
    }

    fn fail(&self, error: StorageError) -> Result<(), StorageError> {
        *self.health.lock() = Err(error.clone());
        Err(error)
    }

    /// Forgets the older half of history when it has grown too large; whoever still needed it lists anew.
    async fn bound_history(&mut self) {
        let (bytes, compacted, revision) =
            self.store.read(|state| (state.history_bytes(), state.compacted(), state.revision()));
        let midway = Revision(i64::midpoint(compacted.0, revision.0));
        if bytes <= self.limits.history_bytes || midway <= compacted {
            return;
        }
        tracing::warn!(history_bytes = bytes, at = midway.0, "history has outgrown its limit; compacting");
        if let Err(error) = self.commit(vec![Effect::Compacted(midway)]).await {
            tracing::warn!(%error, "cannot compact");
        }
    }
}

/// Sleeps until a deadline; for ever where there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
