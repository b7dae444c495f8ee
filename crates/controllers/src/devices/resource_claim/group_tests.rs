//! Claims that pods share, from the making of their group to its end.

use api_machinery::object::from_value;
use api_types::core_v1::PodSchedulingGroup;
use api_types::resource_v1::{AllocationResult, ResourceClaimConsumerReference};
use serde_json::{Value, json};

use super::*;
use crate::workloads::fixtures::{Running, at, meta, pod, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const CLAIM_OBJECTS: &str = "resource.k8s.io/v1/resourceclaims";
const TEMPLATES: &str = "resource.k8s.io/v1/resourceclaimtemplates";
const GROUPS: &str = "scheduling.k8s.io/v1alpha2/podgroups";

fn start() -> Running {
    let running = Running::start_gated(KNOWN, GATES);
    let spec = json!({"spec": {"devices": {"requests": [{"name": "r"}]}}});
    let template: ResourceClaimTemplate =
        from_value(&json!({"metadata": {"name": "t", "namespace": "ns"}, "spec": spec})).expect("a template");
    running.put(TEMPLATES, &template);
    running
}

fn group(name: &str, entries: Value) -> PodGroup {
    let mut group: PodGroup = from_value(&json!({"spec": {"resourceClaims": entries}})).expect("a group");
    group.metadata = meta(name);
    group
}

/// A group whose pods share a claim of template `t`.
fn sharing() -> PodGroup {
    group("g", json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]))
}

/// A pod of group `g` that has no node.
fn member(name: &str, entries: Value) -> Pod {
    let mut pod = pod(name, "Pending", None);
    pod.spec.node_name.clear();
    pod.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some("g".into()) });
    pod.spec.resource_claims =
        from_value::<Pod>(&json!({"spec": {"resourceClaims": entries}})).unwrap().spec.resource_claims;
    pod
}

fn of_template() -> Value {
    json!([{"name": "gpu", "resourceClaimTemplateName": "t"}])
}

async fn claims(running: &Running) -> Vec<ResourceClaim> {
    running.client.namespaced::<ResourceClaim>("ns").list(&Default::default()).await.unwrap().items
}

async fn told(running: &Running, name: &str) -> Vec<Option<String>> {
    let pod: Pod = running.client.namespaced("ns").get(name).await.unwrap();
    pod.status.resource_claim_statuses.into_iter().map(|own| own.resource_claim_name).collect()
}

fn consumer(name: &str) -> ResourceClaimConsumerReference {
    let (name, uid) = (name.to_owned(), format!("{name}-uid"));
    ResourceClaimConsumerReference { api_group: "scheduling.k8s.io".into(), resource: "podgroups".into(), name, uid }
}

