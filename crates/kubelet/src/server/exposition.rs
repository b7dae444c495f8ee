//! Prometheus' text form of what is read at the moment when somebody asks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use component_base::serving::{Response, text};
use http::{HeaderValue, StatusCode, header};

/// Labels in braces, and a value.
pub(super) type Sample = (String, String);

/// What the values of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

/// When values are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Samples carry the time at which they were read.
    Reading,
    /// They are as good whenever they are looked at.
    Any,
}

/// A family.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) at: At,
    pub(super) help: &'static str,
}

/// A counter with the time of its reading.
pub(super) const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, at: At::Reading, help }
}

/// A gauge with the time of its reading.
pub(super) const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, at: At::Reading, help }
}

/// A gauge of what does not change from one moment to the next.
pub(super) const fn fact(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, at: At::Any, help }
}

/// Samples of known families.
pub(super) struct Exposition {
    known: &'static [Family],
    samples: BTreeMap<&'static str, Vec<Sample>>,
}

impl Exposition {
    pub(super) fn new(known: &'static [Family]) -> Self {
        Self { known, samples: BTreeMap::new() }
    }

    pub(super) fn put(&mut self, name: &'static str, labels: &str, value: impl ToString) {
        debug_assert!(self.known.iter().any(|family| family.name == name), "{name} is not described");
        self.samples.entry(name).or_default().push((labels.to_owned(), value.to_string()));
    }

    /// The same, unless there is a sample with these labels already.
    pub(super) fn put_new(&mut self, name: &'static str, labels: &str, value: impl ToString) {
        if !self.of(name).iter().any(|(known, _)| known == labels) {
            self.put(name, labels, value);
        }
    }

    pub(super) fn of(&self, name: &str) -> &[Sample] {
        self.samples.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// All samples by family, in the order of their names.
    fn text(&self, now: SystemTime) -> String {
        let time_ms = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut out = String::new();
        for (name, samples) in &self.samples {
            let Some(family) = self.known.iter().find(|family| family.name == *name) else { continue };
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
            for (labels, value) in samples {
                let _ = match family.at {
                    At::Reading => writeln!(out, "{name}{labels} {value} {time_ms}"),
                    At::Any => writeln!(out, "{name}{labels} {value}"),
                };
            }
        }
        out
    }

    /// The answer, with more families as text.
    pub(super) fn answer(&self, now: SystemTime, more: &str) -> Response {
        let mut response = text(StatusCode::OK, self.text(now) + more);
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

pub(super) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KNOWN: [Family; 2] = [counter("b_total", "How often."), fact("a", "What it is.")];

    #[test]
    fn families_are_described_and_readings_have_their_time() {
        let mut out = Exposition::new(&KNOWN);
        out.put("b_total", "{x=\"1\"}", 2);
        out.put_new("b_total", "{x=\"1\"}", 3);
        out.put_new("b_total", "{x=\"2\"}", seconds(1_500_000_000));
        out.put("a", "", 1);
        let expected = "# HELP a What it is.\n# TYPE a gauge\na 1\n# HELP b_total How often.\n# TYPE b_total counter\n\
                        b_total{x=\"1\"} 2 5000\nb_total{x=\"2\"} 1.500000000 5000\n";
        assert_eq!(out.text(SystemTime::UNIX_EPOCH + Duration::from_secs(5)), expected);
    }
}
