//! Which time of a schedule is due, and when the next one is.

use std::time::Duration;

use api_machinery::time::Time;
use api_types::batch_v1::{CronJob, CronJobSpec};
use component_helpers::cron::{Schedule, ScheduleError};
use component_helpers::time_zone::TimeZone;

/// Added to every wait, so that the time has surely come when it is looked again.
const SLACK: Duration = Duration::from_millis(100);
/// More missed times than this are worth a warning.
const MANY: i64 = 100;
/// The most times that are stepped through one by one to find the last missed one.
const MAX_STEPS: usize = 100_000;

/// A time as a number; times that are not set are the first.
pub(super) fn seconds(time: Time) -> i64 {
    time.unix_seconds().unwrap_or(0)
}

/// A time that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Time,
    /// Whether so many were missed that something must be wrong.
    pub(super) many: bool,
}

/// The schedule in its zone, or in the process's own. An unknown zone is the caller's to tell.
///
/// # Errors
/// The text is no schedule.
pub(super) fn schedule_of(spec: &CronJobSpec, local: &TimeZone) -> Result<Schedule, ScheduleError> {
    Ok(Schedule::parse(&spec.schedule)?.in_zone(zone_of(spec, local)))
}

/// The zone of a schedule, or the process's own.
pub(super) fn zone_of(spec: &CronJobSpec, local: &TimeZone) -> TimeZone {
    spec.time_zone.as_deref().and_then(|name| TimeZone::find(name).ok()).unwrap_or_else(|| local.clone())
}

/// From when on times count.
fn earliest(cron_job: &CronJob, now: Time, with_deadline: bool) -> Time {
    let start = cron_job.status.last_schedule_time.unwrap_or(cron_job.metadata.creation_timestamp);
    let deadline = cron_job.spec.starting_deadline_seconds.filter(|_| with_deadline);
    match deadline.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(limit) => {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let from = Time::from_unix_seconds(seconds(now).saturating_sub(limit));
            start.max(from)
        }
        None => start,
    }
}

/// The last time that is due and was not started.
///
/// # Errors
/// The schedule never comes, or comes more often than every second.
pub(super) fn due(
    cron_job: &CronJob,
    schedule: &Schedule,
    now: Time,
    with_deadline: bool,
) -> Result<Option<Due>, &'static str> {
    const TOO_CLOSE: &str = "time difference between two schedules is less than 1 second";
    let Some(first) = schedule.next_after(earliest(cron_job, now, with_deadline)) else { return Err(TOO_CLOSE) };
    let Some(second) = schedule.next_after(first) else { return Err(TOO_CLOSE) };
    if now < first {
        return Ok(None);
    }
    if now < second {
        return Ok(Some(Due { at: first, many: false }));
    }
    let interval = seconds(second) - seconds(first);
    if interval < 1 {
        return Err(TOO_CLOSE);
    }
    let missed = (seconds(now) - seconds(first)) / interval + 1;
    // Intervals differ, so the last one is looked for from a little before where it would be.
    let near = seconds(first) + (missed - 2).max(0).saturating_mul(interval);
    let (mut last, mut at) = (first, Time::from_unix_seconds(near));
    for _ in 0..MAX_STEPS {
        match schedule.next_after(at) {
            Some(next) if next <= now => {
                (last, at) = (next, next);
            }
            _ => break,
        }
    }
    Ok(Some(Due { at: last, many: missed > MANY }))
}

/// After what time the next start comes.
pub(super) fn look_again(cron_job: &CronJob, schedule: &Schedule, now: Time) -> Duration {
    let reference = match due(cron_job, schedule, now, false) {
        Ok(Some(due)) => due.at,
        Ok(None) => earliest(cron_job, now, false),
        Err(_) => now,
    };
    let next = schedule.next_after(reference).unwrap_or(now);
    next.since(now) + SLACK
}
