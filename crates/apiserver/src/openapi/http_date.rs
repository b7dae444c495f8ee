//! Times as HTTP headers have them: `Wed, 14 Oct 2026 17:46:40 GMT`.

use std::time::{SystemTime, UNIX_EPOCH};

use api_machinery::time::Time;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time as headers have it.
pub(super) fn render(time: SystemTime) -> String {
    // RFC 3339 in UTC: 2026-01-31T10:20:30Z.
    let text = Time::from(time).to_string();
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let pick = |names: &[&'static str], index: usize| names.get(index).copied().unwrap_or_default();
    let weekday = pick(&DAYS, usize::try_from(seconds / 86_400 % 7).unwrap_or(0));
    let month = pick(&MONTHS, part(5, 7).parse::<usize>().unwrap_or(1).saturating_sub(1));
    format!("{weekday}, {} {month} {} {} GMT", part(8, 10), part(0, 4), part(11, 19))
}

/// The time in a header; nothing for what is none. The obsolete forms of HTTP/1.0 are not read.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, clock, "GMT"] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    Time::parse(&format!("{year}-{month:02}-{day}T{clock}Z")).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_have_the_form_of_headers() {
        let time = UNIX_EPOCH + Duration::from_secs(1_792_000_000);
        assert_eq!(render(time), "Wed, 14 Oct 2026 17:46:40 GMT");
        assert_eq!(parse("Wed, 14 Oct 2026 17:46:40 GMT"), Some(time));
        for wrong in ["", "yesterday", "Wed, 14 Oct 2026 17:46:40 CET", "Wed, 14 Foo 2026 17:46:40 GMT"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
