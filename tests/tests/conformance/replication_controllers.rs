//! Replication controllers.

use serde_json::json;

use crate::garbage_collection::replication_controller;
use crate::harness::{conform, name_of, patch, text};
use crate::lifecycle::find;

#[test]
fn get_and_update_the_scale() {
    conform(async |cx| {
        let ns = cx.namespace("rc").await;
        let path = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
        cx.create(&path, &replication_controller("e2e-rc", 1)).await.ok();
        let own = format!("{path}/e2e-rc");
        cx.until(&own, |object| object["status"]["readyReplicas"] == 1).await;
        let mut scale = cx.get(&format!("{own}/scale")).await.ok();
        assert_eq!((&scale["spec"]["replicas"], text(&scale["kind"])), (&1.into(), "Scale"));
        assert_eq!(text(&scale["status"]["selector"]), "app=e2e-rc");
        scale["spec"]["replicas"] = 2.into();
        cx.replace(&format!("{own}/scale"), &scale).await.ok();
        cx.until(&own, |object| object["status"]["readyReplicas"] == 2 && object["spec"]["replicas"] == 2).await;
    });
}

#[test]
fn adopts_and_releases_pods() {
    conform(async |cx| {
        let ns = cx.namespace("rc").await;
        let path = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
        let pods = format!("/api/v1/namespaces/{ns}/pods");
        let orphan = json!({"metadata": {"name": "orphan", "labels": {"app": "pod-release"}},
            "spec": {"containers": [{"name": "main", "image": "pause:1"}]}});
        cx.create(&pods, &orphan).await.ok();
        let made = cx.create(&path, &replication_controller("pod-release", 1)).await.ok();
        let uid = made["metadata"]["uid"].clone();
        let own = format!("{pods}/orphan");
        cx.until(&own, |pod| pod["metadata"]["ownerReferences"][0]["uid"] == uid).await;
        let body = json!({"metadata": {"labels": {"app": "not-matching-name"}}});
        cx.patch(&own, patch::STRATEGIC, &body).await.ok();
        cx.until(&own, |pod| pod["metadata"]["ownerReferences"].is_null()).await;
        cx.eventually("a new pod", async || {
            let found = cx.items(&format!("{pods}?labelSelector=app%3Dpod-release")).await;
            (found.len() == 1 && name_of(&found[0]) != "orphan").then_some(())
        })
        .await;
    });
}

#[test]
fn surfaces_a_failure_condition_when_quota_is_exceeded() {
    conform(async |cx| {
        let ns = cx.namespace("rc").await;
        let quotas = format!("/api/v1/namespaces/{ns}/resourcequotas");
        let quota = json!({"metadata": {"name": "condition-test"}, "spec": {"hard": {"pods": "2"}}});
        cx.create(&quotas, &quota).await.ok();
        cx.until(&format!("{quotas}/condition-test"), |quota| quota["status"]["hard"]["pods"] == "2").await;
        let path = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
        cx.create(&path, &replication_controller("condition-test", 3)).await.ok();
        let own = format!("{path}/condition-test");
        let failed = |object: &api_machinery::value::Value| {
            find(&object["status"]["conditions"], "type", "ReplicaFailure").map(|found| found["reason"].clone())
        };
        cx.until(&own, |object| failed(object) == Some("FailedCreate".into())).await;
        cx.merge(&own, &json!({"spec": {"replicas": 2}})).await.ok();
        cx.until(&own, |object| failed(object).is_none()).await;
    });
}

#[test]
fn lifecycle_of_a_replication_controller() {
    conform(async |cx| {
        let ns = cx.namespace("rc").await;
        let path = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
        cx.create(&path, &replication_controller("rc-test", 1)).await.ok();
        let own = format!("{path}/rc-test");
        cx.until(&own, |object| object["status"]["availableReplicas"] == 1).await;
        let status = json!({"status": {"readyReplicas": 0, "availableReplicas": 0}});
        let patched = cx.patch(&format!("{own}/status"), patch::STRATEGIC, &status).await.ok();
        assert!(patched["status"]["readyReplicas"].is_null() || patched["status"]["readyReplicas"] == 0);
        cx.until(&own, |object| object["status"]["availableReplicas"] == 1).await;
        cx.merge(&format!("{own}/scale"), &json!({"spec": {"replicas": 2}})).await.ok();
        cx.until(&own, |object| object["status"]["availableReplicas"] == 2).await;
        cx.delete(&format!("{path}?labelSelector=")).await.ok();
        cx.gone(&own).await;
    });
}
