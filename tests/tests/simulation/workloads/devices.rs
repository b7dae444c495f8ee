//! Pods with a device each, which they claim by a template. At times they want more devices than there are.

use std::collections::BTreeSet;

use api_machinery::meta::ListOptions;
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::Pod;
use api_types::resource_v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use async_trait::async_trait;
use base::Rng;
use client::{Client, ClientError};
use serde_json::json;
use testing::{NODES, Part};

use super::{NAMESPACE, Workload, all_run, change, create, pods_of, template};

const NAME: &str = "renderer";
const REPLICAS: i32 = 4;
const DRIVER: &str = "gpu.test";
/// So many are wanted at most: more than there are devices.
const MOST: u64 = 8;

pub(super) struct Renderers;

#[async_trait]
impl Workload for Renderers {
    async fn declare(&mut self, admin: &Client) {
        let selector = json!({"cel": {"expression": format!("device.driver == {DRIVER:?}")}});
        let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}});
        create::<DeviceClass>(admin, "", &class).await;
        for node in (0..NODES).map(|number| Part::Node(number).to_string()) {
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
            let devices = json!([{"name": "gpu-0"}, {"name": "gpu-1"}]);
            let spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices});
            create::<ResourceSlice>(admin, "", &json!({"metadata": {"name": format!("{node}-gpus")}, "spec": spec}))
                .await;
        }
        let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
        let of_claim = json!({"spec": {"devices": {"requests": [request]}}});
        let claim = json!({"metadata": {"name": NAME}, "spec": of_claim});
        create::<ResourceClaimTemplate>(admin, NAMESPACE, &claim).await;
        let mut template = template(NAME, "Always", "main:1", "100m");
        template["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": NAME}]);
        template["spec"]["containers"][0]["resources"]["claims"] = json!([{"name": "gpu"}]);
        let spec = json!({"replicas": REPLICAS, "selector": {"matchLabels": {"app": NAME}}, "template": template});
        create::<ReplicaSet>(admin, NAMESPACE, &json!({"metadata": {"name": NAME}, "spec": spec})).await;
    }

    async fn change(&mut self, admin: &Client, rng: &Rng, _step: u64) -> String {
        let replicas = rng.below(MOST + 1);
        change::<ReplicaSet>(admin, NAMESPACE, NAME, json!({"spec": {"replicas": replicas}})).await;
        format!("scaled {NAME} to {replicas}")
    }

    /// A scheduler alone says whose a device is, and nothing refuses one that is given twice, as with upstream.
    fn bears_late_bindings(&self) -> bool {
        false
    }

    async fn settle(&mut self, admin: &Client) {
        change::<ReplicaSet>(admin, NAMESPACE, NAME, json!({"spec": {"replicas": REPLICAS}})).await;
    }

    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError> {
        let mut found = all_run(admin, NAMESPACE, NAME, REPLICAS).await?;
        let pods = pods_of(admin, NAMESPACE, NAME).await?;
        let claims = admin.namespaced::<ResourceClaim>(NAMESPACE).list_all(&ListOptions::default()).await?.items;
        found.extend(claims.iter().filter_map(|claim| left_behind(claim, &pods)));
        found.extend(pods.iter().filter_map(|pod| difference_of(pod, &claims)));
        Ok(found)
    }
}

/// What is wrong with the claim of a pod: it must have a device where the pod is, for that pod alone.
fn difference_of(pod: &Pod, claims: &[ResourceClaim]) -> Option<String> {
    let named = pod.status.resource_claim_statuses.first().and_then(|own| own.resource_claim_name.as_ref());
    let Some(name) = named else { return Some(format!("pod {} has no claim", pod.metadata.name)) };
    let claim = claims.iter().find(|claim| claim.metadata.name == *name);
    let devices = claim.and_then(|claim| claim.status.allocation.as_ref()).map(|own| own.devices.results.as_slice());
    let is_there = matches!(devices, Some([one]) if one.pool == pod.spec.node_name);
    let users: BTreeSet<&str> =
        claim.iter().flat_map(|claim| &claim.status.reserved_for).map(|user| user.uid.as_str()).collect();
    let is_own = users == BTreeSet::from([pod.metadata.uid.as_str()]);
    (!is_there || !is_own).then(|| format!("pod {} has claim {name} with {devices:?} for {users:?}", pod.metadata.name))
}

/// What is wrong with a claim that no pod names. A request that was doubled, or whose answer was lost, has made one too many,
/// as with upstream: its name is the server's to choose. It stays for as long as its pod, and must have no device.
fn left_behind(claim: &ResourceClaim, pods: &[Pod]) -> Option<String> {
    let (meta, is_allocated) = (&claim.metadata, claim.status.allocation.is_some());
    let is_named = |pod: &Pod| {
        let mut names = pod.status.resource_claim_statuses.iter().map(|own| own.resource_claim_name.as_ref());
        names.any(|name| name == Some(&meta.name))
    };
    let is_owned = |pod: &Pod| meta.owner_references.iter().any(|owner| owner.uid == pod.metadata.uid);
    let is_left = !pods.iter().any(is_named) && (is_allocated || !pods.iter().any(is_owned));
    is_left.then(|| format!("claim {} is left, with devices: {is_allocated}", meta.name))
}
