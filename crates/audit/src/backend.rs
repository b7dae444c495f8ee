//! From requests to a sink: a queue with a bound, and a worker that sends what waits in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::{CancellationToken, SharedClock, TaskGroup};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::finished::Finished;
use crate::metrics::AuditMetrics;
use crate::sink::{Sink, report};
use crate::throttle::{Rate, Throttle};

/// The names under which losses are counted that are no sink's.
const BUFFERED: &str = "buffered";
const TRUNCATE: &str = "truncate";
/// Events that wait to be sent, in bytes; with objects in them a count alone is no bound.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;
/// Events that are sent at once where nothing says fewer.
const MAX_EVENTS: usize = 1000;
/// How often others have their turn before what has come is sent, where nobody said how long to wait.
const MOST_TURNS: usize = 16;

/// What becomes of a request while its event is on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It does not wait; events are dropped, and counted, when too many wait.
    Batch,
    /// It waits, and goes on whatever comes of it.
    Blocking,
    /// It waits, and is refused when it cannot be told that it came.
    BlockingStrict,
}

/// How events are gathered in mode `batch`; in the others, what waits is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batching {
    /// Events that may wait.
    pub room: usize,
    /// Events of a batch.
    pub max_events: usize,
    /// How long a batch waits to become full.
    pub max_wait: Duration,
    /// Batches in a second.
    pub rate: Option<Rate>,
}

/// What becomes of what is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// A larger event loses its objects, and is lost if that is not enough.
    pub max_event_bytes: usize,
    /// A larger batch is sent as several.
    pub max_batch_bytes: usize,
}

/// How events come to a sink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// What requests do meanwhile.
    pub mode: Mode,
    /// How events are gathered.
    pub batching: Batching,
    /// What becomes of what is too large; nothing where all sizes will do.
    pub truncation: Option<Truncation>,
}

/// An event on its way; who waits is told whether it arrived.
struct Waiting {
    event: Arc<Finished>,
    arrived: Option<oneshot::Sender<bool>>,
}

/// The way to a sink.
pub struct Backend {
    queue: mpsc::Sender<Waiting>,
    delivery: Delivery,
    metrics: AuditMetrics,
    underway: Arc<Underway>,
    closing: CancellationToken,
    closed: CancellationToken,
}

/// What was accepted, and has not come to an end yet.
#[derive(Default)]
struct Underway {
    events: AtomicUsize,
    bytes: AtomicUsize,
}

impl Underway {
    fn add(&self, event: &Finished) {
        self.events.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(event.json().len(), Ordering::Relaxed);
    }

    fn remove(&self, event: &Finished) {
        self.events.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(event.json().len(), Ordering::Relaxed);
    }
}

impl Backend {
    /// Sends to `sink` in tasks of the group, until it is shut down or the group ends, and everything is sent.
    #[must_use]
    pub fn start(
        sink: Arc<dyn Sink>,
        delivery: Delivery,
        metrics: &AuditMetrics,
        clock: &SharedClock,
        tasks: &TaskGroup,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(delivery.batching.room.clamp(1, Semaphore::MAX_PERMITS));
        let (closing, closed) = (tasks.token().child_token(), CancellationToken::new());
        let underway = Arc::<Underway>::default();
        let sender = Sender { sink, underway: Arc::clone(&underway), metrics: metrics.clone() };
        let mut worker = Worker {
            gather: Gather::new(delivery, sender.sink.keeps_batches()),
            truncation: delivery.truncation,
            throttle: delivery.batching.rate.filter(|_| delivery.mode == Mode::Batch).map(Throttle::new),
            slots: Arc::new(Semaphore::new(usize::try_from(sender.sink.concurrency()).unwrap_or(1))),
            sender: Arc::new(sender),
            waiting,
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
            closing: closing.clone(),
        };
        let at_end = closed.clone().drop_guard();
        tasks.spawn("audit-backend", async move {
            worker.run().await;
            drop(at_end);
        });
        Self { queue, delivery, metrics: metrics.clone(), underway, closing, closed }
    }

