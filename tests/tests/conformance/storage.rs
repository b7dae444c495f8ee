//! Volumes, claims and classes as objects.

use api_machinery::value::Value;
use serde_json::json;

use crate::custom_resources::condition;
use crate::harness::{Cx, conform, name_of, patch};
use crate::lifecycle::Lifecycle;

fn volume(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"e2e-pv-pool": name}}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp/x"}}})
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"e2e-pvc": name}}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "other",
        "resources": {"requests": {"storage": "1Gi"}}}})
}

async fn claims(cx: &Cx) -> String {
    format!("/api/v1/namespaces/{}/persistentvolumeclaims", cx.namespace("claims").await)
}

const VOLUMES: &str = "/api/v1/persistentvolumes";

/// The binder has said so. Until then it may write between a reading and a writing of the test.
fn is_available(volume: &Value) -> bool {
    volume["status"]["phase"] == "Available"
}

#[test]
fn changes_to_the_status_of_volumes_and_claims() {
    conform(async |cx| {
        let claims = claims(cx).await;
        cx.create(VOLUMES, &volume("pv")).await.ok();
        cx.until(&format!("{VOLUMES}/pv"), is_available).await;
        cx.create(&claims, &claim("pvc")).await.ok();
        let path = format!("{claims}/pvc/status");
        let body = json!({"metadata": {"annotations": {"e2e-patched": "true"}}, "status": {"conditions": [
            {"type": "StatusPatched", "status": "True", "reason": "E2E patchedStatus", "message": "Set by a test"}]}});
        let patched = cx.patch(&path, patch::STRATEGIC, &body).await.ok();
        assert_eq!(condition(&patched, "StatusPatched"), "True");
        let mut read = cx.get(&path).await.ok();
        read["status"]["conditions"].as_array_mut().expect("conditions").push(json!({"type": "StatusUpdate",
            "status": "True", "reason": "E2E", "message": "Set from a test"}));
        assert_eq!(condition(&cx.replace(&path, &read).await.ok(), "StatusUpdate"), "True");

        let path = format!("{VOLUMES}/pv/status");
        let body = json!({"status": {"message": "StatusPatched", "reason": "E2E patchStatus"}});
        let patched = cx.patch(&path, patch::STRATEGIC, &body).await.ok();
        assert_eq!(patched["status"]["reason"], "E2E patchStatus");
        let mut read = cx.get(&path).await.ok();
        read["status"]["message"] = "StatusUpdated".into();
        assert_eq!(cx.replace(&path, &read).await.ok()["status"]["message"], "StatusUpdated");
        assert_eq!(cx.get(&format!("{VOLUMES}/pv")).await.ok()["status"]["message"], "StatusUpdated");
    });
}

#[test]
fn lifecycle_of_volumes_and_claims() {
    conform(async |cx| {
        let claims = claims(cx).await;
        for (path, object) in [(VOLUMES, volume("one")), (claims.as_str(), claim("one"))] {
            let own = format!("{path}/one");
            cx.create(path, &object).await.ok();
            assert!(cx.names(path).await.contains(&"one".to_owned()));
            if path == VOLUMES {
                cx.until(&own, is_available).await;
            }
            let body = json!({"metadata": {"labels": {"patched": "yes"}}});
            cx.patch(&own, patch::STRATEGIC, &body).await.ok();
            let mut read = cx.get(&own).await.ok();
            assert_eq!(read["metadata"]["labels"]["patched"], "yes");
            read["metadata"]["labels"]["updated"] = "yes".into();
            cx.replace(&own, &read).await.ok();
            cx.delete(&own).await.ok();
            cx.gone(&own).await;
            let mut again = object;
            again["metadata"]["name"] = "two".into();
            again["metadata"]["labels"] = json!({"again": "yes"});
            cx.create(path, &again).await.ok();
            let selected = format!("{path}?labelSelector=again%3Dyes");
            assert_eq!(cx.names(&selected).await, ["two"]);
            cx.delete(&selected).await.ok();
            cx.gone(&format!("{path}/two")).await;
        }
    });
}

#[test]
fn volumes_and_claims_in_use_are_protected() {
    conform(async |cx| {
        let claims = claims(cx).await;
        let pods = claims.replace("persistentvolumeclaims", "pods");
        let made = cx.create(&claims, &claim("used")).await.ok();
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
        let made = cx.create(VOLUMES, &volume("protected")).await.ok();
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
        let pod = json!({"metadata": {"name": "user"}, "spec": {
            "containers": [{"name": "main", "image": "pause:1"}], "nodeName": "node-0",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]}});
        cx.create(&pods, &pod).await.ok();
        cx.delete(&format!("{claims}/used")).await.ok();
        cx.stays("the claim", std::time::Duration::from_secs(20), async || cx.exists(&format!("{claims}/used")).await)
            .await;
        cx.delete(&format!("{pods}/user")).await.ok();
        cx.gone(&format!("{claims}/used")).await;
    });
}

#[test]
fn storage_class_lifecycle() {
    conform(async |cx| {
        let object = json!({"provisioner": "e2e-fake-provisioner", "reclaimPolicy": "Delete"});
        let (group, resource) = ("storage.k8s.io", "storageclasses");
        let classes = Lifecycle { group, resource, namespace: "", object, status: None };
        classes.run(cx).await;
        assert!(cx.items(&classes.collection()).await.iter().all(|class| name_of(class) != "lifecycle-a"));
    });
}
