//! A Deployment whose size an autoscaler sets by a load that its pods share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::from_value;
use api_machinery::time::Time;
use api_types::apiextensions_v1::CustomResourceDefinition;
use api_types::apps_v1::Deployment;
use api_types::autoscaling_v2::HorizontalPodAutoscaler;
use api_types::metrics_v1beta1::PodMetrics;
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError, ContentType};
use serde_json::json;

use super::{NAMESPACE, Workload, all_run, create, is_ending, is_ready, pods_of, template};

pub(crate) const ELASTIC: &str = "elastic";
/// The limits of its size.
pub(crate) const FEWEST: u32 = 1;
pub(crate) const LARGEST: u32 = 4;
/// What a pod is to use, in thousandths of a core: half of what it asks for.
const GOAL: u32 = 100;
/// Loads, in thousandths of a core. Each has one size to which it leads, whichever is there before.
const LOADS: [u32; 5] = [80, 180, 280, 380, 900];
/// How often it is told what pods use, and over which window.
const PERIOD: Duration = Duration::from_secs(10);
/// How long a new API may take to be served.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Elastic {
    load: Arc<AtomicU32>,
}

/// The size that a load leads to.
fn size_for(load: u32) -> i32 {
    i32::try_from(load.div_ceil(GOAL).clamp(FEWEST, LARGEST)).unwrap_or_default()
}

#[async_trait]
impl Workload for Elastic {
    async fn declare(&mut self, admin: &Client) {
        self.load.store(LOADS[1], Ordering::Relaxed);
        let json = admin.derive(|config| client::ClientConfig { content: ContentType::Json, ..config });
        let json = json.expect("a client");
        serve_metrics(&json).await;
        let template = template(ELASTIC, "Always", "main:1", "200m");
        let spec = json!({"replicas": FEWEST, "selector": {"matchLabels": {"app": ELASTIC}}, "template": template});
        create::<Deployment>(admin, NAMESPACE, &json!({"metadata": {"name": ELASTIC}, "spec": spec})).await;
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": ELASTIC});
        let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
        let spec = json!({"scaleTargetRef": target, "minReplicas": FEWEST, "maxReplicas": LARGEST,
            "metrics": [{"type": "Resource", "resource": cpu}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 15}}});
        create::<HorizontalPodAutoscaler>(admin, NAMESPACE, &json!({"metadata": {"name": ELASTIC}, "spec": spec}))
            .await;
        let load = Arc::clone(&self.load);
        admin.tasks().spawn_cancellable("metrics", async move {
            loop {
                if let Err(error) = tell(&json, load.load(Ordering::Relaxed)).await {
                    tracing::info!(%error, "What pods use was not told");
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
    }

    async fn change(&mut self, _admin: &Client, rng: &Rng, _step: u64) -> String {
        let load = super::pick(&LOADS, rng).copied().unwrap_or(GOAL);
        self.load.store(load, Ordering::Relaxed);
        format!("the load of {ELASTIC} is {load}")
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let size = size_for(self.load.load(Ordering::Relaxed));
        let mut found = all_run(admin, NAMESPACE, ELASTIC, size).await?;
        let status = admin.namespaced::<HorizontalPodAutoscaler>(NAMESPACE).get(ELASTIC).await?.status;
        let sizes = [status.current_replicas, status.desired_replicas];
        if sizes.iter().any(|&own| own != size) {
            found.push(format!("the autoscaler is for {sizes:?} of {ELASTIC}, not {size}"));
        }
        Ok(found)
    }
}

/// Metrics of pods are objects like others, which only differ by who writes them.
async fn serve_metrics(admin: &Client) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "pods", "singular": "pod", "kind": "PodMetrics", "listKind": "PodMetricsList"});
    let definition = json!({
        "metadata": {"name": "pods.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, stands in for an aggregated API"}},
        "spec": {"group": "metrics.k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}});
    create::<CustomResourceDefinition>(admin, "", &definition).await;
    let metrics = admin.namespaced::<PodMetrics>(NAMESPACE);
    let served = async {
        while metrics.list_all(&ListOptions::default()).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, served).await.expect("metrics are served");
}

/// Tells that the pods that run share a load.
async fn tell(admin: &Client, load: u32) -> Result<(), ClientError> {
    let mut pods = pods_of(admin, NAMESPACE, ELASTIC).await?;
    pods.retain(|pod| is_ready(pod) && !is_ending(pod));
    let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
    let api = admin.namespaced::<PodMetrics>(NAMESPACE);
    let known = api.list_all(&ListOptions::default()).await?.items;
    for gone in known.iter().filter(|own| !pods.iter().any(|pod| pod.metadata.name == own.metadata.name)) {
        api.delete(&gone.metadata.name, &DeleteOptions::default()).await?;
    }
    for pod in &pods {
        let name = &pod.metadata.name;
        let before = known.iter().find(|own| own.metadata.name == *name);
        let version = before.map(|own| own.metadata.resource_version.clone()).unwrap_or_default();
        let usage = json!({"cpu": format!("{}m", load / count), "memory": "10Mi"});
        let metrics = json!({"metadata": {"name": name, "labels": {"app": ELASTIC}, "resourceVersion": version},
            "timestamp": Time::from(admin.clock().wall()).to_string(), "window": "10s",
            "containers": [{"name": "main", "usage": usage}]});
        let metrics = from_value::<PodMetrics>(&metrics).expect("metrics");
        match before {
            Some(_) => drop(api.update(&metrics).await?),
            None => drop(api.create(&metrics).await?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_leads_to_a_size_within_the_limits() {
        assert_eq!(LOADS.map(size_for), [1, 2, 3, 4, 4]);
    }
}
