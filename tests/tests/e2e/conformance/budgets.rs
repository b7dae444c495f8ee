//! PodDisruptionBudgets and evictions.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{pause, pod, with};

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "DisruptionController should block an eviction until the PDB is updated to allow it",
        "DisruptionController should observe PodDisruptionBudget status updated",
        "DisruptionController should update/patch PodDisruptionBudget status",
    ];
    vec![Check::new("disruption-budgets", ITEMS, budgets)]
}

async fn budgets(place: Place) {
    let labelled =
        |name: &str| with(pod(name, &[pause("main")], json!({})), json!({"metadata": {"labels": {"app": "budget"}}}));
    for name in ["budget-1", "budget-2", "budget-3"] {
        place.ready(&labelled(name)).await;
    }
    let budget = json!({"metadata": {"name": "budget"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "budget"}}}});
    place.create("poddisruptionbudgets", &budget).await.ok();
    let path = place.path("poddisruptionbudgets/budget");
    place.until(&path, |found| found["status"]["disruptionsAllowed"] == 2).await;
    let status = format!("{path}/status");
    let mut found = place.get(&status).await.ok();
    found["status"]["disruptedPods"] = json!({"gone": "2026-01-01T00:00:00Z"});
    assert!(!place.replace(&status, &found).await.ok()["status"]["disruptedPods"]["gone"].is_null());
    let patched = place.merge(&status, &json!({"status": {"disruptedPods": {"gone": null}}})).await.ok();
    assert!(patched["status"]["disruptedPods"]["gone"].is_null());

    place.merge(&path, &json!({"spec": {"minAvailable": 3}})).await.ok();
    let seen = |found: &Value| found["status"]["observedGeneration"] == found["metadata"]["generation"];
    place.until(&path, |found| seen(found) && found["status"]["disruptionsAllowed"] == 0).await;
    let evict = async |name: &str| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        place.create(&format!("pods/{name}/eviction"), &eviction).await
    };
    let refused = evict("budget-1").await;
    assert_eq!((refused.code, &refused.body["reason"]), (429, &json!("TooManyRequests")), "{}", refused.text);
    place.merge(&path, &json!({"spec": {"minAvailable": 2}})).await.ok();
    place.until(&path, |found| seen(found) && found["status"]["disruptionsAllowed"] == 1).await;
    evict("budget-1").await.ok();
    place.gone(&place.path("pods/budget-1")).await;
    place.until(&path, |found| found["status"]["disruptionsAllowed"] == 0).await;
    assert_eq!(evict("budget-2").await.code, 429);
    place.delete(&path).await.ok();
    evict("budget-2").await.ok();
    place.gone(&place.path("pods/budget-2")).await;
}