    /// Tells an event; in the modes that block, waits until it arrived. Gives false where a request must be refused as
    /// it did not.
    pub(crate) async fn deliver(&self, event: &Arc<Finished>) -> bool {
        if self.delivery.mode == Mode::Batch {
            self.post(event);
            return true;
        }
        let Some(event) = self.fitting(event) else { return true };
        let (arrived, outcome) = oneshot::channel();
        self.underway.add(&event);
        let sent = self.queue.send(Waiting { event: Arc::clone(&event), arrived: Some(arrived) }).await;
        let has_arrived = match sent {
            Ok(()) => outcome.await.unwrap_or(false),
            Err(_) => self.lost(&event, "audit backend shut down"),
        };
        has_arrived || self.delivery.mode != Mode::BlockingStrict
    }

    /// Tells an event without waiting.
    pub(crate) fn post(&self, event: &Arc<Finished>) {
        let Some(event) = self.fitting(event) else { return };
        self.underway.add(&event);
        if self.underway.bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES {
            self.lost(&event, "audit buffer queue blocked");
            return;
        }
        match self.queue.try_send(Waiting { event, arrived: None }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(waiting)) => {
                self.lost(&waiting.event, "audit buffer queue blocked");
            }
            Err(mpsc::error::TrySendError::Closed(waiting)) => {
                self.lost(&waiting.event, "audit backend shut down");
            }
        }
    }

    /// Takes no more events, and sends those that it has without waiting for more.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until it has sent what it had when it was closed. What has not arrived at the deadline is lost.
    pub(crate) async fn drained(&self, deadline: Duration) {
        if tokio::time::timeout(deadline, self.closed.cancelled()).await.is_err() {
            let left = self.underway.events.load(Ordering::Relaxed);
            self.metrics.lost(BUFFERED, left);
            tracing::error!(events = left, "Audit events had not been sent when the server ended");
        }
    }

    /// The event as the sink takes it; nothing where it takes it in no form.
    fn fitting(&self, event: &Arc<Finished>) -> Option<Arc<Finished>> {
        let fits = |event: &Finished| {
            self.delivery.truncation.is_none_or(|truncation| event.json().len() <= truncation.max_event_bytes)
        };
        if fits(event) {
            return Some(Arc::clone(event));
        }
        let short = event.truncated().filter(&fits).map(Arc::new);
        if short.is_none() {
            self.metrics.lost(TRUNCATE, 1);
            report(TRUNCATE, std::slice::from_ref(event), &"event is too large even after truncating");
        }
        short
    }

    fn lost(&self, event: &Arc<Finished>, why: &str) -> bool {
        self.underway.remove(event);
        self.metrics.lost(BUFFERED, 1);
        report(BUFFERED, std::slice::from_ref(event), &why);
        false
    }
}

/// How many events a batch waits for and takes.
struct Gather {
    enough: usize,
    most: usize,
    max_wait: Duration,
}

impl Gather {
    fn new(Delivery { mode, batching, .. }: Delivery, keeps_batches: bool) -> Self {
        if mode != Mode::Batch {
            return Self { enough: 1, most: MAX_EVENTS, max_wait: Duration::ZERO };
        }
        let enough = batching.max_events.max(1);
        let is_exact = keeps_batches || batching.rate.is_some();
        Self { enough, most: if is_exact { enough } else { enough.max(MAX_EVENTS) }, max_wait: batching.max_wait }
    }
}

struct Worker {
    sender: Arc<Sender>,
    waiting: mpsc::Receiver<Waiting>,
    gather: Gather,
    truncation: Option<Truncation>,
    throttle: Option<Throttle>,
    /// A batch on its way has one.
    slots: Arc<Semaphore>,
    clock: SharedClock,
    tasks: TaskGroup,
    closing: CancellationToken,
}

