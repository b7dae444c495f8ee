//! Namespaces: finalizers, status, labels, and the end of what is in them.

use serde_json::json;

use crate::custom_resources::condition;
use crate::harness::{conform, patch, text};
use crate::lifecycle::label;

const FINALIZER: &str = "e2e.example.com/fakeFinalizer";

#[test]
fn apply_a_finalizer_to_a_namespace() {
    conform(async |cx| {
        let ns = cx.namespace("finalized").await;
        let finalize = format!("/api/v1/namespaces/{ns}/finalize");
        let mut object = cx.get(&format!("/api/v1/namespaces/{ns}")).await.ok();
        object["spec"]["finalizers"].as_array_mut().expect("finalizers").push(FINALIZER.into());
        let updated = cx.replace(&finalize, &object).await.ok();
        assert_eq!(updated["spec"]["finalizers"], json!(["kubernetes", FINALIZER]));
        let mut object = cx.get(&format!("/api/v1/namespaces/{ns}")).await.ok();
        object["spec"]["finalizers"].as_array_mut().expect("finalizers").pop();
        let updated = cx.replace(&finalize, &object).await.ok();
        assert_eq!(updated["spec"]["finalizers"], json!(["kubernetes"]));
    });
}

#[test]
fn apply_an_update_to_a_namespace() {
    conform(async |cx| {
        let ns = cx.namespace("updated").await;
        let path = format!("/api/v1/namespaces/{ns}");
        let mut object = cx.get(&path).await.ok();
        object["metadata"]["labels"][&ns] = "updated".into();
        cx.replace(&path, &object).await.ok();
        assert_eq!(cx.get(&path).await.ok()["metadata"]["labels"][&ns], "updated");
    });
}

#[test]
fn apply_changes_to_a_namespace_status() {
    conform(async |cx| {
        let ns = cx.namespace("status").await;
        let path = format!("/api/v1/namespaces/{ns}/status");
        assert_eq!(cx.get(&path).await.ok()["status"]["phase"], "Active");
        let body = json!({"metadata": {"annotations": {"e2e-patched-ns-status": ns}}, "status": {"conditions": [
            {"type": "StatusPatch", "status": "True", "reason": "E2E", "message": "Patched by a test"}]}});
        let patched = cx.merge(&path, &body).await.ok();
        assert_eq!(patched["metadata"]["annotations"]["e2e-patched-ns-status"], ns);
        assert_eq!(condition(&patched, "StatusPatch"), "True");
        let mut object = cx.get(&path).await.ok();
        let update = json!({"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "By a test"});
        object["status"]["conditions"].as_array_mut().expect("conditions").push(update);
        cx.replace(&path, &object).await.ok();
        let read = cx.get(&path).await.ok();
        assert_eq!(condition(&read, "StatusUpdate"), "True");
        assert_eq!(condition(&read, "StatusPatch"), "True");
    });
}

#[test]
fn deletion_of_a_namespace_removes_its_services() {
    conform(async |cx| {
        let ns = cx.namespace("removed").await;
        let services = format!("/api/v1/namespaces/{ns}/services");
        let service = json!({"metadata": {"name": "test-service"}, "spec": {
            "selector": {"foo": "bar"}, "ports": [{"port": 80, "targetPort": 80}]}});
        cx.create(&services, &service).await.ok();
        cx.delete(&format!("/api/v1/namespaces/{ns}")).await.ok();
        cx.gone(&format!("/api/v1/namespaces/{ns}")).await;
        cx.namespace(&ns).await;
        assert!(cx.items(&services).await.is_empty());
    });
}

#[test]
fn namespace_patching() {
    conform(async |cx| {
        let ns = cx.namespace("patched").await;
        let path = format!("/api/v1/namespaces/{ns}");
        label(cx, &path, json!({"testLabel": "testValue"})).await;
        assert_eq!(text(&cx.get(&path).await.ok()["metadata"]["labels"]["testLabel"]), "testValue");
        let body = json!({"metadata": {"labels": {"other": "value"}}});
        cx.patch(&path, patch::MERGE, &body).await.ok();
        let labels = cx.get(&path).await.ok()["metadata"]["labels"].clone();
        assert_eq!((text(&labels["testLabel"]), text(&labels["other"])), ("testValue", "value"));
    });
}
