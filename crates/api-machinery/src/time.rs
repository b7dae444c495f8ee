//! `Time` (second precision) and `MicroTime` of meta/v1, and the strict RFC 3339 reader behind them.
//!
//! Both count from the year 1, as Go does, so that the zero value is "unset" and the text `0001-01-01T00:00:00Z`
//! reads as unset too. A fraction is dropped on reading: nothing that leaves the process ever shows it, and equality
//! then means the same before and after a trip through the store.
//! Deliberately not here: reading a clock, time zones.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod duration;

pub use duration::{DurationError, GoDuration};

/// Seconds from 0001-01-01T00:00:00Z to the Unix epoch.
const UNIX_OFFSET_SECONDS: i64 = 62_135_596_800;
const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = crate::meta::constants::RFC3339_MICRO;

/// An instant with second precision; the default value means "not set".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 0001-01-01T00:00:00Z.
    seconds: i64,
}

/// An instant with microsecond precision; the default value means "not set".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime {
    /// Microseconds since 0001-01-01T00:00:00Z.
    micros: i64,
}

impl Time {
    /// The instant `seconds` after the Unix epoch.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self { seconds: seconds.saturating_add(UNIX_OFFSET_SECONDS) }
    }

    /// Seconds since the Unix epoch; `None` when no time is set.
    pub const fn unix_seconds(self) -> Option<i64> {
        if self.is_zero() { None } else { Some(self.seconds.saturating_sub(UNIX_OFFSET_SECONDS)) }
    }

    /// Whether no time is set.
    pub const fn is_zero(self) -> bool {
        self.seconds == 0
    }

    /// Reads RFC 3339 with any offset; a fraction is accepted and dropped.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let instant = Reader::new(text, LAYOUT).instant()?;
        Ok(Self { seconds: instant.seconds })
    }

    /// How long after `earlier` this is; zero when it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.seconds.saturating_sub(earlier.seconds)).unwrap_or(0))
    }

    /// Seconds from `earlier` to this, negative when this is before.
    pub const fn seconds_since(self, earlier: Self) -> i64 {
        self.seconds.saturating_sub(earlier.seconds)
    }
}

impl MicroTime {
    /// The instant `micros` microseconds after the Unix epoch.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self { micros: micros.saturating_add(UNIX_OFFSET_SECONDS * MICROS_PER_SECOND) }
    }

    /// Microseconds since the Unix epoch; `None` when no time is set.
    pub const fn unix_micros(self) -> Option<i64> {
        if self.is_zero() { None } else { Some(self.since_epoch()) }
    }

    const fn since_epoch(self) -> i64 {
        self.micros.saturating_sub(UNIX_OFFSET_SECONDS * MICROS_PER_SECOND)
    }

    /// Whether no time is set.
    pub const fn is_zero(self) -> bool {
        self.micros == 0
    }

    /// Reads RFC 3339 with exactly six digits of a fraction, as upstream's layout demands.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let instant = Reader::new(text, MICRO_LAYOUT).instant()?;
        let micros = instant.seconds.saturating_mul(MICROS_PER_SECOND);
        Ok(Self { micros: micros.saturating_add(i64::from(instant.nanos / 1000)) })
    }

    /// How long after `earlier` this is; zero when it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.micros.saturating_sub(earlier.micros)).unwrap_or(0))
    }

    /// The time to renew a lease at, which was renewed at `last`: now, or just after that where the clock has hardly moved.
    /// Others hear of a renewal by its time, so that the same one again would be none.
    #[must_use]
    pub fn as_renewal_after(self, last: Option<Self>) -> Self {
        const HARDLY_MICROS: i64 = 1_000_000;
        let behind = |last: Self| last.micros.saturating_sub(self.micros);
        match last {
            Some(last) if (0..HARDLY_MICROS).contains(&behind(last)) => last + Duration::from_micros(1),
            _ => self,
        }
    }

    /// The same instant with second precision.
    pub const fn to_time(self) -> Time {
        Time { seconds: self.micros.div_euclid(MICROS_PER_SECOND) }
    }
}

impl From<Time> for MicroTime {
    fn from(time: Time) -> Self {
        Self { micros: time.seconds.saturating_mul(MICROS_PER_SECOND) }
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        MicroTime::from(time).to_time()
    }
}

