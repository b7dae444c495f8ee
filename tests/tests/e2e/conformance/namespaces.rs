//! What becomes of a namespace's pods when it is deleted.

use serde_json::json;

use super::check::Check;
use super::live::Place;
use super::object::{condition_of, pause, pod, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![removed(), pods_first()]
}

fn removed() -> Check {
    const ITEM: &str = "Namespaces should ensure that all pods are removed when a namespace is deleted";
    Check::new("namespace-pods", &[ITEM], async |place: Place| {
        let other = place.another("conformance-namespace-pods").await;
        other.ready(&pod("removed", &[pause("main")], json!({}))).await;
        other.remove().await;
        let again = place.another("conformance-namespace-pods").await;
        assert!(again.items(&again.path("pods")).await.is_empty());
        again.remove().await;
    })
}

fn pods_first() -> Check {
    const ITEM: &str = "OrderedNamespaceDeletion namespace deletion should delete pod first";
    Check::new("namespace-order", &[ITEM], async |place: Place| {
        let other = place.another("conformance-namespace-order").await;
        let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        other.ready(&with(pod("held", &[pause("main")], json!({})), hold)).await;
        other.create("configmaps", &json!({"metadata": {"name": "last"}})).await.ok();
        let path = format!("/api/v1/namespaces/{}", other.namespace);
        other.delete(&path).await.ok();
        // The controller has been there, and has left alone what pods may need to end well.
        let seen =
            |found: &serde_json::Value| condition_of(found, "NamespaceDeletionContentFailure")["status"] == "False";
        other.until(&path, seen).await;
        other.until(&other.path("pods/held"), |pod| !pod["metadata"]["deletionTimestamp"].is_null()).await;
        other.stays(&other.path("configmaps/last"), 3, |found| found["metadata"]["deletionTimestamp"].is_null()).await;
        other.merge(&other.path("pods/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
        other.gone(&path).await;
    })
}
