//! Reading a container's log: from where, which lines, how much, and on as it grows.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use api_machinery::quote::go_quote;
use api_machinery::time::Time;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::log_format::{self, shown_time};
use super::logs::Piece;
use crate::engine::PodEngine;

/// Bytes read at a time, and the longest record; runtimes split lines far below.
const BLOCK: usize = 64 * 1024;
const MAX_LINE: usize = 1 << 20;
/// How often a log that is followed is looked at.
const POLL: Duration = Duration::from_millis(250);
/// How often, in looks, the runtime is asked whether the container still runs.
const ALIVE_EVERY: u32 = 4;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LogOptions {
    pub(super) follow: bool,
    pub(super) timestamps: bool,
    /// Lines before this time are left out.
    pub(super) since: Option<Time>,
    /// Only the last so many lines.
    pub(super) tail: Option<u64>,
    /// Only so many bytes.
    pub(super) limit: Option<u64>,
    /// Only what was written to this stream, `stdout` or `stderr`.
    pub(super) stream: Option<&'static str>,
}

/// Where output goes; a closed channel means that nobody reads any more.
pub(super) type Sink = mpsc::Sender<Piece>;

/// Why a log cannot be read on, as the client is told. What it has not got it may ask for again.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("a line of the log is too long")]
    LongLine,
    #[error("failed to get parse function: unsupported log format: {}", go_quote(.0))]
    Format(String),
    #[error("failed to try resolving symlinks in path {path:?}: {source}")]
    Path { path: PathBuf, source: io::Error },
    #[error("failed to open log file {path:?}: {source}")]
    Open { path: PathBuf, source: io::Error },
}

/// Why reading ended early.
enum End {
    /// The client is gone or has all it wanted.
    Done,
    Failed(LogError),
}

impl<E: Into<LogError>> From<E> for End {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Reads a log into `sink`; `container` is looked at to know when following ends.
pub(super) async fn read(engine: PodEngine, path: PathBuf, container: String, options: LogOptions, sink: Sink) {
    let mut reader = match Reader::open(path, &options) {
        Ok(reader) => reader,
        Err(error) => return drop(sink.send(Err(error)).await),
    };
    let outcome = reader.all(&engine, &container, &options, &sink).await;
    if let Err(End::Failed(error)) = outcome {
        let _ = sink.send(Err(error)).await;
    }
}

struct Reader {
    path: PathBuf,
    file: File,
    /// The file that the name leads to now, for when this one is read to its end.
    next: Option<File>,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
    /// Whether the first line was in the known format.
    known: bool,
    left: Option<u64>,
    /// Whether the next record begins a line.
    at_start: bool,
}

impl Reader {
    fn open(path: PathBuf, options: &LogOptions) -> Result<Self, LogError> {
        let path = path.canonicalize().map_err(|source| LogError::Path { path, source })?;
        let mut file = File::open(&path).map_err(|source| LogError::Open { path: path.clone(), source })?;
        if let Some(tail) = options.tail {
            let start = tail_start(&mut file, tail)?;
            file.seek(SeekFrom::Start(start))?;
        }
        Ok(Self { path, file, next: None, rest: Vec::new(), known: false, left: options.limit, at_start: true })
    }

    async fn all(&mut self, engine: &PodEngine, container: &str, options: &LogOptions, sink: &Sink) -> Result<(), End> {
        loop {
            self.read_to_end(options, sink).await?;
            if !options.follow {
                return self.last_line(options, sink).await;
            }
            // Whoever follows a log that says nothing is to know that it is there.
            sink.send(Ok(Bytes::new())).await.map_err(|_| End::Done)?;
            // Output that came before the container ended is there when it is seen to have ended.
            let alive = self.wait(engine, container, sink).await?;
            if !alive {
                self.read_to_end(options, sink).await?;
                return self.last_line(options, sink).await;
            }
        }
    }

