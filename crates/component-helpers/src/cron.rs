//! Schedules of cron jobs: five fields or a descriptor, in a time zone, and when they are next due.
//!
//! The grammar and its error texts are those that users of upstream's cron jobs know; a day counts where both day
//! fields say so if either is a star, and where one of them does otherwise.

mod parse;

use std::time::Duration;

use api_machinery::time::Time;
use jiff::civil::{Date, DateTime};

use crate::time_zone::{TimeZone, UnknownTimeZone};

/// A schedule that never comes true, such as 30 February, is given up after so many years.
const MAX_YEARS: i16 = 5;
/// Steps of one search. Five years have 60 months, of at most 31 days, each looked at once, and then a day's hours and
/// an hour's minutes; more steps would be a search that does not get on.
const MAX_STEPS: usize = 5_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Why a text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Nothing was given.
    #[error("empty spec string")]
    Empty,
    /// More or fewer than five fields.
    #[error("expected exactly 5 fields, found {count}: [{fields}]")]
    FieldCount {
        /// How many there are.
        count: usize,
        /// What they are.
        fields: String,
    },
    /// A field is not understood, in upstream's words.
    #[error("{0}")]
    Field(FieldError),
    /// An `@` and no known word.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` without a duration.
    #[error("failed to parse duration {descriptor}: {source}")]
    Every {
        /// The descriptor.
        descriptor: String,
        /// What is wrong with the duration.
        #[source]
        source: api_machinery::time::DurationError,
    },
    /// `TZ=` with a zone that is not known.
    #[error("provided bad location {name}: {source}")]
    Location {
        /// The name given.
        name: String,
        /// That it is unknown.
        #[source]
        source: UnknownTimeZone,
    },
    /// `TZ=` and nothing after it.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    NothingAfterZone,
}

/// Why a field is not one, in the words of the parser that upstream uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// More than a beginning and an end.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// More than a range and a step.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// The range begins before the field's first value.
    #[error("beginning of range ({start}) below minimum ({min}): {text}")]
    Below {
        /// Where it begins.
        start: u64,
        /// The first value.
        min: u64,
        /// The range.
        text: String,
    },
    /// The range ends behind the field's last value.
    #[error("end of range ({end}) above maximum ({max}): {text}")]
    Above {
        /// Where it ends.
        end: u64,
        /// The last value.
        max: u64,
        /// The range.
        text: String,
    },
    /// The range ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Reversed {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// The range.
        text: String,
    },
    /// The step is 0.
    #[error("step of range should be a positive number: {0}")]
    NoStep(String),
    /// A number is below 0.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative {
        /// The number.
        number: i64,
        /// As it was written.
        text: String,
    },
    /// What should be a number is none.
    #[error(
        "failed to parse int from {text}: strconv.Atoi: parsing {}: {problem}",
        api_machinery::quote::go_quote(text)
    )]
    Number {
        /// As it was written.
        text: String,
        /// What Go says of it.
        problem: &'static str,
    },
}

/// When something is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    times: Times,
    zone: Option<TimeZone>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Times {
    Fields(Fields),
    Every(Duration),
}

/// The values of each field that match, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// One field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// Given as `*` or `?` alone, so that it does not narrow the days.
    star: bool,
}

impl Field {
    fn has(self, value: i8) -> bool {
        u32::try_from(value).ok().and_then(|bit| self.bits.checked_shr(bit)).is_some_and(|bits| bits & 1 == 1)
    }
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        parse::schedule(text)
    }

    /// The schedule in a zone, which a zone in its own text goes before; without either, times are UTC.
    #[must_use]
    pub fn in_zone(mut self, zone: TimeZone) -> Self {
        self.zone.get_or_insert(zone);
        self
    }

    /// The first time after `time` at which it is due, to the second; nothing where that is not within five years, or
    /// `time` is not set.
    ///
    /// Where clocks skip a time, it is not due on that day; where they show an hour twice, it may be due in both.
    #[must_use]
    pub fn next_after(&self, time: Time) -> Option<Time> {
        let utc = TimeZone::utc();
        let zone = self.zone.as_ref().unwrap_or(&utc);
        match &self.times {
            Times::Every(interval) => (!time.is_zero()).then(|| time + *interval),
            Times::Fields(fields) => fields.next_after(time, zone),
        }
    }
}

/// What to do after a look at a time.
enum Step {
    Due,
    /// Look again at this time.
    To(Time),
}

impl Fields {
    fn next_after(&self, time: Time, zone: &TimeZone) -> Option<Time> {
        let start = zone.civil(time)?;
        let last_year = start.year().checked_add(MAX_YEARS)?;
        let mut at = time + Duration::from_secs(u64::try_from(60 - start.second()).unwrap_or(60));
        for _ in 0..MAX_STEPS {
            let civil = zone.civil(at)?;
            if civil.year() > last_year {
                return None;
            }
            match self.step(at, civil, zone)? {
                Step::Due => return Some(at),
                // A zone whose clocks jump by days could lead back; time only goes on.
                Step::To(next) => at = if next > at { next } else { at + MINUTE },
            }
        }
        None
    }

    fn step(&self, at: Time, civil: DateTime, zone: &TimeZone) -> Option<Step> {
        let midnight = |date: Date| zone.instant(date.at(0, 0, 0, 0));
        if !self.months.has(civil.month()) {
            let next = civil.date().last_of_month().tomorrow().ok()?;
            return midnight(next).map(Step::To);
        }
        if !self.is_day(civil.date()) {
            return midnight(civil.date().tomorrow().ok()?).map(Step::To);
        }
        let past_minute = u64::try_from(civil.second()).unwrap_or(0);
        let past_hour = u64::try_from(civil.minute()).unwrap_or(0) * 60 + past_minute;
        if !self.hours.has(civil.hour()) {
            return Some(Step::To(at + Duration::from_secs(3600_u64.saturating_sub(past_hour))));
        }
        if past_minute != 0 || !self.minutes.has(civil.minute()) {
            return Some(Step::To(at + Duration::from_secs(60_u64.saturating_sub(past_minute))));
        }
        Some(Step::Due)
    }

    fn is_day(&self, date: Date) -> bool {
        let by_month = self.days.has(date.day());
        let by_week = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        if self.days.star || self.weekdays.star { by_month && by_week } else { by_month || by_week }
    }
}

#[cfg(test)]
mod tests;
