//! `GoDuration`: the duration of meta/v1, flags and configuration files, read and written as Go's `time.Duration`.

use std::fmt;
use std::time::Duration;

use crate::quote::go_quote;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A signed number of nanoseconds, written as `1h0m0s` or `300ms`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

impl GoDuration {
    /// The duration of that many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// The duration of that many seconds, at most the largest representable one.
    pub const fn from_secs(seconds: i64) -> Self {
        Self { nanos: seconds.saturating_mul(1_000_000_000) }
    }

    /// The length in nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// Whether it is the empty duration.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The length as an unsigned duration; zero when it is negative.
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }

    /// Reads a sequence of decimal numbers with units: `300ms`, `-1.5h`, `2h45m`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let (negative, digits) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        if digits == "0" {
            return Ok(Self::default());
        }
        if digits.is_empty() {
            return Err(invalid());
        }
        let mut rest = digits;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (nanos, after) = parse_part(text, rest)?;
            total = total.checked_add(nanos).filter(|&sum| sum <= 1 << 63).ok_or_else(invalid)?;
            rest = after;
        }
        let magnitude = i128::from(total);
        let signed = if negative { -magnitude } else { magnitude };
        i64::try_from(signed).map(Self::from_nanos).map_err(|_| invalid())
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self { nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
    }
}

impl std::str::FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        Self::parse(text)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_decimal(f, nanos, 1_000, "µs"),
            1_000_000..NANOS_PER_SECOND => write_decimal(f, nanos, 1_000_000, "ms"),
            _ => write_clock(f, nanos),
        }
    }
}

impl fmt::Debug for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a duration, in the words of Go's `time.ParseDuration`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a number where one was expected, or out of range.
    #[error("time: invalid duration {}", go_quote(.0))]
    Invalid(String),
    /// A number stands alone.
    #[error("time: missing unit in duration {}", go_quote(.0))]
    MissingUnit(String),
    /// A unit other than `ns us ms s m h`.
    #[error("time: unknown unit {} in duration {}", go_quote(unit), go_quote(text))]
    UnknownUnit {
        /// The unit as given.
        unit: String,
        /// The whole input.
        text: String,
    },
}

/// One number with its unit from the front of `rest`: its nanoseconds and what follows.
fn parse_part<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (whole, after) = split_where(rest, |c| !c.is_ascii_digit());
    let (fraction, after) = match after.strip_prefix('.') {
        Some(after) => split_where(after, |c| !c.is_ascii_digit()),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let (unit, after) = split_where(after, |c| c == '.' || c.is_ascii_digit());
    if unit.is_empty() {
        return Err(DurationError::MissingUnit(text.to_owned()));
    }
    let scale =
        unit_nanos(unit).ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    let nanos = whole.checked_mul(scale).filter(|&nanos| nanos <= 1 << 63).ok_or_else(invalid)?;
    Ok((nanos.checked_add(fraction_nanos(fraction, scale)).ok_or_else(invalid)?, after))
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    match unit {
        "ns" => Some(1),
        "us" | "µs" | "μs" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(NANOS_PER_SECOND),
        "m" => Some(60 * NANOS_PER_SECOND),
        "h" => Some(3600 * NANOS_PER_SECOND),
        _ => None,
    }
}

/// Nanoseconds of `0.{digits}` units, rounded down; more than 18 digits cannot matter.
fn fraction_nanos(digits: &str, scale: u64) -> u64 {
    let (mut numerator, mut denominator) = (0_u128, 1_u128);
    for byte in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(byte - b'0');
        denominator *= 10;
    }
    u64::try_from(numerator * u128::from(scale) / denominator).unwrap_or(u64::MAX)
}

fn write_clock(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    let minutes = nanos / (60 * NANOS_PER_SECOND);
    if minutes >= 60 {
        write!(f, "{}h", minutes / 60)?;
    }
    if minutes > 0 {
        write!(f, "{}m", minutes % 60)?;
    }
    write_decimal(f, nanos % (60 * NANOS_PER_SECOND), NANOS_PER_SECOND, "s")
}

/// `value / unit` with as many decimals as needed.
fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64, suffix: &str) -> fmt::Result {
    write!(f, "{}", value / unit)?;
    let mut fraction = value % unit;
    if fraction > 0 {
        let mut width = unit.ilog10() as usize;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")?;
    }
    f.write_str(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_go_text() {
        let cases = [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("+5s", 5_000_000_000, "5s"),
            ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
            ("1h", 3_600_000_000_000, "1h0m0s"),
            ("90s", 90_000_000_000, "1m30s"),
            ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
            ("300ms", 300_000_000, "300ms"),
            ("1500us", 1_500_000, "1.5ms"),
            ("1.5µs", 1_500, "1.5µs"),
            ("7ns", 7, "7ns"),
            (".5s", 500_000_000, "500ms"),
            ("5.s", 5_000_000_000, "5s"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (text, nanos, printed) in cases {
            let duration = GoDuration::parse(text).unwrap();
            assert_eq!(duration.nanos(), nanos, "{text}");
            assert_eq!(duration.to_string(), printed);
        }
    }

    #[test]
    fn errors_read_as_in_go() {
        let cases = [
            ("", r#"time: invalid duration """#),
            ("x", r#"time: invalid duration "x""#),
            ("-", r#"time: invalid duration "-""#),
            (".s", r#"time: invalid duration ".s""#),
            ("3", r#"time: missing unit in duration "3""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999999999999h", r#"time: invalid duration "99999999999999999999h""#),
        ];
        for (text, expected) in cases {
            assert_eq!(GoDuration::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn converts_to_unsigned() {
        assert_eq!(GoDuration::from_secs(-3).to_std(), Duration::ZERO);
        assert_eq!(GoDuration::from(Duration::from_secs(2)), GoDuration::from_secs(2));
        assert_eq!(GoDuration::from(Duration::MAX).nanos(), i64::MAX);
    }
}
