//! Events as lines of a file.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use parking_lot::Mutex;

use crate::finished::{Finished, Format};
use crate::log_file::LogFile;
use crate::sink::{Sink, SinkError};

/// A file that is written on the pool for blocking work, by one writer at a time.
pub struct LogSink {
    file: Arc<Mutex<LogFile>>,
    format: Format,
    clock: SharedClock,
    tasks: TaskGroup,
}

impl LogSink {
    /// Writes to `file`; older files are tidied up in tasks of the group.
    #[must_use]
    pub fn new(file: LogFile, format: Format, clock: SharedClock, tasks: TaskGroup) -> Self {
        Self { file: Arc::new(Mutex::new(file)), format, clock, tasks }
    }

    /// Nobody waits for what is only tidying up.
    fn tidy_up(&self) {
        let (older, now) = (self.file.lock().older(), self.clock.wall());
        self.tasks.spawn("audit-log-tidy", async move {
            let tidied = tokio::task::spawn_blocking(move || older.tidy(now)).await;
            if let Err(error) = tidied.map_err(io::Error::other).flatten() {
                tracing::warn!(%error, "Older audit logs could not be tidied up");
            }
        });
    }
}

#[async_trait]
impl Sink for LogSink {
    fn name(&self) -> &'static str {
        "log"
    }

    fn concurrency(&self) -> u32 {
        1
    }

    fn keeps_batches(&self) -> bool {
        false
    }

    async fn send(&self, events: &[Arc<Finished>]) -> Result<(), SinkError> {
        let mut text = String::new();
        events.iter().for_each(|event| event.write_line(self.format, &mut text));
        let (file, now) = (Arc::clone(&self.file), self.clock.wall());
        let written = tokio::task::spawn_blocking(move || file.lock().append(text.as_bytes(), now)).await;
        if written.map_err(io::Error::other)?? {
            self.tidy_up();
        }
        Ok(())
    }
}