impl Worker {
    /// Until nobody can tell any more, and everything has come to an end.
    async fn run(&mut self) {
        loop {
            let events = self.batch().await;
            if events.is_empty() {
                break;
            }
            for part in split(events, self.truncation) {
                self.pause().await;
                self.send(part).await;
            }
        }
        // With every slot in hand, nothing is on its way. The semaphore is never closed.
        let _ = self.slots.acquire_many(self.sender.sink.concurrency()).await;
    }

    /// The next batch; empty at the end.
    async fn batch(&mut self) -> Vec<Waiting> {
        let (mut events, most) = (Vec::new(), self.gather.most);
        if self.receive(&mut events, most).await == 0 {
            return events;
        }
        if self.gather.max_wait.is_zero() {
            self.take_along(&mut events, most).await;
            return events;
        }
        let mut patience = std::pin::pin!(tokio::time::sleep(self.gather.max_wait));
        while events.len() < self.gather.enough && !self.closing.is_cancelled() {
            let left = most - events.len();
            tokio::select! {
                biased;
                () = &mut patience => break,
                count = self.receive(&mut events, left) => if count == 0 { break },
            }
        }
        events
    }

    /// Adds what comes while others have something to do: requests that are ready come to their ends, and one write is for
    /// all of them. What a write costs is mostly the way to another thread and back.
    async fn take_along(&mut self, events: &mut Vec<Waiting>, most: usize) {
        for _ in 0..MOST_TURNS {
            tokio::task::yield_now().await;
            let before = events.len();
            while events.len() < most
                && let Ok(waiting) = self.waiting.try_recv()
            {
                events.push(waiting);
            }
            if events.len() == before {
                break;
            }
        }
    }

    /// Takes what waits, and waits for something. Once this closes, only what is there already comes.
    async fn receive(&mut self, events: &mut Vec<Waiting>, most: usize) -> usize {
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                count = self.waiting.recv_many(events, most) => return count,
                () = self.closing.cancelled() => {}
            }
        }
        self.waiting.close();
        self.waiting.recv_many(events, most).await
    }

    /// Waits for its turn, unless everything ends.
    async fn pause(&mut self) {
        let Some(throttle) = &mut self.throttle else { return };
        let wait = throttle.wait(self.clock.monotonic());
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = self.closing.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn send(&self, events: Vec<Waiting>) {
        if self.sender.sink.concurrency() == 1 {
            self.sender.send(events).await;
            return;
        }
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
        let sender = Arc::clone(&self.sender);
        self.tasks.spawn("audit-batch", async move {
            sender.send(events).await;
            drop(slot);
        });
    }
}

/// The parts of a batch that are small enough, in order.
fn split(events: Vec<Waiting>, truncation: Option<Truncation>) -> Vec<Vec<Waiting>> {
    let Some(Truncation { max_batch_bytes, .. }) = truncation else { return vec![events] };
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for waiting in events {
        let own = waiting.event.json().len();
        if bytes + own > max_batch_bytes && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += own;
        part.push(waiting);
    }
    parts.push(part);
    parts
}

struct Sender {
    sink: Arc<dyn Sink>,
    underway: Arc<Underway>,
    metrics: AuditMetrics,
}

impl Sender {
    async fn send(&self, batch: Vec<Waiting>) {
        let events: Vec<Arc<Finished>> = batch.iter().map(|waiting| Arc::clone(&waiting.event)).collect();
        let outcome = self.sink.send(&events).await;
        if let Err(error) = &outcome {
            self.metrics.lost(self.sink.name(), events.len());
            report(self.sink.name(), &events, error);
        }
        for waiting in batch {
            self.underway.remove(&waiting.event);
            // Whoever waited may have gone.
            let _: Option<Result<(), bool>> = waiting.arrived.map(|told| told.send(outcome.is_ok()));
        }
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