    /// Waits until there is more, or the container has ended.
    async fn wait(&mut self, engine: &PodEngine, container: &str, sink: &Sink) -> Result<bool, End> {
        for look in 0u32.. {
            tokio::select! {
                () = sink.closed() => return Err(End::Done),
                () = tokio::time::sleep(POLL) => {}
            }
            if self.has_more()? || self.is_replaced()? {
                return Ok(true);
            }
            if look % ALIVE_EVERY == ALIVE_EVERY - 1 && !engine.container_running(container).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_more(&mut self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > self.file.stream_position()?)
    }

    /// Follows a rotation: the name leads to another file now.
    fn is_replaced(&mut self) -> io::Result<bool> {
        let Ok(new) = std::fs::metadata(&self.path) else { return Ok(false) };
        let old = self.file.metadata()?;
        if (new.dev(), new.ino()) == (old.dev(), old.ino()) {
            if new.len() < self.file.stream_position()? {
                // Cut in place.
                self.file.seek(SeekFrom::Start(0))?;
                return Ok(true);
            }
            return Ok(false);
        }
        self.next = File::open(&self.path).ok();
        Ok(self.next.is_some())
    }

    async fn read_to_end(&mut self, options: &LogOptions, sink: &Sink) -> Result<(), End> {
        let mut block = vec![0; BLOCK];
        loop {
            let read = self.file.read(&mut block)?;
            if read == 0 {
                let Some(next) = self.next.take() else { return Ok(()) };
                self.file = next;
                continue;
            }
            let mut text = std::mem::take(&mut self.rest);
            text.extend_from_slice(block.get(..read).unwrap_or_default());
            let (mut out, mut lines) = (Vec::new(), text.as_slice());
            while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
                let (line, others) = lines.split_at(end + 1);
                self.take(line, options, &mut out)?;
                lines = others;
            }
            let whole = text.len() - lines.len();
            text.drain(..whole);
            self.rest = text;
            if self.rest.len() > MAX_LINE {
                return Err(LogError::LongLine.into());
            }
            self.send(out, sink).await?;
        }
    }

    /// A last line without a line break.
    async fn last_line(&mut self, options: &LogOptions, sink: &Sink) -> Result<(), End> {
        let line = std::mem::take(&mut self.rest);
        if line.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        self.take(&line, options, &mut out)?;
        self.send(out, sink).await
    }

