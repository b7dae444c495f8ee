//! The fields of events and spans.

use std::error::Error;
use std::fmt;

use tracing::Event;
use tracing::field::{Field, Visit};

/// A value that was logged.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Logged {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
}

/// The message and the other fields of an event, or the fields of a span.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) pairs: Vec<(&'static str, Logged)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Logged) {
        // Upstream's key for errors is `err`.
        let key = if field.name() == "error" { "err" } else { field.name() };
        match (key, &value) {
            ("message", Logged::Text(text)) => self.message.clone_from(text),
            (super::verbosity::FIELD, _) => {}
            _ => self.pairs.push((key, value)),
        }
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Logged::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Logged::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Logged::Uint(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Logged::Float(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Logged::Text(value.to_owned()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, Logged::Text(value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, Logged::Text(format!("{value:?}")));
    }
}

/// How verbose an event says it is, if it does. No other field is looked at: most events with a level are not shown.
pub(super) fn verbosity(event: &Event<'_>) -> Option<i32> {
    #[derive(Default)]
    struct Level(Option<i32>);
    impl Visit for Level {
        fn record_i64(&mut self, field: &Field, value: i64) {
            if field.name() == super::verbosity::FIELD {
                self.0 = i32::try_from(value).ok();
            }
        }
        fn record_u64(&mut self, field: &Field, value: u64) {
            if field.name() == super::verbosity::FIELD {
                self.0 = i32::try_from(value).ok();
            }
        }
        fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
    }
    let mut level = Level::default();
    event.record(&mut level);
    level.0
}
