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
pub use writer::{Buffering, LogWriter, QUEUE_LINES};

use api_machinery::quantity::Quantity;
use feature_gates::{Feature, Gates};

use crate::flags::{Errors, Options};

/// Lines for information may go to stdout.
const ALPHA: Feature = Feature::named("LoggingAlphaOptions");
/// There is JSON.
const BETA: Feature = Feature::named("LoggingBetaOptions");
/// The gates of the log, which every component can switch.
pub const GATES: &[Feature] = &[ALPHA, BETA];

/// The most that is kept back of lines for information, in bytes; upstream's.
const MAX_BUFFER_BYTES: i64 = 2 << 30;

/// The values of the log flags.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Text or JSON.
    pub format: Format,
    /// `-v` and `--vmodule`.
    pub verbosity: Arc<Verbosity>,
    /// Where lines for information go to stdout, how long they may be kept back.
    pub split: Option<Buffering>,
}

impl LogOptions {
    /// Reads the flags, adding what is wrong with them to `errors`.
    pub fn from_options(options: &Options, gates: &Gates, errors: &mut Errors) -> Self {
        let format = match options.string("logging-format") {
            "text" => Format::Text,
            "json" => Format::Json,
            other => {
                errors.push(format!("format: Invalid value: {other:?}: Unsupported log format"));
                Format::Text
            }
        };
        errors.check(
            format == Format::Text || gates.enabled(BETA),
            "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature",
        );
        let vmodule = options.string("vmodule");
        if format == Format::Json && !vmodule.is_empty() {
            errors.push("vmodule: Forbidden: Only supported for text log format");
        }
        let patterns = errors.ok(parse_vmodule(vmodule)).unwrap_or_default();
        let split = [Format::Text, Format::Json].map(|own| Split::of(own, options, gates, errors));
        let split = split.into_iter().find(|split| split.format == format && split.is_asked_for);
        let longest = options.duration("log-flush-frequency");
        let level = i32::try_from(options.int("v")).unwrap_or(0);
        let split = split.map(|split| Buffering { bytes: split.buffer_bytes, longest });
        Self { format, verbosity: Arc::new(Verbosity::new(level, patterns)), split }
    }
}

/// What the flags of a format say of its outputs.
struct Split {
    format: Format,
    is_asked_for: bool,
    buffer_bytes: usize,
}

impl Split {
    /// Reads the flags of a format. They are refused where their gate is off, be the format in use or not.
    fn of(format: Format, options: &Options, gates: &Gates, errors: &mut Errors) -> Self {
        let (name, split, buffer) = match format {
            Format::Text => ("text", "log-text-split-stream", "log-text-info-buffer-size"),
            Format::Json => ("json", "log-json-split-stream", "log-json-info-buffer-size"),
        };
        let text = options.string(buffer);
        let size = Quantity::parse(text)
            .map_err(|error| format!("invalid argument {text:?} for \"--{buffer}\" flag: {error}"));
        let size = errors.ok(size).map_or(0, |size| size.value());
        let is_asked_for = options.bool(split);
        for (field, is_set) in [("splitStream", is_asked_for), ("infoBufferSize", size != 0)] {
            errors.check(
                !is_set || gates.enabled(ALPHA),
                format!("options.{name}.{field}: Forbidden: Feature LoggingAlphaOptions is disabled"),
            );
        }
        let buffer_bytes = usize::try_from(size.clamp(0, MAX_BUFFER_BYTES)).unwrap_or(0);
        Self { format, is_asked_for, buffer_bytes }
    }
}

/// The log of the process.
#[derive(Debug, Clone)]
pub struct Logging {
    verbosity: Arc<Verbosity>,
    writer: LogWriter,
}

impl Logging {
    /// Starts the log on stderr, or on two outputs, and makes it the process's own. Where a log is set up already (a test, a second
    /// component in one process), that one stays.
    ///
    /// # Errors
    /// When the writer's thread cannot start.
    pub fn start(options: &LogOptions, clock: SharedClock) -> std::io::Result<Self> {
        let writer = match options.split {
            None => LogWriter::start(std::io::stderr())?,
            Some(buffering) => LogWriter::start_split(std::io::stderr(), std::io::stdout(), buffering)?,
        };
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
