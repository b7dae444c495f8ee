//! What texts are schedules, and when those are due.

use super::*;

fn time(text: &str) -> Time {
    Time::parse(text).expect("a time")
}

#[test]
fn texts_that_are_no_schedules() {
    for (text, expected) in [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ("TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        (
            "99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out \
             of range",
        ),
    ] {
        assert_eq!(Schedule::parse(text).expect_err(text).to_string(), expected, "{text}");
    }
}

#[test]
fn when_schedules_are_due() {
    // 2026-03-04 is a Wednesday.
    let from = "2026-03-04T05:06:07Z";
    for (text, expected) in [
        ("* * * * *", "2026-03-04T05:07:00Z"),
        ("*/15 * * * *", "2026-03-04T05:15:00Z"),
        ("7/20 * * * *", "2026-03-04T05:07:00Z"),
        ("0 5 * * *", "2026-03-05T05:00:00Z"),
        ("30 23 31 * *", "2026-03-31T23:30:00Z"),
        ("0 0 29 feb ?", "2028-02-29T00:00:00Z"),
        ("0 12 * * MON-FRI", "2026-03-04T12:00:00Z"),
        ("0 0 * * sun", "2026-03-08T00:00:00Z"),
        // Neither day is a star: one of them is enough.
        ("0 0 20 * sat", "2026-03-07T00:00:00Z"),
        // A star with a step is none: either is enough again.
        ("0 0 */31 * sat", "2026-03-07T00:00:00Z"),
        ("0,30 6-8/2 * 3,4 *", "2026-03-04T06:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-04-01T00:00:00Z"),
        ("@weekly", "2026-03-08T00:00:00Z"),
        ("@daily", "2026-03-05T00:00:00Z"),
        ("@hourly", "2026-03-04T06:00:00Z"),
        ("@every 90s", "2026-03-04T05:07:37Z"),
        ("@every 1500ms", "2026-03-04T05:06:08Z"),
        ("@every 1ms", "2026-03-04T05:06:08Z"),
        ("TZ=America/New_York 0 9 * * *", "2026-03-04T14:00:00Z"),
        ("CRON_TZ=Asia/Kolkata 0 9 * * *", "2026-03-05T03:30:00Z"),
    ] {
        let next = Schedule::parse(text).expect(text).next_after(time(from));
        assert_eq!(next.map(|at| at.to_string()).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn a_time_is_not_due_after_itself() {
    let schedule = Schedule::parse("0 5 * * *").expect("a schedule");
    assert_eq!(schedule.next_after(time("2026-03-04T05:00:00Z")), Some(time("2026-03-05T05:00:00Z")));
    assert_eq!(schedule.next_after(time("2026-03-04T04:59:59Z")), Some(time("2026-03-04T05:00:00Z")));
}

#[test]
fn some_times_never_come() {
    for text in ["0 0 30 2 *", "0 0 31 4,6 *", ", * * * *"] {
        assert_eq!(Schedule::parse(text).expect(text).next_after(time("2026-01-01T00:00:00Z")), None, "{text}");
    }
    assert_eq!(Schedule::parse("* * * * *").expect("a schedule").next_after(Time::default()), None);
    assert_eq!(Schedule::parse("@every 1h").expect("a schedule").next_after(Time::default()), None);
}

#[test]
fn clocks_that_are_moved() {
    let berlin = TimeZone::find("Europe/Berlin").expect("a zone");
    let next = |text: &str, from: &str| {
        let schedule = Schedule::parse(text).expect(text).in_zone(berlin.clone());
        schedule.next_after(time(from)).map(|at| berlin.rfc3339(at)).unwrap_or_default()
    };
    // 2026-03-29: from 02:00 to 03:00. What falls between is not due that day.
    assert_eq!(next("30 2 * * *", "2026-03-28T12:00:00Z"), "2026-03-30T02:30:00+02:00");
    assert_eq!(next("0 3 * * *", "2026-03-29T00:30:00Z"), "2026-03-29T03:00:00+02:00");
    // 2026-10-25: from 03:00 back to 02:00. Half past two comes twice.
    assert_eq!(next("30 2 * * *", "2026-10-24T12:00:00Z"), "2026-10-25T02:30:00+02:00");
    assert_eq!(next("30 2 * * *", "2026-10-25T00:30:00Z"), "2026-10-25T02:30:00+01:00");
    // Where midnight is skipped, the day begins after it.
    let beirut = TimeZone::find("Asia/Beirut").expect("a zone");
    let schedule = Schedule::parse("30 * * * *").expect("a schedule").in_zone(beirut.clone());
    let at = schedule.next_after(time("2026-03-28T21:45:00Z")).expect("a time");
    assert_eq!(beirut.rfc3339(at), "2026-03-29T01:30:00+03:00");
}

#[test]
fn the_zone_in_the_text_goes_first() {
    let zone = TimeZone::find("Asia/Tokyo").expect("a zone");
    let schedule = Schedule::parse("TZ=UTC 0 9 * * *").expect("a schedule").in_zone(zone);
    assert_eq!(schedule.next_after(time("2026-03-04T00:00:00Z")), Some(time("2026-03-04T09:00:00Z")));
}
