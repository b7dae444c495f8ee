//! Pods that leave tainted devices, and what rules say of it.

use std::time::Duration;

use api_machinery::object::from_value;
use api_machinery::value::Value;
use api_types::core_v1::PodSchedulingGroup;
use api_types::resource_v1::DeviceToleration;
use serde_json::json;

use super::due::{leaves_at, taints};
use super::*;
use crate::workloads::fixtures::{Running, at, pod, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const SLICES: &str = "resource.k8s.io/v1/resourceslices";

fn taint(key: &str, added: i64) -> DeviceTaint {
    DeviceTaint { key: key.into(), effect: NO_EXECUTE.into(), time_added: Some(at(added)), ..DeviceTaint::default() }
}

fn toleration(key: &str, operator: &str, effect: &str, seconds: Option<i64>) -> DeviceToleration {
    DeviceToleration {
        key: key.into(),
        operator: operator.into(),
        effect: effect.into(),
        toleration_seconds: seconds,
        ..DeviceToleration::default()
    }
}

#[test]
fn tolerations_put_off_what_is_due() {
    let exists = |key, seconds| toleration(key, "Exists", NO_EXECUTE, seconds);
    for (case, tolerations, expected) in [
        ("none", vec![], Some(100)),
        ("for good", vec![exists("a", None)], None),
        ("any key", vec![exists("", None)], None),
        ("another key", vec![exists("b", None)], Some(100)),
        ("another effect", vec![toleration("a", "Exists", "", None)], Some(100)),
        ("another operator", vec![toleration("a", "Lt", NO_EXECUTE, None)], Some(100)),
        ("the same value", vec![toleration("a", "", NO_EXECUTE, Some(5))], Some(105)),
        ("the shortest", vec![exists("a", Some(60)), exists("", Some(30))], Some(130)),
        ("less than nothing", vec![exists("a", Some(-5))], Some(100)),
        ("for a while, and for good", vec![exists("a", Some(60)), exists("a", None)], None),
    ] {
        assert_eq!(leaves_at(&taint("a", 100), &tolerations), expected.map(at), "{case}");
    }
}

fn slice(name: &str, generation: i64, taint: Option<Value>) -> ResourceSlice {
    let device = json!({"name": "dev", "taints": taint.into_iter().collect::<Vec<_>>()});
    let pool = json!({"name": "p", "generation": generation, "resourceSliceCount": 1});
    from_value(&json!({"metadata": {"name": name}, "spec": {"driver": "d", "pool": pool, "devices": [device]}}))
        .expect("a slice")
}

#[test]
fn only_the_newest_generation_counts() {
    let no_execute = || Some(json!({"key": "a", "effect": NO_EXECUTE}));
    let (old, new) = (Arc::new(slice("one", 1, no_execute())), Arc::new(slice("two", 2, None)));
    assert_eq!(taints(std::slice::from_ref(&old), "dev").len(), 1);
    assert!(taints(&[old, new], "dev").is_empty());
}

/// A running pod with a claim that has the one device, and the time it is.
fn start(tolerated_seconds: i64) -> (Running, String) {
    let running = Running::start_gated(KNOWN, &[DEVICES, DEVICE_TAINTS, DEVICE_TAINT_RULES]);
    let mut user = pod("p", "Running", None);
    user.spec.resource_claims.push(from_value(&json!({"name": "e", "resourceClaimName": "c"})).expect("an entry"));
    running.put("v1/pods", &user);
    let toleration = json!({"operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": tolerated_seconds});
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "dev", "tolerations": [toleration]});
    let status = json!({"allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-uid"}]});
    let claim: ResourceClaim =
        from_value(&json!({"metadata": {"name": "c", "namespace": "ns"}, "status": status})).expect("a claim");
    running.put("resource.k8s.io/v1/resourceclaims", &claim);
    running.put(SLICES, &slice("s", 1, None));
    let now = Time::from(running.client.clock().wall()).to_string();
    (running, now)
}

fn events(running: &Running) -> Vec<String> {
    running.server.objects("v1/events").iter().map(|event| event["message"].to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pod_goes_when_its_device_is_tainted_for_longer_than_it_bears() {
    let (running, now) = start(60);
    run_until_idle().await;
    running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE, "timeAdded": now}))));
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!((running.count("v1/pods"), events(&running)), (1, vec![]));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(running.count("v1/pods"), 0);
    assert_eq!(events(&running), ["\"Marking for deletion\""]);
    assert_eq!(running.requests("PATCH", "/pods/p/status"), 1);
    running.assert_shows("device_taint_eviction_controller_pod_deletions_total 1");
}

