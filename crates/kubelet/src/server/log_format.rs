//! Lines of container logs, in the format of the runtime interface or in Docker's.

use std::borrow::Cow;

use api_machinery::time::Time;
use serde_json::Value;

/// One line, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The time as it is written.
    pub(super) time: Cow<'a, str>,
    /// `stdout` or `stderr`.
    pub(super) stream: Cow<'a, str>,
    /// Whether the line goes on in the next record.
    pub(super) partial: bool,
    /// What was written, without a line break.
    pub(super) text: Cow<'a, [u8]>,
}

/// Reads a line without its line break; nothing if it is in neither format.
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    if line.starts_with(b"{") { of_docker(line) } else { of_runtime(line) }
}

/// `{"log":"content\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}`, without the line break where a line goes on.
fn of_docker(line: &[u8]) -> Option<Line<'static>> {
    let fields: Value = serde_json::from_slice(line).ok()?;
    let field = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
    let (mut log, stream, time) = (field("log")?, field("stream")?, field("time")?);
    Time::parse(&time).ok()?;
    let partial = !log.ends_with('\n');
    if !partial {
        log.pop();
    }
    Some(Line { time: time.into(), stream: stream.into(), partial, text: log.into_bytes().into() })
}

/// `2016-10-06T00:17:09.669794202Z stdout P log content`
fn of_runtime(line: &[u8]) -> Option<Line<'_>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let (time, stream, tags) = (word()?, word()?, word()?);
    if Time::parse(time).is_err() || !matches!(stream, "stdout" | "stderr") {
        return None;
    }
    let partial = match tags.split(':').next()? {
        "P" => true,
        "F" => false,
        _ => return None,
    };
    Some(Line { time: time.into(), stream: stream.into(), partial, text: parts.next().unwrap_or_default().into() })
}

/// A time with exactly nine digits of a fraction, as clients are shown it.
pub(super) fn shown_time(time: &str) -> String {
    let Some((whole, rest)) = time.split_once('.') else {
        let split = time.find(['Z', '+']).unwrap_or(time.len());
        let (whole, zone) = time.split_at(split);
        return format!("{whole}.000000000{zone}");
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).take(9).collect();
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{whole}.{digits:0<9}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = parse(b"2016-10-06T00:17:09.669794202Z stdout P log  content").unwrap();
        assert_eq!((&*line.stream, line.partial, &*line.text), ("stdout", true, &b"log  content"[..]));
        let empty = parse(b"2016-10-06T00:17:09.669794202Z stderr F ").unwrap();
        assert_eq!((&*empty.stream, empty.partial, empty.text.len()), ("stderr", false, 0));
        for bad in ["", "x", "2016-10-06T00:17:09Z stdout", "2016-10-06T00:17:09Z other F x", "now stdout F x", "{}"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn times_have_nine_digits() {
        let cases = [
            ("2016-10-06T00:17:09.6Z", "2016-10-06T00:17:09.600000000Z"),
            ("2016-10-06T00:17:09Z", "2016-10-06T00:17:09.000000000Z"),
            ("2016-10-06T00:17:09.123456789+01:00", "2016-10-06T00:17:09.123456789+01:00"),
        ];
        for (time, expected) in cases {
            assert_eq!(shown_time(time), expected);
        }
    }
}
