//! The thread that writes the log.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lines that may wait to be written; about a second of a very chatty component.
pub const QUEUE_LINES: usize = 16_384;
/// How long a flush may take before the log counts as blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(120);
/// How long [`LogWriter::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    Line(String),
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
    /// Counted once everything before it is written.
    Mark(u64),
}

/// The sending end of the log. Clones share it.
#[derive(Debug, Clone)]
pub struct LogWriter {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
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
        let (queue, lines) = sync_channel(QUEUE_LINES);
        let shared = Arc::new(Shared::default());
        let writer = Self { queue, shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&lines, output, &shared))?;
        Ok(writer)
    }

    /// Queues a line, or drops it when the queue is full.
    pub(super) fn send(&self, line: String) {
        if self.queue.try_send(Message::Line(line)).is_err() {
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
        if self.queue.try_send(Message::Flush(done)).is_ok() {
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
        if self.queue.try_send(Message::Mark(pending.0)).is_err() {
            tracing::trace!("the log's queue is full");
        }
        Ok(())
    }
}

fn write_all(lines: &Receiver<Message>, mut output: impl Write, shared: &Shared) {
    let mut batch = Vec::new();
    while let Ok(first) = lines.recv() {
        let mut next = Some(first);
        while let Some(message) = next.take() {
            handle(message, &mut batch, &mut output, shared);
            if batch.len() < BATCH_BYTES {
                next = lines.try_recv().ok();
            }
        }
        write_batch(&mut batch, &mut output);
    }
}

/// Lines are written together up to this size.
const BATCH_BYTES: usize = 64 << 10;

fn handle(message: Message, batch: &mut Vec<u8>, output: &mut impl Write, shared: &Shared) {
    match message {
        Message::Line(line) => batch.extend_from_slice(line.as_bytes()),
        Message::Flush(done) => {
            write_batch(batch, output);
            // Nobody waits any more when this fails.
            let _ = done.try_send(());
        }
        Message::Mark(mark) => {
            write_batch(batch, output);
            shared.written_mark.store(mark, Ordering::Release);
        }
    }
}

fn write_batch(batch: &mut Vec<u8>, output: &mut impl Write) {
    // There is nowhere left to report that the log cannot be written.
    let _ = output.write_all(batch).and_then(|()| output.flush());
    batch.clear();
}