impl From<SystemTime> for MicroTime {
    fn from(time: SystemTime) -> Self {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Self::from_unix_micros(micros)
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        SystemTime::from(MicroTime::from(time))
    }
}

impl From<MicroTime> for SystemTime {
    fn from(time: MicroTime) -> Self {
        let micros = time.since_epoch();
        let distance = Duration::from_micros(micros.unsigned_abs());
        let shifted = if micros < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
        shifted.unwrap_or(UNIX_EPOCH)
    }
}

/// Fractions of a second are dropped; saturates.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self { seconds: self.seconds.saturating_add_unsigned(duration.as_secs()) }
    }
}

/// To the microsecond; saturates.
impl Add<Duration> for MicroTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self { micros: self.micros.saturating_add(micros) }
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_civil(f, self.seconds)?;
        f.write_str("Z")
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_civil(f, self.micros.div_euclid(MICROS_PER_SECOND))?;
        let (mut text, mut rest) = (*b".000000Z", self.micros.rem_euclid(MICROS_PER_SECOND));
        for place in text[1..7].iter_mut().rev() {
            *place = decimal(rest % 10);
            rest /= 10;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not RFC 3339, in the words of Go's `time.Parse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text stops following the layout.
    #[error("parsing time {} as \"{layout}\": cannot parse {} as \"{element}\"", quote(text), quote(rest))]
    Malformed {
        /// The whole input.
        text: String,
        /// What was left when reading stopped.
        rest: String,
        /// The whole layout.
        layout: &'static str,
        /// The layout element that was expected.
        element: &'static str,
    },
    /// A number has a value that no calendar or clock shows.
    #[error("parsing time {}: {part} out of range", quote(text))]
    OutOfRange {
        /// The whole input.
        text: String,
        /// `month`, `day`, `hour` and so on.
        part: &'static str,
    },
    /// Text follows a complete time.
    #[error("parsing time {}: extra text: {}", quote(text), quote(rest))]
    ExtraText {
        /// The whole input.
        text: String,
        /// The surplus.
        rest: String,
    },
}

/// Go's time package has its own quoting: every byte outside printable ASCII as `\xNN`.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

struct Instant {
    seconds: i64,
    nanos: u32,
}

