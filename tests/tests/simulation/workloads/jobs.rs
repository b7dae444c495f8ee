//! Two Jobs: one whose pods have indexes, and one that only counts them and is suspended now and then.

use api_types::batch_v1::Job;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, change, create, template};

const INDEXED: &str = "once";
/// Nothing but its completions tells its pods apart.
pub(crate) const COUNTED: &str = "counted";
const COMPLETIONS: i32 = 4;
const PARALLELISM: i32 = 2;
/// Pods that the story deletes count as failed ones.
const BACKOFF_LIMIT: i32 = 50;

async fn declare(admin: &Client, name: &str, mode: &str) {
    let spec = json!({
        "completionMode": mode, "completions": COMPLETIONS, "parallelism": PARALLELISM, "backoffLimit": BACKOFF_LIMIT,
        "template": template(name, "Never", "main:1", "1"),
    });
    create::<Job>(admin, NAMESPACE, &json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// A request that was doubled makes a pod too many, which may succeed before it is seen: upstream has an event for that
/// (`TooManySucceededPods`). Pods with indexes are told apart, and all but one of an index do not count.
async fn differences(admin: &Client, name: &str) -> Result<Vec<String>, ClientError> {
    let too_many = if name == COUNTED { PARALLELISM } else { 0 };
    let job = admin.namespaced::<Job>(NAMESPACE).get(name).await?.status;
    let is_complete =
        job.conditions.iter().any(|condition| condition.type_ == "Complete" && condition.status == "True");
    if is_complete && (COMPLETIONS..=COMPLETIONS + too_many).contains(&job.succeeded) && job.active == 0 {
        return Ok(Vec::new());
    }
    Ok(vec![format!("job {name}: {} succeeded, {} active, {:?}", job.succeeded, job.active, job.conditions)])
}

pub(super) struct Indexed;

#[async_trait]
impl Workload for Indexed {
    async fn declare(&mut self, admin: &Client) {
        declare(admin, INDEXED, "Indexed").await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let parallelism = rng.below(4);
        change::<Job>(admin, NAMESPACE, INDEXED, json!({"spec": {"parallelism": parallelism}})).await;
        format!("job {INDEXED} may have {parallelism} pods at once")
    }

    async fn settle(&mut self, admin: &Client) {
        change::<Job>(admin, NAMESPACE, INDEXED, json!({"spec": {"parallelism": PARALLELISM}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        differences(admin, INDEXED).await
    }
}

#[derive(Default)]
pub(super) struct Counted {
    is_suspended: bool,
}

#[async_trait]
impl Workload for Counted {
    async fn declare(&mut self, admin: &Client) {
        declare(admin, COUNTED, "NonIndexed").await;
    }

    async fn change(&mut self, admin: &Client, _rng: &Rng, _step: u64) -> String {
        self.is_suspended = !self.is_suspended;
        change::<Job>(admin, NAMESPACE, COUNTED, json!({"spec": {"suspend": self.is_suspended}})).await;
        format!("job {COUNTED} is suspended: {}", self.is_suspended)
    }

    async fn settle(&mut self, admin: &Client) {
        change::<Job>(admin, NAMESPACE, COUNTED, json!({"spec": {"suspend": false}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        differences(admin, COUNTED).await
    }
}
