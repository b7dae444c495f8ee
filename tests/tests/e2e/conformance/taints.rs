//! Taints that end pods: each at its own time, and not if the taint is gone before. Others' pods on the node are ended
//! as well, so these checks are not for running beside others.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{pause, pod};

const KEY: &str = "example.com/evict";
const NODE: &str = "node-2";

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "NoExecuteTaintManager Multiple Pods evicts pods with minTolerationSeconds",
        "NoExecuteTaintManager Single Pod removing taint cancels eviction",
    ];
    vec![Check::new("taints", ITEMS, taints)]
}

/// A pod that stands the taint for a while.
fn tolerating(name: &str, seconds: u32) -> Value {
    let toleration =
        json!({"key": KEY, "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": seconds});
    pod(name, &[pause("main")], json!({"tolerations": [toleration], "nodeSelector": {"kubernetes.io/hostname": NODE}}))
}

async fn taint(place: &Place, is_there: bool) {
    let path = format!("/api/v1/nodes/{NODE}");
    let taint = json!({"key": KEY, "value": "yes", "effect": "NoExecute"});
    let taints = if is_there { json!([taint]) } else { Value::Null };
    place.merge(&path, &json!({"spec": {"taints": taints}})).await.ok();
}

async fn taints(place: Place) {
    // A run that failed may have left it.
    taint(&place, false).await;
    for pod in [tolerating("short", 3), tolerating("long", 12)] {
        place.ready(&pod).await;
    }
    taint(&place, true).await;
    place.gone(&place.path("pods/short")).await;
    let still_there = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    assert!(still_there(&place.get(&place.path("pods/long")).await.ok()), "both went at the same time");
    // Its time starts when the taint comes, and does not come when it is lifted before.
    place.gone(&place.path("pods/long")).await;
    taint(&place, false).await;
    place.ready(&tolerating("cancelled", 6)).await;
    taint(&place, true).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    taint(&place, false).await;
    place.stays(&place.path("pods/cancelled"), 8, still_there).await;
}
