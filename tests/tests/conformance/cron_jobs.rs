//! Cron jobs.

use std::time::Duration;

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of};
use crate::lifecycle::Lifecycle;

/// The pods never run, so that jobs stay active.
fn cron_job(name: &str, schedule: &str, policy: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedule": schedule, "concurrencyPolicy": policy, "jobTemplate": {
        "spec": {"template": {"spec": {"restartPolicy": "OnFailure", "nodeSelector": {"never": "there"},
            "containers": [{"name": "c", "image": "pause:1"}]}}}}}})
}

struct Crons {
    own: String,
    jobs: String,
}

async fn start(cx: &Cx, name: &str, policy: &str, suspend: bool) -> Crons {
    let ns = cx.namespace("cron").await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/cronjobs");
    let mut object = cron_job(name, "*/1 * * * ?", policy);
    object["spec"]["suspend"] = suspend.into();
    cx.create(&path, &object).await.ok();
    Crons { own: format!("{path}/{name}"), jobs: format!("/apis/batch/v1/namespaces/{ns}/jobs") }
}

fn active(object: &Value) -> usize {
    object["status"]["active"].as_array().map_or(0, Vec::len)
}

#[test]
fn cron_job_suspend() {
    conform(async |cx| {
        let crons = start(cx, "suspended", "Allow", true).await;
        cx.stays("no job", Duration::from_secs(180), async || {
            cx.items(&crons.jobs).await.is_empty() && active(&cx.get(&crons.own).await.ok()) == 0
        })
        .await;
    });
}

#[test]
fn cron_job_forbid_concurrent() {
    conform(async |cx| {
        let crons = start(cx, "forbid", "Forbid", false).await;
        cx.until(&crons.own, |object| active(object) == 1).await;
        let first = cx.names(&crons.jobs).await;
        cx.stays("the one job", Duration::from_secs(130), async || cx.names(&crons.jobs).await == first).await;
    });
}

#[test]
fn cron_job_replace_concurrent() {
    conform(async |cx| {
        let crons = start(cx, "replace", "Replace", false).await;
        let read = cx.until(&crons.own, |object| active(object) == 1).await;
        let first = read["status"]["active"][0]["name"].clone();
        cx.until(&crons.own, |object| active(object) == 1 && object["status"]["active"][0]["name"] != first).await;
        cx.eventually("one job", async || (cx.items(&crons.jobs).await.len() == 1).then_some(())).await;
        assert_ne!(name_of(&cx.items(&crons.jobs).await[0]), first.as_str().unwrap_or_default());
    });
}

#[test]
fn cron_job_allow_concurrent() {
    conform(async |cx| {
        let crons = start(cx, "concurrent", "Allow", false).await;
        cx.until(&crons.own, |object| active(object) >= 2).await;
        assert!(cx.items(&crons.jobs).await.len() >= 2);
    });
}

#[test]
fn cron_job_api_operations() {
    conform(async |cx| {
        let namespace = &cx.namespace("cron").await;
        let mut object = cron_job("x", "0 0 29 2 *", "Forbid");
        object["metadata"] = json!({});
        let status = Some(json!({"lastScheduleTime": "2026-01-01T00:00:00Z"}));
        Lifecycle { group: "batch", resource: "cronjobs", namespace, object, status }.run(cx).await;
    });
}
