//! The grammar of schedules.

use std::time::Duration;

use api_machinery::time::GoDuration;

use super::{Field, FieldError, Fields, Schedule, ScheduleError, Times};
use crate::time_zone::TimeZone;

const NAMES_OF_MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NAMES_OF_DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What values a field has.
#[derive(Clone, Copy)]
struct Bounds {
    min: u64,
    max: u64,
    /// Words for the values from `min` on.
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds { min: 1, max: 12, names: &NAMES_OF_MONTHS };
const WEEKDAYS: Bounds = Bounds { min: 0, max: 6, names: &NAMES_OF_DAYS };

pub(super) fn schedule(text: &str) -> Result<Schedule, ScheduleError> {
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    let (zone, text) = zone(text)?;
    let times = if text.starts_with('@') { descriptor(text)? } else { fields(text)? };
    Ok(Schedule { times, zone })
}

fn zone(text: &str) -> Result<(Option<TimeZone>, &str), ScheduleError> {
    let Some(named) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return Ok((None, text));
    };
    let (name, rest) = named.split_once(' ').ok_or(ScheduleError::NothingAfterZone)?;
    // No name at all is universal time, as it is for upstream's zone reader.
    let zone = if name.is_empty() { Ok(TimeZone::utc()) } else { TimeZone::find(name) };
    let zone = zone.map_err(|source| ScheduleError::Location { name: name.to_owned(), source })?;
    Ok((Some(zone), rest.trim()))
}

fn descriptor(text: &str) -> Result<Times, ScheduleError> {
    let spelled_out = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return every(text),
    };
    fields(spelled_out)
}

fn every(text: &str) -> Result<Times, ScheduleError> {
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(ScheduleError::Descriptor(text.to_owned()));
    };
    let duration =
        GoDuration::parse(duration).map_err(|source| ScheduleError::Every { descriptor: text.to_owned(), source })?;
    Ok(Times::Every(Duration::from_secs(duration.to_std().as_secs().max(1))))
}

fn fields(text: &str) -> Result<Times, ScheduleError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = *parts.as_slice() else {
        return Err(ScheduleError::FieldCount { count: parts.len(), fields: parts.join(" ") });
    };
    Ok(Times::Fields(Fields {
        minutes: field(minutes, MINUTES)?,
        hours: field(hours, HOURS)?,
        days: field(days, DAYS)?,
        months: field(months, MONTHS)?,
        weekdays: field(weekdays, WEEKDAYS)?,
    }))
}

fn field(text: &str, bounds: Bounds) -> Result<Field, ScheduleError> {
    let mut all = Field::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let one = range(part, bounds).map_err(ScheduleError::Field)?;
        all.bits |= one.bits;
        all.star |= one.star;
    }
    Ok(all)
}

/// `*`, `a`, `a-b`, each with `/step` or without.
fn range(text: &str, bounds: Bounds) -> Result<Field, FieldError> {
    let mut halves = text.split('/');
    let ends = halves.next().unwrap_or_default();
    let step = halves.next();
    let mut ends = ends.split('-');
    let first = ends.next().unwrap_or_default();
    let (second, too_many) = (ends.next(), ends.next().is_some());
    let star = matches!(first, "*" | "?");
    let (start, mut end) = match (star, second) {
        (true, _) => (bounds.min, bounds.max),
        (false, _) if too_many => {
            value(first, bounds)?;
            return Err(FieldError::Hyphens(text.to_owned()));
        }
        (false, None) => {
            let only = value(first, bounds)?;
            (only, only)
        }
        (false, Some(second)) => (value(first, bounds)?, value(second, bounds)?),
    };
    if halves.next().is_some() {
        return Err(FieldError::Slashes(text.to_owned()));
    }
    let step = match step {
        Some(step) => {
            // A single value with a step goes on to the end.
            if second.is_none() {
                end = bounds.max;
            }
            number(step)?
        }
        None => 1,
    };
    check(text, bounds, start, end, step)?;
    Ok(Field { bits: bits(start, end, step), star: star && step <= 1 })
}

fn check(text: &str, bounds: Bounds, start: u64, end: u64, step: u64) -> Result<(), FieldError> {
    let (Bounds { min, max, .. }, text) = (bounds, text.to_owned());
    if start < min {
        return Err(FieldError::Below { start, min, text });
    }
    if end > max {
        return Err(FieldError::Above { end, max, text });
    }
    if start > end {
        return Err(FieldError::Reversed { start, end, text });
    }
    if step == 0 {
        return Err(FieldError::NoStep(text));
    }
    Ok(())
}

fn bits(start: u64, end: u64, step: u64) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX).max(1);
    (start..=end).step_by(step).fold(0, |bits, value| bits | (1 << value))
}

fn value(text: &str, bounds: Bounds) -> Result<u64, FieldError> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named.and_then(|index| u64::try_from(index).ok()) {
        Some(index) => Ok(bounds.min + index),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, FieldError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let problem = match text.parse::<i64>() {
        Ok(number) if number < 0 => return Err(FieldError::Negative { number, text: text.to_owned() }),
        Ok(number) => return Ok(number.unsigned_abs()),
        Err(_) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => "value out of range",
        Err(_) => "invalid syntax",
    };
    Err(FieldError::Number { text: text.to_owned(), problem })
}
