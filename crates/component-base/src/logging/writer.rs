//! The thread that writes the log.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lines that may wait to be written; about a second of a very chatty component.
pub const QUEUE_LINES: usize = 16_384;
/// How long a flush may take before the log counts as blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(120);
/// How long [`LogWriter::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Which of two outputs a line is for, where there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// What is for information.
    Info,
    /// What went wrong.
    Error,
}

/// How lines for information are kept back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes that may wait; none where lines are written as they come.
    pub bytes: usize,
    /// How long they may.
    pub longest: Duration,
}

enum Message {
    Line(Stream, String),
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
    /// Counted once everything before it is written.
    Mark(u64),
}

/// The sending end of the log. Clones share it.
#[derive(Debug, Clone)]
pub struct LogWriter {
    /// Grows with what waits: one with room for all lines would keep 640 KiB of every process. `waiting` bounds it.
    queue: Sender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How many messages wait, at most [`QUEUE_LINES`].
    waiting: AtomicUsize,
    dropped: AtomicU64,
    unreported: AtomicU64,
    written_mark: AtomicU64,
    /// The last mark sent, and when.
    pending: Mutex<(u64, Option<Instant>)>,
}

impl LogWriter {
    /// Starts a thread that writes to `output` until the last clone is gone.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub fn start(output: impl Write + Send + 'static) -> std::io::Result<Self> {
        Self::start_with(Sinks { error: Sink::new(output), info: None })
    }

    /// The same, where lines for information go elsewhere.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub fn start_split(
        error: impl Write + Send + 'static,
        info: impl Write + Send + 'static,
        buffering: Buffering,
    ) -> std::io::Result<Self> {
        Self::start_with(Sinks { error: Sink::new(error), info: Some(Kept::new(info, buffering)) })
    }

    fn start_with(sinks: Sinks) -> std::io::Result<Self> {
        let (queue, lines) = channel();
        let shared = Arc::new(Shared::default());
        let writer = Self { queue, shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&lines, sinks, &shared))?;
        Ok(writer)
    }

    /// Queues a message where there is room and somebody to take it; whether there was.
    fn queue(&self, message: Message) -> bool {
        let has_room = self.shared.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE_LINES;
        let queued = has_room && self.queue.send(message).is_ok();
        if !queued {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        queued
    }

    /// Queues a line, or drops it when the queue is full.
    pub(super) fn send(&self, stream: Stream, line: String) {
        if !self.queue(Message::Line(stream, line)) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            self.shared.unreported.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines were dropped since this was last asked.
    pub(super) fn take_dropped(&self) -> u64 {
        // The load keeps the usual case, none, from writing to a line that all threads share.
        if self.shared.unreported.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.shared.unreported.swap(0, Ordering::Relaxed)
    }

    /// How many lines were dropped in all.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything queued so far is written, for a second at most.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue(Message::Flush(done)) {
            // A writer that is too slow has had its chance; the process goes on.
            let _ = wait.recv_timeout(FLUSH_PATIENCE);
        }
    }

    /// Sends a mark through the queue unless one is on its way, and complains when that one takes too long.
    pub(super) fn check(&self, now: Instant) -> Result<(), String> {
        let mut pending = self.shared.pending.lock();
        if let Some(since) = pending.1
            && self.shared.written_mark.load(Ordering::Acquire) < pending.0
        {
            return if now.duration_since(since) >= BLOCKED_AFTER { Err("logging blocked".to_owned()) } else { Ok(()) };
        }
        // With a full queue the mark counts as sent: it is overdue if the queue stays full.
        *pending = (pending.0 + 1, Some(now));
        if !self.queue(Message::Mark(pending.0)) {
            tracing::trace!("the log's queue is full");
        }
        Ok(())
    }
}

/// Lines are written together up to this size.
const BATCH_BYTES: usize = 64 << 10;

/// An output, and what is about to be written to it.
struct Sink {
    output: Box<dyn Write + Send>,
    batch: Vec<u8>,
}

impl Sink {
    fn new(output: impl Write + Send + 'static) -> Self {
        Self { output: Box::new(output), batch: Vec::new() }
    }

    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        // There is nowhere left to report that the log cannot be written.
        let _ = self.output.write_all(&self.batch).and_then(|()| self.output.flush());
        self.batch.clear();
    }
}

/// An output whose lines may be kept back for a while.
struct Kept {
    sink: Sink,
    buffering: Buffering,
    /// When what is kept has to be written.
    due: Option<Instant>,
}

impl Kept {
    fn new(output: impl Write + Send + 'static, buffering: Buffering) -> Self {
        Self { sink: Sink::new(output), buffering, due: None }
    }

    fn write(&mut self) {
        self.sink.write();
        self.due = None;
    }

    /// Writes what may not be kept any longer.
    fn write_due(&mut self, now: Instant) {
        if self.sink.batch.is_empty() {
            return;
        }
        let due = *self.due.get_or_insert_with(|| now + self.buffering.longest);
        if self.sink.batch.len() >= self.buffering.bytes.max(1) || due <= now {
            self.write();
        }
    }
}

/// Where lines go.
struct Sinks {
    error: Sink,
    /// Where lines for information go, if elsewhere.
    info: Option<Kept>,
}

impl Sinks {
    fn put(&mut self, stream: Stream, line: &str) {
        let sink = match &mut self.info {
            Some(info) if stream == Stream::Info => &mut info.sink,
            _ => &mut self.error,
        };
        sink.batch.extend_from_slice(line.as_bytes());
    }

    /// Whether more lines should not be taken before some are written.
    fn is_full(&self) -> bool {
        let of_info = |info: &Kept| info.sink.batch.len() >= info.buffering.bytes.max(BATCH_BYTES);
        self.error.batch.len() >= BATCH_BYTES || self.info.as_ref().is_some_and(of_info)
    }

    /// Writes what is due; how long the rest may wait, if there is any.
    fn write_due(&mut self) -> Option<Duration> {
        self.error.write();
        let info = self.info.as_mut()?;
        let now = Instant::now();
        info.write_due(now);
        info.due.map(|due| due.saturating_duration_since(now))
    }

    fn write(&mut self) {
        self.error.write();
        self.info.iter_mut().for_each(Kept::write);
    }
}

fn write_all(lines: &Receiver<Message>, mut sinks: Sinks, shared: &Shared) {
    let mut wait = None;
    loop {
        let first = match wait {
            None => lines.recv().map_err(RecvTimeoutError::from),
            Some(wait) => lines.recv_timeout(wait),
        };
        let mut next = match first {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        while let Some(message) = next.take() {
            handle(message, &mut sinks, shared);
            if !sinks.is_full() {
                next = lines.try_recv().ok();
            }
        }
        wait = sinks.write_due();
    }
    sinks.write();
}

fn handle(message: Message, sinks: &mut Sinks, shared: &Shared) {
    shared.waiting.fetch_sub(1, Ordering::Relaxed);
    match message {
        Message::Line(stream, line) => sinks.put(stream, &line),
        Message::Flush(done) => {
            sinks.write();
            // Nobody waits any more when this fails.
            let _ = done.try_send(());
        }
        Message::Mark(mark) => {
            sinks.error.write();
            shared.written_mark.store(mark, Ordering::Release);
        }
    }
}
