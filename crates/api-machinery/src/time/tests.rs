//! Tables for [`Time`] and [`MicroTime`].

use super::*;

#[test]
fn reads_and_writes_seconds() {
    let cases = [
        ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
        ("2024-02-29T23:59:59Z", 1_709_251_199, "2024-02-29T23:59:59Z"),
        ("2024-02-29T23:59:59.999Z", 1_709_251_199, "2024-02-29T23:59:59Z"),
        ("2024-03-01T01:59:59+02:00", 1_709_251_199, "2024-02-29T23:59:59Z"),
        ("2024-02-29T18:29:59,5-05:30", 1_709_251_199, "2024-02-29T23:59:59Z"),
        ("2024-02-29T3:00:00Z", 1_709_175_600, "2024-02-29T03:00:00Z"),
        ("1969-12-31T23:59:58.5Z", -2, "1969-12-31T23:59:58Z"),
        ("9999-12-31T23:59:59Z", 253_402_300_799, "9999-12-31T23:59:59Z"),
    ];
    for (text, unix, printed) in cases {
        let time = Time::parse(text).unwrap();
        assert_eq!(time.unix_seconds(), Some(unix), "{text}");
        assert_eq!(time.to_string(), printed);
        assert_eq!(Time::from_unix_seconds(unix), time);
        assert!(!time.is_zero());
    }
}

#[test]
fn every_day_survives_a_round_trip() {
    for day in -800_000..3_000_000 {
        let (year, month, date) = civil_from_days(day);
        assert_eq!(days_from_year_one(year, month, date), day);
        assert!((1..=days_in_month(year, month)).contains(&date));
    }
}

#[test]
fn the_zero_value_is_year_one() {
    assert!(Time::parse("0001-01-01T00:00:00Z").unwrap().is_zero());
    assert!(MicroTime::parse("0001-01-01T00:00:00.000000Z").unwrap().is_zero());
    assert_eq!(Time::default().to_string(), "0001-01-01T00:00:00Z");
    assert_eq!(Time::default().unix_seconds(), None);
    assert!(Time::default() < Time::from_unix_seconds(-1));
}

#[test]
fn micro_time_keeps_six_digits() {
    let cases = [
        ("2024-02-29T23:59:59.000000Z", "2024-02-29T23:59:59.000000Z"),
        ("2024-02-29T23:59:59.123456Z", "2024-02-29T23:59:59.123456Z"),
        ("2024-02-29T23:59:59,500000+01:00", "2024-02-29T22:59:59.500000Z"),
        ("1969-12-31T23:59:59.500000Z", "1969-12-31T23:59:59.500000Z"),
    ];
    for (text, printed) in cases {
        assert_eq!(MicroTime::parse(text).unwrap().to_string(), printed);
    }
    let layout = "as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse";
    for (text, why) in [
        ("2001-01-01T00:00:00Z", r#""Z" as ".000000""#),
        ("2001-01-01T00:00:00.123456789Z", r#""789Z" as "Z07:00""#),
        ("x", r#""x" as "2006""#),
    ] {
        let error = MicroTime::parse(text).unwrap_err().to_string();
        assert_eq!(error, format!("parsing time \"{text}\" {layout} {why}"));
    }
    assert_eq!(MicroTime::parse("1969-12-31T23:59:59.500000Z").unwrap().to_time().unix_seconds(), Some(-1));
}

#[test]
fn errors_read_as_in_go() {
    let layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
    let cases = [
        ("", format!("parsing time \"\" {layout} \"\" as \"2006\"")),
        ("x", format!("parsing time \"x\" {layout} \"x\" as \"2006\"")),
        ("2024", format!("parsing time \"2024\" {layout} \"\" as \"-\"")),
        ("2024-1-01T00:00:00Z", format!("parsing time \"2024-1-01T00:00:00Z\" {layout} \"1-01T00:00:00Z\" as \"01\"")),
        ("2024-13-01T00:00:00Z", "parsing time \"2024-13-01T00:00:00Z\": month out of range".into()),
        ("2023-02-29T00:00:00Z", "parsing time \"2023-02-29T00:00:00Z\": day out of range".into()),
        ("2023-02-28t00:00:00Z", format!("parsing time \"2023-02-28t00:00:00Z\" {layout} \"t00:00:00Z\" as \"T\"")),
        ("2023-02-28T24:00:00Z", "parsing time \"2023-02-28T24:00:00Z\": hour out of range".into()),
        ("2023-02-28T00:00:00", format!("parsing time \"2023-02-28T00:00:00\" {layout} \"\" as \"Z07:00\"")),
        ("2023-02-28T00:00:00Zé", "parsing time \"2023-02-28T00:00:00Z\\xc3\\xa9\": extra text: \"\\xc3\\xa9\"".into()),
    ];
    for (text, expected) in cases {
        assert_eq!(Time::parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn micro_time_wants_six_digits() {
    for (text, rest, element) in [
        ("x", "x", "2006"),
        ("2001-01-01T00:00:00Z", "Z", ".000000"),
        ("2001-01-01T00:00:00.12345Z", ".12345Z", ".000000"),
        ("2001-01-01T00:00:00.123456789Z", "789Z", "Z07:00"),
    ] {
        let layout = "2006-01-02T15:04:05.000000Z07:00";
        let expected = format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"");
        assert_eq!(MicroTime::parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn arithmetic_saturates() {
    let noon = Time::from_unix_seconds(43_200);
    assert_eq!((noon + Duration::from_millis(1900)).unix_seconds(), Some(43_201));
    assert_eq!(noon.since(Time::from_unix_seconds(43_100)), Duration::from_secs(100));
    assert_eq!(noon.since(Time::from_unix_seconds(43_300)), Duration::ZERO);
    assert_eq!(noon.seconds_since(Time::from_unix_seconds(43_300)), -100);
    assert_eq!(
        (Time::from_unix_seconds(i64::MAX) + Duration::MAX).unix_seconds(),
        Some(i64::MAX - UNIX_OFFSET_SECONDS)
    );
}

#[test]
fn each_renewal_has_a_time_of_its_own() {
    for (now, last, expected) in [
        (5_000_000, None, 5_000_000),
        (5_000_000, Some(4_999_999), 5_000_000),
        (5_000_000, Some(5_000_000), 5_000_001),
        (5_000_000, Some(5_000_001), 5_000_002),
        (5_000_000, Some(5_999_999), 6_000_000),
        // A clock that was set back goes on from there.
        (5_000_000, Some(6_000_000), 5_000_000),
    ] {
        let renewal = MicroTime::from_unix_micros(now).as_renewal_after(last.map(MicroTime::from_unix_micros));
        assert_eq!(renewal.unix_micros(), Some(expected), "{now} after {last:?}");
    }
}

#[test]
fn converts_to_and_from_system_time() {
    let system = UNIX_EPOCH + Duration::from_millis(1_500);
    assert_eq!(Time::from(system).unix_seconds(), Some(1));
    assert_eq!(MicroTime::from(system).unix_micros(), Some(1_500_000));
    assert_eq!(SystemTime::from(MicroTime::from(system)), system);
    assert_eq!(Time::from(UNIX_EPOCH - Duration::from_millis(500)).unix_seconds(), Some(-1));
}
