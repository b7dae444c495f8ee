//! Durations for people: the age column of tables, and its one-unit form used in messages.

/// Text of an age in whole seconds (may be negative when clocks disagree): `45s`, `3m20s`, `5d2h`.
pub fn age_text(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, (DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The same with a single unit: `s`, `m`, `h`, `d` or `y`.
pub fn short_age_text(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..31_536_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

fn two_units(seconds: i64, (large, large_name): (i64, char), (small, small_name): (i64, char)) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 { format!("{whole}{large_name}") } else { format!("{whole}{large_name}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        const DAY: i64 = 86_400;
        let cases = [
            (-5, "<invalid>", "<invalid>"),
            (-1, "0s", "0s"),
            (0, "0s", "0s"),
            (119, "119s", "1m"),
            (120, "2m", "2m"),
            (125, "2m5s", "2m"),
            (600, "10m", "10m"),
            (10_799, "179m", "2h"),
            (10_800, "3h", "3h"),
            (11_000, "3h3m", "3h"),
            (28_800, "8h", "8h"),
            (172_799, "47h", "1d"),
            (172_800, "2d", "2d"),
            (2 * DAY + 3_600, "2d1h", "2d"),
            (8 * DAY + 3_600, "8d", "8d"),
            (729 * DAY, "729d", "1y"),
            (730 * DAY, "2y", "2y"),
            (731 * DAY, "2y1d", "2y"),
            (8 * 365 * DAY + DAY, "8y", "8y"),
        ];
        for (seconds, long, short) in cases {
            assert_eq!(age_text(seconds), long, "{seconds}");
            assert_eq!(short_age_text(seconds), short, "{seconds}");
        }
    }
}
