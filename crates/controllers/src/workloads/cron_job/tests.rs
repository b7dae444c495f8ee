//! Due times from tables, and the controller against the fake server.

use std::time::Duration;

use api_machinery::time::Time;
use api_types::batch_v1::CronJobSpec;
use component_helpers::cron::Schedule;
use serde_json::json;

use super::super::fixtures::{Running, at, meta};
use super::*;

fn cron_job(schedule: &str) -> CronJob {
    let mut cron_job = CronJob { metadata: meta("tick"), ..CronJob::default() };
    cron_job.metadata.creation_timestamp = at(30);
    cron_job.spec.schedule = schedule.into();
    cron_job.spec.concurrency_policy = "Allow".into();
    cron_job
}

#[test]
fn the_last_missed_time_is_due() {
    for (name, schedule, deadline, now, expected) in [
        ("not yet", "* * * * *", None, 50, Ok(None)),
        ("the first", "* * * * *", None, 61, Ok(Some((60, false)))),
        ("the last of some", "* * * * *", None, 250, Ok(Some((240, false)))),
        ("of very many", "* * * * *", None, 60_000, Ok(Some((60_000, true)))),
        ("no more than the deadline ago", "* * * * *", Some(30), 290, Ok(None)),
        ("within the deadline", "* * * * *", Some(70), 290, Ok(Some((240, false)))),
        ("never", "0 0 30 2 *", None, 61, Err(())),
    ] {
        let mut cron_job = cron_job(schedule);
        cron_job.spec.starting_deadline_seconds = deadline;
        let schedule = Schedule::parse(schedule).unwrap();
        let due = plan::due(&cron_job, &schedule, at(now), true);
        let due = due.map(|due| due.map(|due| (plan::seconds(due.at), due.many))).map_err(drop);
        assert_eq!(due, expected, "{name}");
    }
}

#[test]
fn the_next_look_is_at_the_next_time() {
    let schedule = Schedule::parse("* * * * *").unwrap();
    let wait = |now| plan::look_again(&cron_job("* * * * *"), &schedule, at(now));
    assert_eq!(wait(50), Duration::from_millis(10_100));
    assert_eq!(wait(61), Duration::from_millis(59_100));
}

#[test]
fn old_jobs_are_surplus() {
    let mut cron_job = cron_job("* * * * *");
    cron_job.spec.successful_jobs_history_limit = Some(1);
    cron_job.spec.failed_jobs_history_limit = None;
    let job = |name: &str, start: i64, kind: &str| {
        let mut job = Job { metadata: meta(name), ..Job::default() };
        job.status.start_time = Some(at(start));
        let condition =
            api_types::batch_v1::JobCondition { type_: kind.into(), status: "True".into(), ..Default::default() };
        job.status.conditions.push(condition);
        Arc::new(job)
    };
    let jobs = [job("b", 20, "Complete"), job("a", 10, "Complete"), job("c", 5, "Failed"), job("d", 1, "Suspended")];
    let surplus = history::surplus(&cron_job, &jobs);
    assert_eq!(surplus.iter().map(|job| job.metadata.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_job_says_when_it_was_due() {
    let mut cron_job = cron_job("* * * * *");
    cron_job.spec.job_template.metadata.labels.insert("a".into(), "b".into());
    for (zone, expected) in [
        (None, "1970-01-01T00:02:00Z"),
        (Some("Asia/Tokyo"), "1970-01-01T09:02:00+09:00"),
        (Some("UTC"), "1970-01-01T00:02:00Z"),
    ] {
        cron_job.spec.time_zone = zone.map(str::to_owned);
        let job = job_content::job(&cron_job, at(120));
        assert_eq!((job.metadata.name.as_str(), job.metadata.labels.len()), ("tick-2", 1));
        let scheduled = &job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        assert_eq!(scheduled, expected, "{zone:?}");
    }
}

/// The jobs that there are after some minutes of a job each that never ends.
async fn after_minutes(policy: &str, minutes: u64) -> (usize, usize) {
    let running = Running::start(&[DESCRIPTOR]);
    let mut cron_job = cron_job("* * * * *");
    cron_job.metadata.creation_timestamp = Time::from(running.client.clock().wall());
    cron_job.spec.concurrency_policy = policy.into();
    running.put("batch/v1/cronjobs", &cron_job);
    tokio::time::sleep(Duration::from_secs(60 * minutes + 5)).await;
    let live = running.client.namespaced::<CronJob>("ns").get("tick").await.unwrap();
    (running.count("batch/v1/jobs"), live.status.active.len())
}

#[tokio::test(start_paused = true)]
async fn jobs_start_by_the_minute_and_the_policy() {
    assert_eq!(after_minutes("Allow", 3).await, (3, 3));
    assert_eq!(after_minutes("Forbid", 3).await, (1, 1));
    assert_eq!(after_minutes("Replace", 3).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_one_starts_nothing() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut cron_job = cron_job("* * * * *");
    cron_job.spec.suspend = Some(true);
    running.put("batch/v1/cronjobs", &cron_job);
    running.server.put(
        "batch/v1/jobs",
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "other", "namespace": "ns"}}),
    );
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(running.count("batch/v1/jobs"), 1);
}

#[test]
fn schedules_without_a_zone_follow_the_processes_own() {
    let tokyo = TimeZone::find("Asia/Tokyo").unwrap();
    let noon = |spec: &CronJobSpec| {
        let schedule = plan::schedule_of(spec, &tokyo).unwrap();
        schedule.next_after(Time::parse("2026-01-01T00:00:00Z").unwrap()).unwrap().to_string()
    };
    let mut spec = cron_job("0 12 * * *").spec;
    assert_eq!(noon(&spec), "2026-01-01T03:00:00Z");
    spec.time_zone = Some("Europe/Berlin".into());
    assert_eq!(noon(&spec), "2026-01-01T11:00:00Z");
}
