//! A StatefulSet of three.

use api_types::apps_v1::StatefulSet;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, all_run, change, create, template};

const NAME: &str = "db";
const REPLICAS: i32 = 3;

pub(super) struct Database;

#[async_trait]
impl Workload for Database {
    async fn declare(&mut self, admin: &Client) {
        let set = json!({"metadata": {"name": NAME}, "spec": {
            "replicas": REPLICAS, "serviceName": NAME, "selector": {"matchLabels": {"app": NAME}},
            "template": template(NAME, "Always", "main:1", "1"),
        }});
        create::<StatefulSet>(admin, NAMESPACE, &set).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, step: u64) -> String {
        if rng.below(2) == 0 {
            let replicas = rng.below(5);
            change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": {"replicas": replicas}})).await;
            return format!("scaled {NAME} to {replicas}");
        }
        let image = format!("main:{step}");
        let template = template(NAME, "Always", &image, "1");
        change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": {"template": template}})).await;
        format!("rolled {NAME} to {image}")
    }

    async fn settle(&mut self, admin: &Client) {
        change::<StatefulSet>(admin, NAMESPACE, NAME, json!({"spec": {"replicas": REPLICAS}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, NAME, REPLICAS).await?;
        let set = admin.namespaced::<StatefulSet>(NAMESPACE).get(NAME).await?.status;
        let counts = [set.replicas, set.updated_replicas, set.ready_replicas, set.available_replicas];
        if counts.iter().any(|&count| count != REPLICAS) || set.current_revision != set.update_revision {
            found.push(format!("the stateful set's status: {counts:?}"));
        }
        Ok(found)
    }
}