/// Walks the layout element by element, as Go does, so that its errors come out at the same place.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
    layout: &'static str,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, layout: &'static str) -> Self {
        Self { text, rest: text.as_bytes(), layout }
    }

    fn instant(&mut self) -> Result<Instant, TimeError> {
        let year = self.year()?;
        self.literal(b'-', "-")?;
        let month = self.in_range("01", "month", 1, 12)?;
        self.literal(b'-', "-")?;
        let day = self.two_digits("02")?;
        self.literal(b'T', "T")?;
        let hour = self.hour()?;
        self.literal(b':', ":")?;
        let minute = self.in_range("04", "minute", 0, 59)?;
        self.literal(b':', ":")?;
        let second = self.in_range("05", "second", 0, 59)?;
        let nanos = if self.layout == LAYOUT { self.fraction() } else { self.six_digits()? };
        let offset_seconds = self.offset()?;
        if !self.rest.is_empty() {
            return Err(TimeError::ExtraText { text: self.text.into(), rest: self.rest_text() });
        }
        if day < 1 || day > days_in_month(year, month) {
            return Err(self.out_of_range("day"));
        }
        let clock = hour * 3600 + minute * 60 + second;
        Ok(Instant { seconds: days_from_year_one(year, month, day) * SECONDS_PER_DAY + clock - offset_seconds, nanos })
    }

    fn year(&mut self) -> Result<i64, TimeError> {
        let Some((digits, rest)) = self.rest.split_at_checked(4) else { return Err(self.malformed("2006")) };
        let year = digits.iter().try_fold(0, |sum, &byte| digit(byte).map(|value| sum * 10 + value));
        let year = year.ok_or_else(|| self.malformed("2006"))?;
        self.rest = rest;
        Ok(year)
    }

    fn literal(&mut self, wanted: u8, element: &'static str) -> Result<(), TimeError> {
        match self.rest.split_first() {
            Some((&first, rest)) if first == wanted => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.malformed(element)),
        }
    }

    fn two_digits(&mut self, element: &'static str) -> Result<i64, TimeError> {
        if let [tens, units, rest @ ..] = self.rest
            && let (Some(tens), Some(units)) = (digit(*tens), digit(*units))
        {
            self.rest = rest;
            return Ok(tens * 10 + units);
        }
        Err(self.malformed(element))
    }

    fn in_range(&mut self, element: &'static str, part: &'static str, low: i64, high: i64) -> Result<i64, TimeError> {
        let value = self.two_digits(element)?;
        if (low..=high).contains(&value) { Ok(value) } else { Err(self.out_of_range(part)) }
    }

    /// Go accepts one digit here.
    fn hour(&mut self) -> Result<i64, TimeError> {
        let value = match self.rest {
            [_, second, ..] if digit(*second).is_some() => self.two_digits("15")?,
            [first, rest @ ..] if digit(*first).is_some() => {
                self.rest = rest;
                digit(*first).unwrap_or(0)
            }
            _ => return Err(self.malformed("15")),
        };
        if value < 24 { Ok(value) } else { Err(self.out_of_range("hour")) }
    }

    /// Nanoseconds of an optional fraction; a comma is as good as a dot, digits past the ninth are dropped.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', digits @ ..] = self.rest else { return 0 };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let (digits, rest) = digits.split_at(count);
        self.rest = rest;
        let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
        padded.fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'))
    }

    /// Nanoseconds of a fraction with exactly six digits behind a dot or a comma.
    fn six_digits(&mut self) -> Result<u32, TimeError> {
        let Some(([b'.' | b',', digits @ ..], rest)) = self.rest.split_at_checked(7) else {
            return Err(self.malformed(".000000"));
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(self.malformed(".000000"));
        }
        self.rest = rest;
        Ok(digits.iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0')) * 1000)
    }

    fn offset(&mut self) -> Result<i64, TimeError> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let [sign, hour_tens, hour_units, b':', minute_tens, minute_units, rest @ ..] = self.rest else {
            return Err(self.malformed("Z07:00"));
        };
        let pair = |tens: u8, units: u8| Some(digit(tens)? * 10 + digit(units)?);
        let (Some(hours), Some(minutes)) = (pair(*hour_tens, *hour_units), pair(*minute_tens, *minute_units)) else {
            return Err(self.malformed("Z07:00"));
        };
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        let seconds = hours * 3600 + minutes * 60;
        let signed = match sign {
            b'+' => seconds,
            b'-' => -seconds,
            _ => return Err(self.malformed("Z07:00")),
        };
        self.rest = rest;
        Ok(signed)
    }

    fn rest_text(&self) -> String {
        String::from_utf8_lossy(self.rest).into_owned()
    }

    fn malformed(&self, element: &'static str) -> TimeError {
        TimeError::Malformed { text: self.text.into(), rest: self.rest_text(), layout: self.layout, element }
    }

    fn out_of_range(&self, part: &'static str) -> TimeError {
        TimeError::OutOfRange { text: self.text.into(), part }
    }
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 0001-01-01 to a date of the proleptic Gregorian calendar. Years are counted from March, so that the
/// leap day is the last day of a year and month lengths follow one linear formula.
fn days_from_year_one(year: i64, month: i64, day: i64) -> i64 {
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = (month + 9) % 12;
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 0000-03-01, where era 0 begins, is 306 days before 0001-01-01.
    era * 146_097 + day_of_era - 306
}

/// The inverse of [`days_from_year_one`]: year, month, day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 306;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn write_civil(f: &mut fmt::Formatter<'_>, seconds: i64) -> fmt::Result {
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let clock = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let Ok(year @ 0..10_000) = u16::try_from(year) else {
        return write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    };
    // Every object has times and lists have thousands: the general formatter is too slow for them.
    let mut text = *b"0000-00-00T00:00:00";
    let parts = [(2, i64::from(year % 100)), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
    for (at, number) in [(0, i64::from(year / 100))].into_iter().chain(parts) {
        text[at] = decimal(number / 10);
        text[at + 1] = decimal(number % 10);
    }
    f.write_str(std::str::from_utf8(&text).unwrap_or_default())
}

/// A digit of a number below 10.
fn decimal(number: i64) -> u8 {
    b'0' + u8::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
