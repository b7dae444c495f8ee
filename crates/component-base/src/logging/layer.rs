//! From `tracing` to lines.

use std::path::Path;
use std::sync::Arc;

use base::SharedClock;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{self, Fields, Logged};
use super::format::Line;
use super::verbosity::default_verbosity;
use super::{Format, LogWriter, Verbosity};

/// Writes every event that the verbosity lets through, with the fields of the spans around it.
pub struct LogLayer {
    format: Format,
    verbosity: Arc<Verbosity>,
    writer: LogWriter,
    clock: SharedClock,
}

impl LogLayer {
    /// A layer that writes to `writer`.
    #[must_use]
    pub fn new(format: Format, verbosity: Arc<Verbosity>, writer: LogWriter, clock: SharedClock) -> Self {
        Self { format, verbosity, writer, clock }
    }

    /// Says how many lines are missing, before the first line after them.
    fn report_dropped(&self) {
        let dropped = self.writer.take_dropped();
        if dropped > 0 {
            let pair = ("count", Logged::Uint(dropped));
            let line = Line {
                at: self.clock.wall(),
                level: Level::WARN,
                verbosity: 0,
                caller: "layer.rs:1".to_owned(),
                message: "Log lines were dropped because the output is too slow",
                pairs: vec![&pair],
            };
            self.writer.send(self.format.stream(line.level), self.format.render(&line));
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.verbosity.shows(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _cx: Context<'_, S>) -> bool {
        self.verbosity.shows(metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = cx.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let metadata = event.metadata();
        let verbosity = fields::verbosity(event).unwrap_or_else(|| default_verbosity(metadata));
        if !self.verbosity.shows_at(metadata, verbosity) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut inherited: Vec<(&'static str, Logged)> = Vec::new();
        for span in cx.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                inherited.extend(fields.pairs.iter().cloned());
            }
        }
        let pairs = unique(fields.pairs.iter().chain(&inherited));
        let file = Path::new(metadata.file().unwrap_or("unknown")).file_name().unwrap_or_default().to_string_lossy();
        let line = Line {
            at: self.clock.wall(),
            level: *metadata.level(),
            verbosity,
            caller: format!("{file}:{}", metadata.line().unwrap_or(1)),
            message: &fields.message,
            pairs,
        };
        self.report_dropped();
        self.writer.send(self.format.stream(line.level), self.format.render(&line));
    }
}

/// The first pair of each key: an event's own before its spans', inner spans before outer ones.
fn unique<'a>(pairs: impl Iterator<Item = &'a (&'static str, Logged)>) -> Vec<&'a (&'static str, Logged)> {
    let mut kept: Vec<&(&'static str, Logged)> = Vec::new();
    for pair in pairs {
        if !kept.iter().any(|(key, _)| *key == pair.0) {
            kept.push(pair);
        }
    }
    kept
}