    fn take(&mut self, line: &[u8], options: &LogOptions, out: &mut Vec<u8>) -> Result<(), End> {
        let Some(record) = log_format::parse(line.strip_suffix(b"\n").unwrap_or(line)) else {
            if self.known {
                // A later record that cannot be read is left out.
                return Ok(());
            }
            return Err(LogError::Format(String::from_utf8_lossy(line).into_owned()).into());
        };
        self.known = true;
        if options.stream.is_some_and(|stream| stream != record.stream) {
            return Ok(());
        }
        if options.since.is_some_and(|since| Time::parse(&record.time).is_ok_and(|time| time < since)) {
            return Ok(());
        }
        if options.timestamps && self.at_start {
            out.extend_from_slice(shown_time(&record.time).as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(&record.text);
        if !record.partial {
            out.push(b'\n');
        }
        self.at_start = !record.partial;
        Ok(())
    }

    async fn send(&mut self, mut out: Vec<u8>, sink: &Sink) -> Result<(), End> {
        if let Some(left) = &mut self.left {
            let room = usize::try_from(*left).unwrap_or(usize::MAX);
            out.truncate(room);
            *left -= out.len() as u64;
        }
        if !out.is_empty() {
            sink.send(Ok(out.into())).await.map_err(|_| End::Done)?;
        }
        if self.left == Some(0) { Err(End::Done) } else { Ok(()) }
    }
}

/// Where the last `lines` lines of a file begin.
fn tail_start(file: &mut File, lines: u64) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if lines == 0 {
        return Ok(size);
    }
    let (mut end, mut found) = (size, 0);
    let mut block = vec![0; BLOCK];
    while end > 0 {
        let length = usize::try_from(end).unwrap_or(BLOCK).min(BLOCK);
        let start = end - length as u64;
        file.seek(SeekFrom::Start(start))?;
        let Some(part) = block.get_mut(..length) else { break };
        file.read_exact(part)?;
        for (index, byte) in part.iter().enumerate().rev() {
            let at = start + index as u64;
            // The break at the very end ends the last line and begins none.
            if *byte == b'\n' && at + 1 != size {
                found += 1;
                if found == lines {
                    return Ok(at + 1);
                }
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(options: &LogOptions, content: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        std::fs::write(&path, content).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (sink, mut source) = mpsc::channel(16);
            let mut reader = Reader::open(path, options).unwrap();
            let outcome = async {
                let read = reader.read_to_end(options, &sink).await;
                let read = match read {
                    Ok(()) => reader.last_line(options, &sink).await,
                    ended => ended,
                };
                drop(sink);
                read
            };
            let received = async {
                let mut text = Vec::new();
                while let Some(Ok(part)) = source.recv().await {
                    text.extend_from_slice(&part);
                }
                String::from_utf8(text).unwrap()
            };
            match tokio::join!(outcome, received) {
                (Err(End::Failed(error)), _) => Err(error.to_string()),
                (_, text) => Ok(text),
            }
        })
    }

    const LOG: &str = "2024-01-01T00:00:01.5Z stdout F one\n2024-01-01T00:00:02Z stderr P tw\n\
                       2024-01-01T00:00:02Z stderr F o\n2024-01-01T00:00:03Z stdout F three\n";

    #[test]
    fn options_are_obeyed() {
        let cases = [
            (LogOptions::default(), "one\ntwo\nthree\n"),
            (LogOptions { tail: Some(1), ..LogOptions::default() }, "three\n"),
            (LogOptions { tail: Some(0), ..LogOptions::default() }, ""),
            (LogOptions { tail: Some(9), ..LogOptions::default() }, "one\ntwo\nthree\n"),
            (LogOptions { limit: Some(5), ..LogOptions::default() }, "one\nt"),
            (LogOptions { stream: Some("stdout"), ..LogOptions::default() }, "one\nthree\n"),
            (LogOptions { stream: Some("stderr"), limit: Some(3), ..LogOptions::default() }, "two"),
            (
                LogOptions { since: Some(Time::parse("2024-01-01T00:00:03Z").unwrap()), ..LogOptions::default() },
                "three\n",
            ),
            (
                LogOptions { timestamps: true, tail: Some(3), ..LogOptions::default() },
                "2024-01-01T00:00:02.000000000Z two\n2024-01-01T00:00:03.000000000Z three\n",
            ),
        ];
        for (options, expected) in cases {
            assert_eq!(lines(&options, LOG).as_deref(), Ok(expected), "{options:?}");
        }
    }

    #[tokio::test]
    async fn a_rotated_file_is_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        std::fs::write(&path, LOG).unwrap();
        let options = LogOptions { tail: Some(0), ..LogOptions::default() };
        let (sink, mut source) = mpsc::channel(16);
        let mut reader = Reader::open(path.clone(), &options).unwrap();
        let late = "2024-01-01T00:00:04Z stdout F late\n";
        std::fs::write(&path, LOG.to_owned() + late).unwrap();
        std::fs::rename(&path, dir.path().join("0.log.1")).unwrap();
        assert!(!reader.is_replaced().unwrap(), "nothing is there under its name yet");
        std::fs::write(&path, "2024-01-01T00:00:05Z stdout F new\n").unwrap();
        assert!(reader.is_replaced().unwrap());
        assert!(reader.read_to_end(&options, &sink).await.is_ok());
        drop(sink);
        let mut text = Vec::new();
        while let Some(Ok(part)) = source.recv().await {
            text.extend_from_slice(&part);
        }
        assert_eq!(String::from_utf8(text).unwrap(), "late\nnew\n");
    }

    const FORMAT: &str = r#"failed to get parse function: unsupported log format: "hello\n""#;

    #[test]
    fn odd_files_are_handled() {
        assert_eq!(lines(&LogOptions::default(), "").as_deref(), Ok(""));
        assert_eq!(lines(&LogOptions::default(), "hello\n"), Err(FORMAT.into()));
        let json = "{\"log\":\"a\\n\",\"stream\":\"stdout\",\"time\":\"2024-01-01T00:00:01Z\"}\n\
                    {\"log\":\"b\",\"stream\":\"stderr\",\"time\":\"2024-01-01T00:00:02Z\"}\n";
        assert_eq!(lines(&LogOptions::default(), json).as_deref(), Ok("a\nb"));
        let broken = "2024-01-01T00:00:01Z stdout F a\ngarbage\n2024-01-01T00:00:02Z stdout F b";
        assert_eq!(lines(&LogOptions::default(), broken).as_deref(), Ok("a\nb\n"));
    }

    #[test]
    fn tails_are_found_in_large_files() {
        let record = format!("2024-01-01T00:00:01Z stdout F {}\n", "x".repeat(1000));
        let content = record.repeat(300) + "2024-01-01T00:00:02Z stdout F end\n";
        assert_eq!(lines(&LogOptions { tail: Some(1), ..LogOptions::default() }, &content).as_deref(), Ok("end\n"));
        let many = lines(&LogOptions { tail: Some(200), ..LogOptions::default() }, &content).unwrap();
        assert_eq!(many.lines().count(), 200);
    }
}
