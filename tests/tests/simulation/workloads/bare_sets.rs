//! A ReplicaSet without a Deployment, one of whose pods is let go now and then, and a ReplicationController.

use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::{Pod, ReplicationController};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::{Value, json};

use super::{NAMESPACE, Workload, all_run, change, create, pick, pods_of, template};

const SET: &str = "bare";
const CONTROLLER: &str = "old";
const REPLICAS: i32 = 2;

fn counts_differ(name: &str, counts: [i32; 3]) -> Option<String> {
    counts.iter().any(|&count| count != REPLICAS).then(|| format!("the status of {name}: {counts:?}"))
}

#[derive(Default)]
pub(super) struct BareReplicaSet {
    /// How many pods were let go.
    let_go: usize,
}

#[async_trait]
impl Workload for BareReplicaSet {
    async fn declare(&mut self, admin: &Client) {
        let template = template(SET, "Always", "main:1", "100m");
        let spec = json!({"replicas": REPLICAS, "selector": {"matchLabels": {"app": SET}}, "template": template});
        create::<ReplicaSet>(admin, NAMESPACE, &json!({"metadata": {"name": SET}, "spec": spec})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        if rng.below(3) > 0 {
            let replicas = rng.below(5);
            change::<ReplicaSet>(admin, NAMESPACE, SET, json!({"spec": {"replicas": replicas}})).await;
            return format!("scaled {SET} to {replicas}");
        }
        let pods = pods_of(admin, NAMESPACE, SET).await.expect("pods can be listed");
        let Some(pod) = pick(&pods, rng) else { return format!("{SET} had no pod to let go") };
        let patch = client::Patch::Merge(json!({"metadata": {"labels": {"app": "free"}}}));
        match admin.namespaced::<Pod>(NAMESPACE).patch(&pod.metadata.name, &patch).await {
            Ok(_) => self.let_go += 1,
            Err(error) => assert!(error.is_not_found(), "{}: {error}", pod.metadata.name),
        }
        format!("{} is no longer of {SET}", pod.metadata.name)
    }

    async fn settle(&mut self, admin: &Client) {
        change::<ReplicaSet>(admin, NAMESPACE, SET, json!({"spec": {"replicas": REPLICAS}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, SET, REPLICAS).await?;
        let set = admin.namespaced::<ReplicaSet>(NAMESPACE).get(SET).await?.status;
        found.extend(counts_differ(SET, [set.replicas, set.ready_replicas, set.available_replicas]));
        let free = pods_of(admin, NAMESPACE, "free").await?;
        // Those may have been deleted since, but none can have come by itself, and none has an owner any more.
        if free.len() > self.let_go {
            found.push(format!("{} pods are free, and {} were let go", free.len(), self.let_go));
        }
        let owned = free.iter().filter(|pod| !pod.metadata.owner_references.is_empty());
        found.extend(owned.map(|pod| format!("{} is still owned", pod.metadata.name)));
        Ok(found)
    }
}

pub(super) struct Controller;

fn replicas(count: u64) -> Value {
    json!({"spec": {"replicas": count}})
}

#[async_trait]
impl Workload for Controller {
    async fn declare(&mut self, admin: &Client) {
        let template = template(CONTROLLER, "Always", "main:1", "100m");
        let spec = json!({"replicas": REPLICAS, "selector": {"app": CONTROLLER}, "template": template});
        let object = json!({"metadata": {"name": CONTROLLER}, "spec": spec});
        create::<ReplicationController>(admin, NAMESPACE, &object).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let count = rng.below(5);
        change::<ReplicationController>(admin, NAMESPACE, CONTROLLER, replicas(count)).await;
        format!("scaled {CONTROLLER} to {count}")
    }

    async fn settle(&mut self, admin: &Client) {
        let count = u64::from(REPLICAS.unsigned_abs());
        change::<ReplicationController>(admin, NAMESPACE, CONTROLLER, replicas(count)).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, CONTROLLER, REPLICAS).await?;
        let status = admin.namespaced::<ReplicationController>(NAMESPACE).get(CONTROLLER).await?.status;
        found.extend(counts_differ(CONTROLLER, [status.replicas, status.ready_replicas, status.available_replicas]));
        Ok(found)
    }
}