#[tokio::test(start_paused = true)]
async fn pods_share_the_claim_of_their_group() {
    let running = start();
    running.put("v1/pods", &member("a", of_template()));
    run_until_idle().await;
    assert_eq!(running.count(CLAIM_OBJECTS), 0, "it is not known what the group shares");
    running.put(GROUPS, &sharing());
    running.put("v1/pods", &member("b", of_template()));
    run_until_idle().await;
    let [claim] = claims(&running).await.try_into().expect("one claim");
    assert_eq!(claim.metadata.generate_name, "g-gpu-");
    assert_eq!(claim.metadata.annotations.get(CLAIM_NAME).map(String::as_str), Some("gpu"));
    let owner = &claim.metadata.owner_references[0];
    let expected = ("scheduling.k8s.io/v1alpha2", "PodGroup", "g-uid", Some(true), None);
    let (version, kind, uid) = (owner.api_version.as_str(), owner.kind.as_str(), owner.uid.as_str());
    assert_eq!((version, kind, uid, owner.controller, owner.block_owner_deletion), expected);
    let name = Some(claim.metadata.name.clone());
    let shown: PodGroup = running.client.namespaced("ns").get("g").await.unwrap();
    assert_eq!(shown.status.resource_claim_statuses[0].resource_claim_name, name);
    assert_eq!((told(&running, "a").await, told(&running, "b").await), (vec![name.clone()], vec![name]));
    running.assert_steady().await;

    let mut allocated = claim.clone();
    allocated.metadata.finalizers.push(FINALIZER.into());
    allocated.status.allocation = Some(AllocationResult::default());
    running.put(CLAIM_OBJECTS, &allocated);
    for name in ["a", "b"] {
        let mut bound: Pod = running.client.namespaced("ns").get(name).await.unwrap();
        bound.spec.node_name = "n".into();
        running.put("v1/pods", &bound);
        run_until_idle().await;
    }
    assert_eq!(claims(&running).await[0].status.reserved_for, [consumer("g")], "once for both");
    running.assert_steady().await;

    for name in ["a", "b"] {
        running.server.remove("v1/pods", "ns", name);
    }
    run_until_idle().await;
    assert_eq!(claims(&running).await[0].status.reserved_for.len(), 1, "the group is there");
    running.server.remove(GROUPS, "ns", "g");
    run_until_idle().await;
    let free = &claims(&running).await[0];
    assert_eq!((free.status.reserved_for.len(), free.status.allocation.is_some()), (0, false));
    assert!(free.metadata.finalizers.is_empty(), "the garbage collector takes it");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_groups_is_the_pods() {
    let running = start();
    running.put(GROUPS, &sharing());
    running.put("v1/pods", &member("a", json!([{"name": "other", "resourceClaimTemplateName": "t"}])));
    run_until_idle().await;
    let mut prefixes: Vec<String> = claims(&running).await.into_iter().map(|own| own.metadata.generate_name).collect();
    prefixes.sort_unstable();
    assert_eq!(prefixes, ["a-other-", "g-gpu-"]);
}

/// A new process knows of none that it has made, and the claim may be there before the group's status tells of it.
#[tokio::test(start_paused = true)]
async fn the_claim_that_is_there_is_meant() {
    let running = Running::start_gated(KNOWN, GATES);
    let mut claim = ResourceClaim { metadata: meta("made"), ..ResourceClaim::default() };
    claim.metadata.annotations.insert(CLAIM_NAME.into(), "gpu".into());
    claim.metadata.owner_references.push(controller::controller_ref::<PodGroup>(&sharing().metadata));
    running.put(CLAIM_OBJECTS, &claim);
    run_until_idle().await;
    running.put(GROUPS, &sharing());
    running.put("v1/pods", &member("a", of_template()));
    run_until_idle().await;
    assert_eq!(told(&running, "a").await, [Some("made".to_owned())]);
    let shown: PodGroup = running.client.namespaced("ns").get("g").await.unwrap();
    assert_eq!(shown.status.resource_claim_statuses[0].resource_claim_name.as_deref(), Some("made"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_group_that_somebody_took_away_is_made_again() {
    let running = start();
    running.put(GROUPS, &sharing());
    running.put("v1/pods", &member("a", of_template()));
    run_until_idle().await;
    let name = claims(&running).await[0].metadata.name.clone();
    running.server.remove(CLAIM_OBJECTS, "ns", &name);
    run_until_idle().await;
    let [next] = claims(&running).await.try_into().expect("one claim");
    assert_ne!(next.metadata.name, name);
    assert_eq!(told(&running, "a").await, [Some(next.metadata.name)]);
}

#[tokio::test(start_paused = true)]
async fn consumers_that_are_groups_let_go_once_they_are_gone() {
    let mut before = sharing();
    before.metadata.uid = "before".into();
    // What is there under the name of the consumer, whether groups share claims, and whether it keeps the claim.
    for (case, there, gates, keeps) in [
        ("there", Some(sharing()), GATES, true),
        ("another of the name", Some(before), GATES, false),
        ("gone", None, GATES, false),
        ("nobody knows of groups", None, &[DEVICES][..], true),
    ] {
        let running = Running::start_gated(KNOWN, gates);
        let mut claim = ResourceClaim { metadata: meta("c"), ..ResourceClaim::default() };
        claim.status.reserved_for.push(consumer("g"));
        if let Some(mut group) = there {
            group.spec.resource_claims.clear();
            running.put(GROUPS, &group);
        }
        running.put(CLAIM_OBJECTS, &claim);
        run_until_idle().await;
        assert_eq!(claims(&running).await[0].status.reserved_for.len(), usize::from(keeps), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn why_a_group_has_no_claim_is_told() {
    let running = Running::start_gated(KNOWN, GATES);
    running.put(GROUPS, &sharing());
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    run_until_idle().await;
    let text = |event: &Value| format!("{} {}", event["involvedObject"]["kind"], event["message"]).replace('"', "'");
    let events: Vec<String> = running.server.objects("v1/events").iter().map(text).collect();
    let expected = "'PodGroup' 'PodGroupResourceClaim gpu: resource claim template \\'t\\': \
                    resourceclaimtemplate.resource.k8s.io \\'t\\' not found'";
    assert_eq!(events, [expected]);
    let mut going = sharing();
    going.metadata.deletion_timestamp = Some(at(1));
    running.put(GROUPS, &going);
    let running = start();
    running.put(GROUPS, &going);
    run_until_idle().await;
    assert_eq!(running.count(CLAIM_OBJECTS), 0, "it is going");
}

/// With the gate off, what pods and groups have in common means nothing.
#[tokio::test(start_paused = true)]
async fn elsewhere_each_pod_has_its_own() {
    let running = Running::start_gated(KNOWN, &[DEVICES]);
    let template = json!({"metadata": {"name": "t", "namespace": "ns"}, "spec": {"spec": {}}});
    running.put(TEMPLATES, &from_value::<ResourceClaimTemplate>(&template).expect("a template"));
    running.put(GROUPS, &sharing());
    running.put("v1/pods", &member("a", of_template()));
    run_until_idle().await;
    let [claim] = claims(&running).await.try_into().expect("one claim");
    assert_eq!(claim.metadata.generate_name, "a-gpu-");
    assert_eq!(running.requests("GET", "podgroups"), 0);
}
