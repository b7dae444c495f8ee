//! A CronJob that runs every minute, and is suspended at the end.

use api_machinery::meta::ListOptions;
use api_types::batch_v1::{CronJob, Job};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, change, create, pick, template};

const NAME: &str = "minutely";
/// How many Jobs of each outcome are kept.
const KEPT: usize = 1;

pub(super) struct EveryMinute;

#[async_trait]
impl Workload for EveryMinute {
    async fn declare(&mut self, admin: &Client) {
        let job = json!({"backoffLimit": 1, "template": template(NAME, "Never", "main:1", "100m")});
        let spec = json!({
            "schedule": "* * * * *", "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": KEPT,
            "failedJobsHistoryLimit": KEPT, "jobTemplate": {"metadata": {"labels": {"cron": NAME}}, "spec": job},
        });
        create::<CronJob>(admin, NAMESPACE, &json!({"metadata": {"name": NAME}, "spec": spec})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let policy = pick(&["Allow", "Forbid", "Replace"], rng).copied().unwrap_or("Allow");
        change::<CronJob>(admin, NAMESPACE, NAME, json!({"spec": {"concurrencyPolicy": policy}})).await;
        format!("{NAME} has the policy {policy}")
    }

    async fn settle(&mut self, admin: &Client) {
        change::<CronJob>(admin, NAMESPACE, NAME, json!({"spec": {"suspend": true}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = Vec::new();
        let cron = admin.namespaced::<CronJob>(NAMESPACE).get(NAME).await?.status;
        if !cron.active.is_empty() {
            found.push(format!("{NAME} has {} active jobs", cron.active.len()));
        }
        let own = ListOptions { label_selector: format!("cron={NAME}"), ..ListOptions::default() };
        let jobs = admin.namespaced::<Job>(NAMESPACE).list_all(&own).await?.items;
        for outcome in ["Complete", "Failed"] {
            let ended = jobs.iter().filter(|job| has(job, outcome)).count();
            if ended > KEPT {
                found.push(format!("{ended} jobs of {NAME} that are {outcome} are kept"));
            }
        }
        let going = jobs.iter().filter(|job| !has(job, "Complete") && !has(job, "Failed"));
        found.extend(going.map(|job| format!("job {} has not ended", job.metadata.name)));
        Ok(found)
    }
}

fn has(job: &Job, outcome: &str) -> bool {
    job.status.conditions.iter().any(|condition| condition.type_ == outcome && condition.status == "True")
}
