//! Events as lines of a file.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use parking_lot::Mutex;

use crate::finished::{Finished, Format};
use crate::log_file::LogFile;
use crate::sink::{Sink, SinkError};

/// A file that took longer than this for its last lines is not written in place.
const QUICK: Duration = Duration::from_millis(2);

/// A file that is written by one writer at a time: in place while it is quick, as the way to another thread and back costs
/// more than the write, and else on the pool for blocking work. A file that hangs holds one worker at most.
pub struct LogSink {
    file: Arc<Mutex<Paced>>,
    format: Format,
    clock: SharedClock,
    tasks: TaskGroup,
}

impl LogSink {
    /// Writes to `file`; older files are tidied up in tasks of the group.
    #[must_use]
    pub fn new(file: LogFile, format: Format, clock: SharedClock, tasks: TaskGroup) -> Self {
        Self { file: Arc::new(Mutex::new(Paced { file, is_quick: false })), format, clock, tasks }
    }

    /// Writes at once; nothing where this is for the pool to do.
    fn append_in_place(&self, lines: &[u8]) -> Option<io::Result<()>> {
        let others_go_on = tokio::runtime::Handle::current().metrics().num_workers() > 1;
        let mut paced = self.file.lock();
        if !others_go_on || !paced.is_quick {
            return None;
        }
        paced.timed(&self.clock, |file| file.append_in_place(lines))
    }

    /// Nobody waits for what is only tidying up.
    fn tidy_up(&self) {
        let (older, now) = (self.file.lock().file.older(), self.clock.wall());
        self.tasks.spawn("audit-log-tidy", async move {
            let tidied = tokio::task::spawn_blocking(move || older.tidy(now)).await;
            if let Err(error) = tidied.map_err(io::Error::other).flatten() {
                tracing::warn!(%error, "Older audit logs could not be tidied up");
            }
        });
    }
}

/// A file, and whether it was quick the last time.
struct Paced {
    file: LogFile,
    is_quick: bool,
}

impl Paced {
    fn timed<T>(&mut self, clock: &SharedClock, write: impl FnOnce(&mut LogFile) -> T) -> T {
        let began = clock.monotonic();
        let outcome = write(&mut self.file);
        self.is_quick = clock.monotonic().saturating_duration_since(began) <= QUICK;
        outcome
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
        if let Some(written) = self.append_in_place(text.as_bytes()) {
            return Ok(written?);
        }
        let (paced, clock) = (Arc::clone(&self.file), Arc::clone(&self.clock));
        let append = move || paced.lock().timed(&clock, |file| file.append(text.as_bytes(), clock.wall()));
        let written = tokio::task::spawn_blocking(append).await;
        if written.map_err(io::Error::other)?? {
            self.tidy_up();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use api_types::audit_v1::Event;
    use base::{Clock, TokioClock};

    use super::*;
    use crate::older_files::Rotation;

    fn lines(sink: &LogSink) -> Option<io::Result<()>> {
        sink.append_in_place(b"x\n")
    }

    async fn sink_after_one(path: &std::path::Path) -> LogSink {
        let file = LogFile::new(path, Rotation::default());
        let sink = LogSink::new(file, Format::Json, TokioClock::shared(), TaskGroup::new("test"));
        assert!(lines(&sink).is_none(), "the pool opens it");
        sink.send(&[Arc::new(Finished::new(Event::default()))]).await.expect("it is written");
        sink
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_quick_file_is_written_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        let sink = sink_after_one(&path).await;
        sink.file.lock().is_quick = true;
        lines(&sink).expect("others go on").expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("the file").lines().count(), 2);
        sink.file.lock().is_quick = false;
        assert!(lines(&sink).is_none(), "it was slow");
    }

    #[tokio::test]
    async fn the_only_worker_writes_nothing_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = sink_after_one(&folder.path().join("audit.log")).await;
        sink.file.lock().is_quick = true;
        assert!(lines(&sink).is_none());
    }

    /// Each look at it is later by so much.
    struct Steps(Mutex<(tokio::time::Instant, Duration)>);

    impl Clock for Steps {
        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> tokio::time::Instant {
            let (now, step) = &mut *self.0.lock();
            *now += *step;
            *now
        }
    }

    #[test]
    fn the_last_write_tells_how_quick_a_file_is() {
        let steps = Arc::new(Steps(Mutex::new((tokio::time::Instant::now(), Duration::ZERO))));
        let clock: SharedClock = Arc::clone(&steps) as SharedClock;
        let mut paced = Paced { file: LogFile::new("x".as_ref(), Rotation::default()), is_quick: false };
        for (taken, expected) in [(QUICK, true), (QUICK * 2, false), (Duration::ZERO, true)] {
            steps.0.lock().1 = taken;
            paced.timed(&clock, |_| ());
            assert_eq!(paced.is_quick, expected, "{taken:?}");
        }
    }
}
