//! A Deployment with a Service. Its pods ask for so much that not all that a rollout wants fits at once.

use std::collections::BTreeSet;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::value::Value;
use api_types::apps_v1::{Deployment, ReplicaSet};
use api_types::core_v1::{Pod, Service};
use api_types::discovery_v1::EndpointSlice;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError, Patch};
use serde_json::json;

use super::{NAMESPACE, Workload, create, does_not_run, is_ending, is_ready, pods_of};

const NAME: &str = "web";
const REPLICAS: i32 = 3;
/// After this long no slice may lead to a pod that has begun to end.
const LEADS_NOWHERE: Duration = Duration::from_secs(2);

pub(crate) struct Web {
    image: String,
}

impl Default for Web {
    fn default() -> Self {
        Self { image: "web:0".to_owned() }
    }
}

async fn patch(admin: &Client, patch: Value) {
    let deployments = admin.namespaced::<Deployment>(NAMESPACE);
    deployments.patch(NAME, &Patch::Strategic(patch)).await.expect("the deployment can be changed");
}

async fn slices(admin: &Client) -> Result<Vec<EndpointSlice>, ClientError> {
    let own = ListOptions { label_selector: format!("kubernetes.io/service-name={NAME}"), ..ListOptions::default() };
    Ok(admin.namespaced::<EndpointSlice>(NAMESPACE).list_all(&own).await?.items)
}

#[async_trait]
impl Workload for Web {
    async fn declare(&mut self, admin: &Client) {
        let labels = json!({"app": NAME});
        let container = json!({
            "name": "web", "image": self.image, "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "3"}}});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let spec = json!({"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template});
        create::<Deployment>(admin, NAMESPACE, &json!({"metadata": {"name": NAME}, "spec": spec})).await;
        let spec = json!({"selector": labels, "ports": [{"port": 80, "targetPort": 80}]});
        create::<Service>(admin, NAMESPACE, &json!({"metadata": {"name": NAME}, "spec": spec})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, step: u64) -> String {
        if rng.below(5) < 3 {
            let replicas = rng.below(6);
            patch(admin, json!({"spec": {"replicas": replicas}})).await;
            return format!("scaled {NAME} to {replicas}");
        }
        self.image = format!("web:{step}");
        let container = json!({"name": "web", "image": self.image});
        patch(admin, json!({"spec": {"template": {"spec": {"containers": [container]}}}})).await;
        format!("rolled {NAME} to {}", self.image)
    }

    async fn settle(&mut self, admin: &Client) {
        patch(admin, json!({"spec": {"replicas": REPLICAS}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = Vec::new();
        let deployment = admin.namespaced::<Deployment>(NAMESPACE).get(NAME).await?;
        let sets = admin.namespaced::<ReplicaSet>(NAMESPACE).list_all(&ListOptions::default()).await?.items;
        let pods = pods_of(admin, NAMESPACE, NAME).await?;

        let status = &deployment.status;
        let counts = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas];
        let is_observed = status.observed_generation == deployment.metadata.generation;
        if !is_observed || counts.iter().any(|&count| count != REPLICAS) {
            found.push(format!("the deployment's status: generation {}, {counts:?}", status.observed_generation));
        }
        let is_own =
            |set: &&ReplicaSet| set.metadata.owner_references.iter().any(|owner| owner.uid == deployment.metadata.uid);
        let used = sets.iter().filter(is_own).filter(|set| set.spec.replicas.unwrap_or(1) > 0);
        let used: Vec<&ReplicaSet> = used.collect();
        if used.len() != 1 {
            found.push(format!("{} replica sets are in use", used.len()));
        }
        if i32::try_from(pods.len()) != Ok(REPLICAS) {
            found.push(format!("there are {} pods", pods.len()));
        }
        let used = used.first().map(|set| set.metadata.uid.as_str());
        found.extend(pods.iter().flat_map(|pod| self.differences_of_pod(pod, used)));
        let listed = slices(admin).await?;
        let endpoints = listed.iter().flat_map(|slice| &slice.endpoints);
        let listed: Vec<&String> = endpoints.flat_map(|endpoint| &endpoint.addresses).collect();
        let wanted: BTreeSet<&String> = pods.iter().filter(|pod| is_ready(pod)).map(|pod| &pod.status.pod_ip).collect();
        if listed.len() != wanted.len() || listed.iter().copied().collect::<BTreeSet<_>>() != wanted {
            found.push(format!("the endpoint slices list {listed:?}, not {wanted:?}"));
        }
        Ok(found)
    }

    /// Deletes a pod, and looks where the slices lead soon after.
    async fn try_out(&mut self, admin: &Client) -> Vec<String> {
        let pods = pods_of(admin, NAMESPACE, NAME).await.expect("pods can be listed");
        let Some(pod) = pods.first() else { return vec![format!("{NAME} has no pod")] };
        let deleted = admin.namespaced::<Pod>(NAMESPACE).delete(&pod.metadata.name, &DeleteOptions::default()).await;
        deleted.expect("the pod is there");
        tokio::time::sleep(LEADS_NOWHERE).await;
        let slices = slices(admin).await.expect("slices can be listed");
        let mut endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        let leads = endpoints.any(|endpoint| {
            endpoint.conditions.ready != Some(false) && endpoint.addresses.contains(&pod.status.pod_ip)
        });
        leads
            .then(|| format!("{LEADS_NOWHERE:?} after its end began, slices lead to {}", pod.metadata.name))
            .into_iter()
            .collect()
    }
}

impl Web {
    fn differences_of_pod(&self, pod: &Pod, set: Option<&str>) -> Vec<String> {
        let (mut found, name) = (Vec::new(), &pod.metadata.name);
        if is_ending(pod) || !is_ready(pod) {
            found.push(does_not_run(pod));
        }
        if pod.spec.containers.iter().any(|container| container.image != self.image) {
            found.push(format!("pod {name} is of an old template"));
        }
        if pod.metadata.owner_references.first().map(|owner| owner.uid.as_str()) != set {
            found.push(format!("pod {name} is not of the replica set in use"));
        }
        found
    }
}
