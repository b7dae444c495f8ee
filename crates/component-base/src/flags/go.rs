//! Values as Go's standard library reads and prints them.

use std::time::Duration;

use super::value_error::{NumberFault, ValueError};

const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Go's `strconv.ParseBool`.
///
/// # Errors
/// With Go's text for anything but its twelve spellings.
pub fn parse_bool(text: &str) -> Result<bool, ValueError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(ValueError::number("ParseBool", text, NumberFault::Syntax)),
    }
}

/// Go's `time.ParseDuration`, in nanoseconds: `1h30m`, `-1.5s`, `0`.
///
/// # Errors
/// With Go's text for anything else, and where the value does not fit.
pub fn parse_duration(text: &str) -> Result<i64, ValueError> {
    let invalid = || ValueError::Duration(text.to_owned());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        if unit.is_empty() {
            return Err(ValueError::MissingUnit(text.to_owned()));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let unknown = || ValueError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() };
        let (_, scale) = known.ok_or_else(unknown)?;
        total += number * scale;
        rest = next;
    }
    let signed = if negative { -total } else { total };
    // i64::MAX as f64 rounds up to 2^63, which does not fit any more.
    if signed.abs() >= 9.223_372_036_854_775e18 {
        return Err(invalid());
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked above")]
    Ok(signed.round() as i64)
}

/// Go's `Duration.String`: `1h0m0s`, `1.5s`, `100ms`, `0s`.
#[must_use]
pub fn format_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, scale) = match total {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", fraction(total, scale));
    }
    let duration = Duration::from_nanos(total);
    let (hours, minutes) = (duration.as_secs() / 3600, duration.as_secs() / 60 % 60);
    let seconds = fraction(total % 60_000_000_000, 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// `value / scale` with as many decimals as needed; `scale` is a power of ten.
fn fraction(value: u64, scale: u64) -> String {
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// Go's `strconv.ParseInt` with base 0 (`0x`, `0o`, `0b`, leading `0`, `_` between digits) and a bit size.
pub(super) fn parse_int(text: &str, bits: u32) -> Result<i64, ValueError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let failed = |fault| ValueError::number("ParseInt", text, fault);
    let magnitude = magnitude(digits).map_err(failed)?;
    let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    let limit = 1_i128 << (bits - 1);
    if value < -limit || value >= limit {
        return Err(failed(NumberFault::Range));
    }
    i64::try_from(value).map_err(|_| failed(NumberFault::Range))
}

/// Go's `strconv.ParseUint` with base 0 and 64 bits.
pub(super) fn parse_uint(text: &str) -> Result<u64, ValueError> {
    magnitude(text).map_err(|fault| ValueError::number("ParseUint", text, fault))
}

fn magnitude(text: &str) -> Result<u64, NumberFault> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_str() {
        "0" => (10, "0"),
        hex if hex.starts_with("0x") => (16, hex.trim_start_matches("0x")),
        binary if binary.starts_with("0b") => (2, binary.trim_start_matches("0b")),
        octal if octal.starts_with("0o") => (8, octal.trim_start_matches("0o")),
        octal if octal.starts_with('0') => (8, octal.trim_start_matches('0')),
        decimal => (10, decimal),
    };
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(NumberFault::Syntax);
    }
    u64::from_str_radix(&digits, radix).map_err(|_| NumberFault::Range)
}

/// One record of Go's `encoding/csv`: fields may be quoted, `""` inside quotes is a quote.
pub(super) fn parse_csv(text: &str) -> Result<Vec<String>, ValueError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = csv_field(rest)?;
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Ok(fields),
        }
    }
}

/// The first field and, when a comma follows, what comes after it.
fn csv_field(text: &str) -> Result<(String, Option<&str>), ValueError> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, after) = text.split_once(',').map_or((text, None), |(field, after)| (field, Some(after)));
        if let Some(at) = field.find('"') {
            return Err(ValueError::BareQuote(at + 1));
        }
        return Ok((field.to_owned(), after));
    };
    let mut field = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"').ok_or(ValueError::OpenQuote)?;
        field.push_str(part);
        if after.is_empty() {
            return Ok((field, None));
        }
        if let Some(next) = after.strip_prefix(',') {
            return Ok((field, Some(next)));
        }
        rest = after.strip_prefix('"').ok_or(ValueError::OpenQuote)?;
        field.push('"');
    }
}
