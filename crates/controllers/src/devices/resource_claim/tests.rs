//! Claims from the making of their pod to its end.

use api_machinery::object::from_value;
use api_types::resource_v1::{AllocationResult, ResourceClaimConsumerReference};
use serde_json::json;

use super::*;
use crate::workloads::fixtures::{Running, pod, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const ALL: &str = "resource.k8s.io/v1/resourceclaims";
const TEMPLATES: &str = "resource.k8s.io/v1/resourceclaimtemplates";

fn template() -> ResourceClaimTemplate {
    let spec = json!({"metadata": {"labels": {"l": "v"}}, "spec": {"devices": {"requests": [{"name": "r"}]}}});
    from_value(&json!({"metadata": {"name": "t", "namespace": "ns"}, "spec": spec})).expect("a template")
}

/// A pod that wants a claim of template `t` and has no node.
fn wanting() -> Pod {
    let mut pod = pod("p", "Pending", None);
    pod.spec.node_name.clear();
    let entry = json!({"name": "gpu", "resourceClaimTemplateName": "t"});
    pod.spec.resource_claims.push(from_value(&entry).expect("an entry"));
    pod
}

async fn claims(running: &Running) -> Vec<ResourceClaim> {
    running.client.namespaced::<ResourceClaim>("ns").list(&Default::default()).await.unwrap().items
}

fn events(running: &Running) -> Vec<String> {
    let text = |event: &serde_json::Value| format!("{} {}", event["reason"], event["message"]).replace('"', "'");
    running.server.objects("v1/events").iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_claim_lives_as_long_as_its_pod_needs_it() {
    let running = Running::start_gated(KNOWN, GATES);
    running.put(TEMPLATES, &template());
    running.put("v1/pods", &wanting());
    run_until_idle().await;
    let [claim] = claims(&running).await.try_into().expect("one claim");
    assert_eq!(claim.metadata.generate_name, "p-gpu-");
    assert_eq!(claim.metadata.annotations.get(CLAIM_NAME).map(String::as_str), Some("gpu"));
    assert_eq!(claim.metadata.labels.get("l").map(String::as_str), Some("v"));
    let owner = &claim.metadata.owner_references[0];
    assert_eq!((owner.uid.as_str(), owner.controller, owner.block_owner_deletion), ("p-uid", Some(true), None));
    let told: Pod = running.client.namespaced("ns").get("p").await.unwrap();
    assert_eq!(told.status.resource_claim_statuses[0].resource_claim_name.as_ref(), Some(&claim.metadata.name));
    running.assert_steady().await;

    let mut allocated = claim.clone();
    allocated.metadata.finalizers.push(FINALIZER.into());
    allocated.status.allocation = Some(AllocationResult::default());
    running.put(ALL, &allocated);
    let mut bound = told.clone();
    bound.spec.node_name = "n".into();
    running.put("v1/pods", &bound);
    run_until_idle().await;
    let [reserved] = claims(&running).await.try_into().expect("one claim");
    assert_eq!(reserved.status.reserved_for.iter().map(|own| own.uid.as_str()).collect::<Vec<_>>(), ["p-uid"]);
    running.assert_steady().await;

    bound.status.phase = "Succeeded".into();
    running.put("v1/pods", &bound);
    run_until_idle().await;
    assert_eq!(running.count(ALL), 0, "the pod has ended");
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_somebody_took_away_is_made_again() {
    let running = Running::start_gated(KNOWN, GATES);
    running.put(TEMPLATES, &template());
    running.put("v1/pods", &wanting());
    run_until_idle().await;
    let name = claims(&running).await[0].metadata.name.clone();
    running.server.remove(ALL, "ns", &name);
    run_until_idle().await;
    assert_ne!(claims(&running).await[0].metadata.name, name);
    assert_eq!(running.requests("POST", "/resourceclaims"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_shared_claim_is_free_once_the_last_has_ended() {
    let running = Running::start_gated(KNOWN, GATES);
    let mut claim = ResourceClaim::default();
    (claim.metadata.name, claim.metadata.namespace) = ("shared".into(), "ns".into());
    claim.metadata.finalizers.push(FINALIZER.into());
    claim.status.allocation = Some(AllocationResult::default());
    for name in ["a", "b"] {
        let mut user = pod(name, "Running", None);
        let entry = json!({"name": "e", "resourceClaimName": "shared"});
        user.spec.resource_claims.push(from_value(&entry).expect("an entry"));
        running.put("v1/pods", &user);
        claim.status.reserved_for.push(ResourceClaimConsumerReference {
            resource: "pods".into(),
            name: name.into(),
            uid: format!("{name}-uid"),
            ..Default::default()
        });
    }
    running.put(ALL, &claim);
    run_until_idle().await;
    assert_eq!(running.requests("PUT", "/resourceclaims"), 0, "both are alive");
    running.server.remove("v1/pods", "ns", "a");
    run_until_idle().await;
    let left = &claims(&running).await[0].status;
    assert_eq!((left.reserved_for.len(), left.allocation.is_some()), (1, true));
    running.server.remove("v1/pods", "ns", "b");
    run_until_idle().await;
    let free = &claims(&running).await[0];
    assert_eq!((free.status.reserved_for.len(), free.status.allocation.is_some()), (0, false));
    assert!(free.metadata.finalizers.is_empty());
}

/// What a watch that broke shows of it last may be older than its claims.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_known_to_have_claims_lets_go_of_them() {
    let running = Running::start_gated(KNOWN, GATES);
    let user = wanting();
    let mut claim = ResourceClaim::default();
    (claim.metadata.name, claim.metadata.namespace) = ("made".into(), "ns".into());
    claim.metadata.finalizers.push(FINALIZER.into());
    claim.status.allocation = Some(AllocationResult::default());
    let (resource, name, uid) = ("pods".into(), user.metadata.name.clone(), user.metadata.uid.clone());
    claim.status.reserved_for.push(ResourceClaimConsumerReference { resource, name, uid, ..Default::default() });
    running.put("v1/pods", &user);
    running.put(ALL, &claim);
    run_until_idle().await;
    assert_eq!(claims(&running).await[0].status.reserved_for.len(), 1);
    running.server.remove("v1/pods", "ns", "p");
    run_until_idle().await;
    assert!(claims(&running).await[0].status.allocation.is_none());
}

/// Answers of the server may be lost, and the cache may know of a claim before the pod's status tells of it.
#[tokio::test(start_paused = true)]
async fn of_several_claims_the_one_that_was_told_is_meant() {
    let running = Running::start_gated(KNOWN, GATES);
    running.put(TEMPLATES, &template());
    running.put("v1/pods", &wanting());
    run_until_idle().await;
    let [claim] = claims(&running).await.try_into().expect("one claim");
    let mut twin = claim.clone();
    (twin.metadata.name, twin.metadata.uid) = ("a-twin".into(), "twin-uid".into());
    running.put(ALL, &twin);
    // The status of before comes once more.
    running.put("v1/pods", &wanting());
    run_until_idle().await;
    let told: Pod = running.client.namespaced("ns").get("p").await.unwrap();
    assert_eq!(told.status.resource_claim_statuses[0].resource_claim_name.as_ref(), Some(&claim.metadata.name));
}

/// A new process knows of none that it has made.
#[tokio::test(start_paused = true)]
async fn of_several_claims_the_one_that_has_devices_is_meant() {
    let running = Running::start_gated(KNOWN, GATES);
    let pod = wanting();
    for (name, has_devices) in [("a", false), ("b", true), ("c", false)] {
        let mut claim = ResourceClaim::default();
        (claim.metadata.name, claim.metadata.namespace) = (name.into(), "ns".into());
        claim.metadata.annotations.insert(CLAIM_NAME.into(), "gpu".into());
        claim.metadata.owner_references.push(controller::controller_ref::<Pod>(&pod.metadata));
        claim.status.allocation = has_devices.then(AllocationResult::default);
        running.put(ALL, &claim);
    }
    run_until_idle().await;
    running.put("v1/pods", &pod);
    run_until_idle().await;
    let told: Pod = running.client.namespaced("ns").get("p").await.unwrap();
    assert_eq!(told.status.resource_claim_statuses[0].resource_claim_name.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn why_there_is_no_claim_is_told() {
    let running = Running::start_gated(KNOWN, GATES);
    running.put("v1/pods", &wanting());
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    run_until_idle().await;
    let expected = "'FailedResourceClaimCreation' 'PodResourceClaim gpu: resource claim template \\'t\\': \
                    resourceclaimtemplate.resource.k8s.io \\'t\\' not found'";
    assert_eq!(events(&running), [expected]);
    running.put(TEMPLATES, &template());
    run_until_idle().await;
    assert_eq!(running.count(ALL), 1);
}