/// With the gate for claims of groups.
#[tokio::test(start_paused = true)]
async fn pods_go_that_have_the_tainted_device_by_their_group() {
    let running = Running::start_gated(KNOWN, &[DEVICES, DEVICE_TAINTS, GROUP_CLAIMS]);
    for (name, group) in [("p", "g"), ("q", "g"), ("r", "h")] {
        let mut user = pod(name, "Running", None);
        user.spec.resource_claims.push(from_value(&json!({"name": "e", "resourceClaimName": "c"})).expect("an entry"));
        user.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some(group.into()) });
        running.put("v1/pods", &user);
    }
    let consumer = json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-uid"});
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "dev"});
    let status = json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]});
    let claim: ResourceClaim =
        from_value(&json!({"metadata": {"name": "c", "namespace": "ns"}, "status": status})).expect("a claim");
    running.put("resource.k8s.io/v1/resourceclaims", &claim);
    running.put(SLICES, &slice("s", 1, None));
    run_until_idle().await;
    running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE}))));
    run_until_idle().await;
    let left = running.server.objects("v1/pods");
    assert_eq!(left.iter().map(|pod| pod["metadata"]["name"].as_str()).collect::<Vec<_>>(), [Some("r")]);
}

/// As long as it is not known whether the pod is still there nothing is said.
#[tokio::test(start_paused = true)]
async fn what_is_about_to_happen_is_told_once() {
    let (running, now) = start(60);
    run_until_idle().await;
    running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE, "timeAdded": now}))));
    tokio::time::sleep(Duration::from_secs(50)).await;
    running.server.fail_next("GET", &[500]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(running.count("v1/pods"), 0);
    let told: Vec<_> = running.server.objects("v1/events").iter().map(|event| event["count"].to_string()).collect();
    assert_eq!(told, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_goes_in_time_is_forgotten() {
    let (running, now) = start(60);
    running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE, "timeAdded": now}))));
    tokio::time::sleep(Duration::from_secs(30)).await;
    running.put(SLICES, &slice("s", 1, None));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.count("v1/pods"), 1);
    assert_eq!(events(&running), ["\"Cancelling deletion\""]);
}

const RULES: &str = "resource.k8s.io/v1beta2/devicetaintrules";

fn put_rule(running: &Running, generation: i64, effect: &str, added: &str) {
    let spec = json!({"deviceSelector": {"driver": "d"}, "taint": {"key": "a", "effect": effect, "timeAdded": added}});
    let metadata = json!({"name": "r", "uid": "r-uid", "generation": generation});
    let rule: DeviceTaintRule = from_value(&json!({"metadata": metadata, "spec": spec})).expect("a rule");
    running.put(RULES, &rule);
}

/// Status, reason and message of the rule's condition.
fn told(running: &Running) -> [String; 3] {
    let rules = running.server.objects(RULES);
    let condition = &rules[0]["status"]["conditions"][0];
    assert_eq!(
        (condition["type"].as_str(), rules[0]["status"]["conditions"][1].is_null()),
        (Some("EvictionInProgress"), true)
    );
    ["status", "reason", "message"].map(|name| condition[name].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_rule_drives_pods_away_and_tells_of_it() {
    let (running, now) = start(60);
    run_until_idle().await;
    put_rule(&running, 1, NO_EXECUTE, &now);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(told(&running), ["True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."]);
    tokio::time::sleep(Duration::from_secs(80)).await;
    assert_eq!(running.count("v1/pods"), 0);
    assert_eq!(told(&running), ["False", "Completed", "1 pod evicted since starting the controller."]);
    assert_eq!(running.requests("PATCH", "/devicetaintrules/r/status"), 2, "while nothing happens nothing is told");
    running.assert_shows("device_taint_eviction_controller_pod_deletions_total 1");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_goes_in_time_is_forgotten() {
    let (running, now) = start(60);
    put_rule(&running, 1, NO_EXECUTE, &now);
    tokio::time::sleep(Duration::from_secs(30)).await;
    running.server.remove(RULES, "", "r");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.count("v1/pods"), 1);
    assert_eq!(events(&running), ["\"Cancelling deletion\""]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_without_effect_tells_what_it_would_do() {
    let (running, now) = start(60);
    put_rule(&running, 1, "None", &now);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let text = "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the \
                effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an \
                update.";
    assert_eq!(told(&running), ["False", "NoEffect", text]);
    assert_eq!(running.count("v1/pods"), 1);
    put_rule(&running, 2, "NoSchedule", &now);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(told(&running), ["False", "OtherEffect", "Eviction only happens for the NoExecute effect."]);
}
