//! The log: `tracing` events in klog's text or JSON form, filtered by `-v` and `--vmodule`.
//!
//! Lines go through a bounded queue to a thread of their own, so that a blocked stderr never blocks a request; when the
//! queue is full, lines are dropped and counted. Times are UTC.
//!
//! Levels: ERROR, WARN and INFO are always shown (`-v=0`), DEBUG from `-v=4`, TRACE from `-v=6`; libraries below us four
//! steps later. A field `v` on an event says otherwise: `info!(v = 2, "...")` needs `-v=2`.

mod fields;
mod format;
mod layer;
mod redacted;
#[cfg(test)]
mod tests;
mod verbosity;
mod writer;

use std::sync::Arc;

use base::SharedClock;
use tracing_subscriber::layer::SubscriberExt as _;

pub use format::Format;
pub use layer::LogLayer;
pub use redacted::Redacted;
pub use verbosity::{Verbosity, parse_vmodule};
pub use writer::{LogWriter, QUEUE_LINES};

use crate::flags::{Errors, Options};

/// The values of the log flags.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Text or JSON.
    pub format: Format,
    /// `-v` and `--vmodule`.
    pub verbosity: Arc<Verbosity>,
}

impl LogOptions {
    /// Reads the flags, adding what is wrong with them to `errors`.
    pub fn from_options(options: &Options, errors: &mut Errors) -> Self {
        let format = match options.string("logging-format") {
            "text" => Format::Text,
            "json" => Format::Json,
            other => {
                errors.push(format!("format: Invalid value: {other:?}: Unsupported log format"));
                Format::Text
            }
        };
        let vmodule = options.string("vmodule");
        if format == Format::Json && !vmodule.is_empty() {
            errors.push("vmodule: Forbidden: Only supported for text log format");
        }
        let patterns = errors.ok(parse_vmodule(vmodule)).unwrap_or_default();
        refuse_alpha(options, errors);
        let level = i32::try_from(options.int("v")).unwrap_or(0);
        Self { format, verbosity: Arc::new(Verbosity::new(level, patterns)) }
    }
}

/// Split streams need a gate that is off by default and that nothing here reads.
fn refuse_alpha(options: &Options, errors: &mut Errors) {
    for (flag, field) in [("log-text-split-stream", "text.splitStream"), ("log-json-split-stream", "json.splitStream")]
    {
        errors
            .check(!options.bool(flag), format!("options.{field}: Forbidden: Feature LoggingAlphaOptions is disabled"));
    }
    let sizes =
        [("log-text-info-buffer-size", "text.infoBufferSize"), ("log-json-info-buffer-size", "json.infoBufferSize")];
    for (flag, field) in sizes {
        errors.check(
            options.string(flag).trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0",
            format!("options.{field}: Forbidden: Feature LoggingAlphaOptions is disabled"),
        );
    }
}

/// The log of the process.
#[derive(Debug, Clone)]
pub struct Logging {
    verbosity: Arc<Verbosity>,
    writer: LogWriter,
}

impl Logging {
    /// Starts the log on stderr and makes it the process's own. Where a log is set up already (a test, a second
    /// component in one process), that one stays.
    ///
    /// # Errors
    /// When the writer's thread cannot start.
    pub fn start(options: &LogOptions, clock: SharedClock) -> std::io::Result<Self> {
        let writer = LogWriter::start(std::io::stderr())?;
        let layer = LogLayer::new(options.format, Arc::clone(&options.verbosity), writer.clone(), clock);
        let subscriber = tracing_subscriber::registry().with(layer);
        let _ = tracing::subscriber::set_global_default(subscriber);
        Ok(Self { verbosity: Arc::clone(&options.verbosity), writer })
    }

    /// Changes `-v` while the process runs (`/debug/flags/v`).
    pub fn set_verbosity(&self, level: i32) {
        self.verbosity.set(level);
    }

    /// The health check named `log`.
    ///
    /// # Errors
    /// When no line could be written for two minutes.
    pub fn check(&self) -> Result<(), String> {
        self.writer.check(tokio::time::Instant::now())
    }

    /// How many lines were dropped so far because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    /// Waits until everything logged so far is written, for a second at most.
    pub fn flush(&self) {
        self.writer.flush();
    }
}
