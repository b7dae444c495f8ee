//! From requests to the file: one writer, which takes along all lines that wait.

use std::sync::Arc;

use base::{SharedClock, TaskGroup};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::log_file::LogFile;
use crate::metrics::AuditMetrics;

/// The backend's name in metrics.
const PLUGIN: &str = "log";
/// Lines that are written at once.
const MAX_LINES: usize = 1000;

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

/// A line on its way; who waits is told whether it was written.
struct Line {
    text: String,
    written: Option<oneshot::Sender<bool>>,
}

/// The way to the file.
#[derive(Clone)]
pub struct Delivery {
    lines: mpsc::Sender<Line>,
    mode: Mode,
    metrics: AuditMetrics,
}

impl Delivery {
    /// Writes to `file` in a task of the group, which ends with the group, once everything is written. At most `room`
    /// lines wait.
    #[must_use]
    pub fn start(
        file: LogFile,
        mode: Mode,
        room: usize,
        metrics: &AuditMetrics,
        clock: &SharedClock,
        tasks: &TaskGroup,
    ) -> Self {
        let (lines, waiting) = mpsc::channel(room.max(1));
        let (clock, token, own) = (Arc::clone(clock), tasks.token(), metrics.clone());
        tasks.spawn("audit-log", async move {
            let mut writer = Writer { file: Arc::new(Mutex::new(file)), waiting, clock, metrics: own };
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = writer.run() => {}
            }
            writer.waiting.close();
            writer.run().await;
        });
        Self { lines, mode, metrics: metrics.clone() }
    }

    /// Whether a request whose coming could not be told is refused.
    pub(crate) fn is_strict(&self) -> bool {
        self.mode == Mode::BlockingStrict
    }

    /// Tells an event; in the modes that block, waits until it is written. Gives whether it was, as far as is known.
    pub(crate) async fn deliver(&self, text: String) -> bool {
        if self.mode == Mode::Batch {
            return self.post(text);
        }
        let (written, outcome) = oneshot::channel();
        if self.lines.send(Line { text, written: Some(written) }).await.is_err() {
            return self.lost();
        }
        outcome.await.unwrap_or(false)
    }

    /// Tells an event without waiting.
    pub(crate) fn post(&self, text: String) -> bool {
        self.lines.try_send(Line { text, written: None }).is_ok() || self.lost()
    }

    fn lost(&self) -> bool {
        self.metrics.errors.with(&[PLUGIN]).inc();
        tracing::error!("Error in audit plugin '{PLUGIN}' affecting 1 audit events: audit buffer queue blocked");
        false
    }
}

struct Writer {
    file: Arc<Mutex<LogFile>>,
    waiting: mpsc::Receiver<Line>,
    clock: SharedClock,
    metrics: AuditMetrics,
}

impl Writer {
    /// Until nobody can send any more, and nothing waits.
    async fn run(&mut self) {
        let mut lines = Vec::new();
        while self.waiting.recv_many(&mut lines, MAX_LINES).await > 0 {
            let text: String = lines.iter().map(|line: &Line| line.text.as_str()).collect();
            let (file, now) = (Arc::clone(&self.file), self.clock.wall());
            let written = tokio::task::spawn_blocking(move || file.lock().append(text.as_bytes(), now)).await;
            let error = match written {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = &error {
                let count = lines.len();
                #[expect(clippy::cast_precision_loss, reason = "at most as many as are written at once")]
                self.metrics.errors.with(&[PLUGIN]).inc_by(count as f64);
                tracing::error!("Error in audit plugin '{PLUGIN}' affecting {count} audit events: {error}");
            }
            for line in lines.drain(..) {
                // Whoever waited may have gone.
                let _: Option<Result<(), bool>> = line.written.map(|told| told.send(error.is_none()));
            }
        }
    }
}
