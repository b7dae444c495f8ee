//! A namespace with a quota of three pods, and a ReplicaSet that wants more of them at times.

use std::time::Duration;

use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::{Namespace, ResourceQuota};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{Workload, all_run, change, create, template};

/// The namespace with the quota.
pub(crate) const BOUNDED: &str = "bounded";
/// How many pods may be there.
pub(crate) const MOST: i32 = 3;
const QUOTA: &str = "pods";
const SET: &str = "greedy";

pub(super) struct Bounded;

#[async_trait]
impl Workload for Bounded {
    async fn declare(&mut self, admin: &Client) {
        create::<Namespace>(admin, "", &json!({"metadata": {"name": BOUNDED}})).await;
        let hard = json!({"pods": MOST.to_string(), "requests.cpu": "1"});
        let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": hard}});
        create::<ResourceQuota>(admin, BOUNDED, &quota).await;
        // Until its usage was counted once, a quota refuses nothing.
        while admin.namespaced::<ResourceQuota>(BOUNDED).get(QUOTA).await.expect("a quota").status.used.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let template = template(SET, "Always", "main:1", "100m");
        let spec = json!({"replicas": MOST, "selector": {"matchLabels": {"app": SET}}, "template": template});
        create::<ReplicaSet>(admin, BOUNDED, &json!({"metadata": {"name": SET}, "spec": spec})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let replicas = rng.below(6);
        change::<ReplicaSet>(admin, BOUNDED, SET, json!({"spec": {"replicas": replicas}})).await;
        format!("scaled {SET} to {replicas}")
    }

    async fn settle(&mut self, admin: &Client) {
        change::<ReplicaSet>(admin, BOUNDED, SET, json!({"spec": {"replicas": MOST}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, BOUNDED, SET, MOST).await?;
        let status = admin.namespaced::<ResourceQuota>(BOUNDED).get(QUOTA).await?.status;
        let used = |resource: &str| status.used.get(resource).map(ToString::to_string).unwrap_or_default();
        let (pods, cpu) = (used("pods"), used("requests.cpu"));
        if pods != MOST.to_string() || cpu != "300m" {
            found.push(format!("the quota says that {pods} pods and {cpu} cores are used"));
        }
        Ok(found)
    }
}
