//! Three pods of which two must stay, and somebody who evicts them.

use api_machinery::meta::Status;
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::Pod;
use api_types::policy_v1::{Eviction, PodDisruptionBudget};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;

use super::{NAMESPACE, Workload, all_run, create, pick, pods_of, template};

const NAME: &str = "guarded";
const REPLICAS: i32 = 3;
/// How many of them the budget keeps.
const KEPT: i32 = 2;

pub(super) struct Guarded;

#[async_trait]
impl Workload for Guarded {
    async fn declare(&mut self, admin: &Client) {
        let selector = json!({"matchLabels": {"app": NAME}});
        let template = template(NAME, "Always", "main:1", "100m");
        let spec = json!({"replicas": REPLICAS, "selector": selector, "template": template});
        create::<ReplicaSet>(admin, NAMESPACE, &json!({"metadata": {"name": NAME}, "spec": spec})).await;
        let budget = json!({"metadata": {"name": NAME}, "spec": {"minAvailable": KEPT, "selector": selector}});
        create::<PodDisruptionBudget>(admin, NAMESPACE, &budget).await;
    }

    /// Tries to evict two at once.
    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let pods = pods_of(admin, NAMESPACE, NAME).await.expect("pods can be listed");
        let (one, two) = (pick(&pods, rng), pick(&pods, rng));
        let evict = async |pod: Option<&Pod>| match pod {
            Some(pod) => evict(admin, &pod.metadata.name).await,
            None => "nobody".to_owned(),
        };
        let (one, two) = tokio::join!(evict(one), evict(two));
        format!("evicted {one} and {two}")
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, NAME, REPLICAS).await?;
        let budget = admin.namespaced::<PodDisruptionBudget>(NAMESPACE).get(NAME).await?.status;
        let counts = [budget.expected_pods, budget.current_healthy, budget.desired_healthy, budget.disruptions_allowed];
        if counts != [REPLICAS, REPLICAS, KEPT, REPLICAS - KEPT] || !budget.disrupted_pods.is_empty() {
            found.push(format!("the budget's status: {counts:?} {:?}", budget.disrupted_pods));
        }
        Ok(found)
    }
}

async fn evict(admin: &Client, name: &str) -> String {
    let mut eviction = Eviction::default();
    eviction.metadata.name = name.to_owned();
    eviction.metadata.namespace = NAMESPACE.to_owned();
    let pods = admin.namespaced::<Pod>(NAMESPACE);
    match pods.create_subresource::<Eviction, Status>(name, "eviction", &eviction).await {
        Ok(_) => name.to_owned(),
        Err(error) if error.is_not_found() => format!("{name}, which was gone,"),
        // Too many requests: the budget does not allow it, or changed too often meanwhile.
        Err(error) => format!("{name} (refused: {error})"),
    }
}
