//! The one task that writes: group commit, lease expiry, and letting the database catch up with the journal.

use std::sync::Arc;
use std::time::Duration;

use base::{CancellationToken, SharedClock};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::commit_error::CommitError;
use super::engine::Engine;
use super::follower::Follower;
use crate::mvcc::{Command, Effect, Limits, Reply, Staging, Store};
use crate::{Revision, StorageError};

/// How many requests share one commit. More would only make the first of them wait.
const BATCH: usize = 512;

/// How long an otherwise idle writer waits before it has the database forget what is superfluous.
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
    follower: Follower,
    /// After a full disk: nothing is attempted before this.
    pause_until: Option<Instant>,
}

/// Why the writer woke up.
enum Wake {
    Requests(usize),
    Leases,
    Sweep,
    CaughtUp(Result<(), CommitError>),
    Stop,
}

impl Writer {
    pub(super) fn new(
        engine: Engine,
        follower: Follower,
        store: Arc<Store>,
        clock: SharedClock,
        limits: Limits,
        health: Arc<Mutex<Result<(), StorageError>>>,
    ) -> Self {
        Self { engine: Some(engine), store, clock, limits, health, follower, pause_until: None }
    }

    /// Serves requests until the queue is closed; on cancellation serves what is queued already.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Request>, stop: CancellationToken) {
        let mut requests = Vec::with_capacity(BATCH);
        let mut stopping = false;
        loop {
            match self.wake(&mut queue, &mut requests, &stop, stopping).await {
                Wake::Requests(0) => break,
                Wake::Requests(_) => {
                    gather(&mut queue, &mut requests).await;
                    self.serve(std::mem::take(&mut requests)).await;
                }
                Wake::Leases => self.expire().await,
                Wake::Sweep => self.catch_up(),
                Wake::CaughtUp(outcome) => self.caught_up(outcome),
                Wake::Stop => {
                    stopping = true;
                    queue.close();
                }
            }
        }
        self.close().await;
    }

    /// Lets the database catch up with everything, as far as it can, and closes it.
    async fn close(mut self) {
        if let Some(outcome) = self.follower.written().await {
            self.caught_up(outcome);
        }
        self.catch_up();
        if let Some(outcome) = self.follower.written().await {
            self.caught_up(outcome);
        }
        // Closing the database writes its final state: not on the runtime's threads.
        let (engine, follower) = (self.engine.take(), self.follower);
        if tokio::task::spawn_blocking(move || drop((follower, engine))).await.is_err() {
            tracing::warn!("the store did not close cleanly; it will be verified when it is opened again");
        }
    }

    async fn wake(
        &mut self,
        queue: &mut mpsc::Receiver<Request>,
        requests: &mut Vec<Request>,
        stop: &CancellationToken,
        stopping: bool,
    ) -> Wake {
        let deadline = self.store.next_deadline().map(|deadline| deadline.max(self.pause_until.unwrap_or(deadline)));
        let can_write = self.engine.is_some() && !stopping;
        let (expires, sweeps) = (can_write && deadline.is_some(), can_write && self.follower.may_sweep());
        let sweep_pause = self.pause_until.map_or(SWEEP_PAUSE, |_| FULL_PAUSE);
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopping => Wake::Stop,
            Some(outcome) = self.follower.written() => Wake::CaughtUp(outcome),
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
        if effects.is_empty() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        if self.pause_until.is_some_and(|until| now < until) {
            return self.health.lock().clone();
        }
        self.make_room().await;
        let Some(mut engine) = self.engine.take() else { return self.health.lock().clone() };
        let committed = tokio::task::spawn_blocking(move || {
            let outcome = engine.commit(&effects);
            (engine, effects, outcome)
        });
        match committed.await {
            Ok((engine, effects, Ok(()))) => {
                self.engine = Some(engine);
                self.pause_until = None;
                let superfluous = self.store.apply(&effects, &self.clock);
                self.follower.note(effects, superfluous);
                *self.health.lock() = Ok(());
                if self.engine.as_ref().is_some_and(|engine| engine.journal.is_long()) {
                    self.catch_up();
                }
                Ok(())
            }
            Ok((engine, _, Err(CommitError::Full(detail)))) => {
                self.engine = Some(engine);
                self.full(&detail)
            }
            Ok((_, _, Err(CommitError::Broken(detail)))) => self.stop_writing(detail),
            Err(panicked) => self.stop_writing(panicked.to_string()),
        }
    }

    /// Waits for the database where the journal has no room for more.
    async fn make_room(&mut self) {
        if self.engine.as_ref().is_some_and(|engine| engine.journal.is_full()) {
            self.catch_up();
            if let Some(outcome) = self.follower.written().await {
                self.caught_up(outcome);
            }
        }
    }

    /// Has the database catch up with the journal, unless it does so already or must wait for room on the disk.
    fn catch_up(&mut self) {
        let paused = self.pause_until.is_some_and(|until| self.clock.monotonic() < until);
        if let Some(engine) = self.engine.as_mut().filter(|_| !paused) {
            self.follower.catch_up(engine);
        }
    }

    fn caught_up(&mut self, outcome: Result<(), CommitError>) {
        match outcome {
            Ok(()) => {
                if let Some(engine) = self.engine.as_mut() {
                    engine.journal.free_other();
                }
            }
            Err(CommitError::Full(detail)) => drop(self.full(&detail)),
            Err(CommitError::Broken(detail)) => drop(self.stop_writing(detail)),
        }
    }

    fn full(&mut self, detail: &str) -> Result<(), StorageError> {
        tracing::error!(error = %detail, "the store's disk is full; reads go on, writes are refused");
        self.pause_until = Some(self.clock.monotonic() + FULL_PAUSE);
        self.fail(StorageError::NoSpace { detail: format!(": {detail}") })
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

/// Adds the requests of tasks that can run now: a commit costs the same, whether for one or for many.
async fn gather(queue: &mut mpsc::Receiver<Request>, requests: &mut Vec<Request>) {
    base::ready_tasks_first().await;
    while requests.len() < BATCH
        && let Ok(request) = queue.try_recv()
    {
        requests.push(request);
    }
}

/// Sleeps until a deadline; for ever where there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
