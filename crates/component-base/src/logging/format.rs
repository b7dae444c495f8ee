//! One line of the log, in klog's text or JSON form.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tracing::Level;

use super::fields::Logged;
use super::writer::Stream;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `I0102 15:04:05.000000       1 file.rs:12] "message" key="value"`.
    Text,
    /// `{"ts":1580306777000.047,"caller":"file.rs:12","msg":"message","v":0,"key":"value"}`.
    Json,
}

/// What a line says.
pub(super) struct Line<'a> {
    pub(super) at: SystemTime,
    pub(super) level: Level,
    pub(super) verbosity: i32,
    /// `file.rs:12`.
    pub(super) caller: String,
    pub(super) message: &'a str,
    pub(super) pairs: Vec<&'a (&'static str, Logged)>,
}

impl Format {
    /// Which output lines of this level go to, where there are two. JSON does not tell warnings apart, as upstream's does not.
    pub(super) fn stream(self, level: Level) -> Stream {
        match (self, level) {
            (_, Level::ERROR) | (Self::Text, Level::WARN) => Stream::Error,
            _ => Stream::Info,
        }
    }

    /// The line with its end.
    pub(super) fn render(self, line: &Line<'_>) -> String {
        match self {
            Self::Text => text(line),
            Self::Json => json(line),
        }
    }
}

fn text(line: &Line<'_>) -> String {
    let severity = match line.level {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let since = line.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (month, day) = month_and_day(days);
    let mut out = format!(
        "{severity}{month:02}{day:02} {:02}:{:02}:{:02}.{:06} {:7} {}] {}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros(),
        std::process::id(),
        line.caller,
        quoted(line.message),
    );
    for (key, value) in &line.pairs {
        let _ = match value {
            Logged::Bool(value) => write!(out, " {key}={value}"),
            Logged::Int(value) => write!(out, " {key}={value}"),
            Logged::Uint(value) => write!(out, " {key}={value}"),
            Logged::Float(value) => write!(out, " {key}={value}"),
            Logged::Text(text) if text.contains('\n') => {
                let lines: String = text.lines().map(|line| format!("\t{line}\n")).collect();
                write!(out, " {key}=<\n{lines} >")
            }
            Logged::Text(text) => write!(out, " {key}={}", quoted(text)),
        };
    }
    out.push('\n');
    out
}

fn json(line: &Line<'_>) -> String {
    let since = line.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut out = format!(
        "{{\"ts\":{}.{:03},\"caller\":{},\"msg\":{}",
        since.as_millis(),
        since.subsec_micros() % 1000,
        Value::from(line.caller.as_str()),
        Value::from(line.message),
    );
    // Upstream's errors carry no verbosity.
    if line.level != Level::ERROR {
        let _ = write!(out, ",\"v\":{}", line.verbosity);
    }
    for (key, value) in &line.pairs {
        let value = match value {
            Logged::Bool(value) => Value::from(*value),
            Logged::Int(value) => Value::from(*value),
            Logged::Uint(value) => Value::from(*value),
            Logged::Float(value) => Value::from(*value),
            Logged::Text(text) => Value::from(text.as_str()),
        };
        let _ = write!(out, ",{}:{value}", Value::from(*key));
    }
    out.push_str("}\n");
    out
}

/// Go's `strconv.Quote`.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 || control == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(control));
            }
            // Direction marks and the like could forge what a reader sees.
            hidden if hidden.is_control() || ('\u{200b}'..='\u{202e}').contains(&hidden) => {
                let _ = write!(out, "\\u{:04x}", u32::from(hidden));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// Month and day of a day counted from 1970-01-01, by the usual arithmetic on years that start in March.
fn month_and_day(days: u64) -> (u64, u64) {
    let days = days + 719_468;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_fall_on_the_right_dates() {
        let cases = [(0, (1, 1)), (58, (2, 28)), (59, (3, 1)), (789, (2, 29)), (19_723, (1, 1)), (20_453, (12, 31))];
        for (days, expected) in cases {
            assert_eq!(month_and_day(days), expected, "{days}");
        }
    }

    #[test]
    fn text_cannot_forge_lines() {
        assert_eq!(quoted("a\"b\\\n\u{1b}\u{202e}é"), "\"a\\\"b\\\\\\n\\x1b\\u202eé\"");
    }
}
