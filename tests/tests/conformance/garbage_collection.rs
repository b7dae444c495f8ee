//! What becomes of dependents when their owner goes.

use std::time::Duration;

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of, patch};

const BACKGROUND: &str = "Background";
const FOREGROUND: &str = "Foreground";
const ORPHAN: &str = "Orphan";

/// A template of pods with this label.
pub(crate) fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "pause:1"}]}})
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template(name)}})
}

pub(crate) fn replication_controller(name: &str, replicas: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"app": name}, "template": template(name)}})
}

fn policy(name: &str) -> Value {
    json!({"propagationPolicy": name})
}

/// A replication controller all of whose pods are there; its path.
async fn with_pods(cx: &Cx, ns: &str, name: &str, replicas: u32) -> String {
    let collection = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
    cx.create(&collection, &replication_controller(name, replicas)).await.ok();
    let path = format!("{collection}/{name}");
    cx.until(&path, |object| object["status"]["replicas"] == replicas).await;
    path
}

async fn pods(cx: &Cx, ns: &str) -> Vec<Value> {
    cx.items(&format!("/api/v1/namespaces/{ns}/pods")).await
}

#[test]
fn delete_deployment_propagation_policy_background() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let (deployments, sets) = (
            format!("/apis/apps/v1/namespaces/{ns}/deployments"),
            format!("/apis/apps/v1/namespaces/{ns}/replicasets"),
        );
        cx.create(&deployments, &deployment("simple")).await.ok();
        cx.eventually("the replica set", async || (cx.items(&sets).await.len() == 1).then_some(())).await;
        cx.delete_with(&format!("{deployments}/simple"), &policy(BACKGROUND)).await.ok();
        cx.eventually("the end of the replica set", async || cx.items(&sets).await.is_empty().then_some(())).await;
        cx.eventually("the end of the pods", async || pods(cx, &ns).await.is_empty().then_some(())).await;
    });
}

#[test]
fn delete_deployment_propagation_policy_orphan() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let (deployments, sets) = (
            format!("/apis/apps/v1/namespaces/{ns}/deployments"),
            format!("/apis/apps/v1/namespaces/{ns}/replicasets"),
        );
        cx.create(&deployments, &deployment("simple")).await.ok();
        cx.until(&format!("{deployments}/simple"), |object| object["status"]["readyReplicas"] == 2).await;
        cx.delete_with(&format!("{deployments}/simple"), &policy(ORPHAN)).await.ok();
        cx.gone(&format!("{deployments}/simple")).await;
        cx.stays("the replica set", Duration::from_secs(30), async || {
            let found = cx.items(&sets).await;
            found.len() == 1 && found[0]["metadata"]["ownerReferences"].is_null()
        })
        .await;
    });
}

#[test]
fn delete_replication_controller_propagation_policy_background() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let path = with_pods(cx, &ns, "simpletest", 2).await;
        cx.delete_with(&path, &policy(BACKGROUND)).await.ok();
        cx.eventually("the end of the pods", async || pods(cx, &ns).await.is_empty().then_some(())).await;
    });
}

#[test]
fn delete_replication_controller_propagation_policy_orphan() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let path = with_pods(cx, &ns, "simpletest", 3).await;
        cx.delete_with(&path, &policy(ORPHAN)).await.ok();
        cx.gone(&path).await;
        cx.stays("all pods", Duration::from_secs(30), async || pods(cx, &ns).await.len() == 3).await;
    });
}

#[test]
fn delete_replication_controller_after_owned_pods() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let path = with_pods(cx, &ns, "simpletest", 10).await;
        cx.delete_with(&path, &policy(FOREGROUND)).await.ok();
        let mut seen = 0;
        loop {
            // Asked for in this order, so that pods which are there without their owner were so all along.
            let owner = cx.get(&path).await;
            let left = pods(cx, &ns).await.len();
            if owner.code == 404 {
                assert_eq!(left, 0, "the owner went before its pods");
                break;
            }
            assert!(!owner.ok()["metadata"]["deletionTimestamp"].is_null());
            seen += 1;
            assert!(seen < 1000, "the owner stays");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(seen > 0);
    });
}

#[test]
fn dependency_cycle() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let collection = format!("/api/v1/namespaces/{ns}/pods");
        let mut uids = Vec::new();
        for name in ["pod1", "pod2", "pod3"] {
            let pod = json!({"metadata": {"name": name}, "spec": template("cycle")["spec"]});
            let made = cx.create(&collection, &pod).await.ok();
            uids.push(made["metadata"]["uid"].clone());
        }
        for (index, owner) in [(0, 2), (1, 0), (2, 1)] {
            let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": format!("pod{}", owner + 1),
                "uid": uids[owner], "controller": true, "blockOwnerDeletion": true});
            let body = json!({"metadata": {"ownerReferences": [reference]}});
            cx.patch(&format!("{collection}/pod{}", index + 1), patch::STRATEGIC, &body).await.ok();
        }
        cx.delete_with(&format!("{collection}/pod1"), &policy(FOREGROUND)).await.ok();
        cx.eventually("the end of all pods", async || pods(cx, &ns).await.is_empty().then_some(())).await;
    });
}

#[test]
fn multiple_owners() {
    conform(async |cx| {
        let ns = cx.namespace("gc").await;
        let deleted = with_pods(cx, &ns, "simpletest-rc-to-be-deleted", 10).await;
        let collection = format!("/api/v1/namespaces/{ns}/replicationcontrollers");
        let mut staying = replication_controller("simpletest-rc-to-stay", 0);
        staying["spec"]["selector"] = json!({"another": "key"});
        staying["spec"]["template"]["metadata"]["labels"] = json!({"another": "key"});
        let staying = cx.create(&collection, &staying).await.ok();
        let all = pods(cx, &ns).await;
        let reference = json!({"apiVersion": "v1", "kind": "ReplicationController", "name": name_of(&staying),
            "uid": staying["metadata"]["uid"]});
        for pod in &all[..5] {
            let path = format!("/api/v1/namespaces/{ns}/pods/{}", name_of(pod));
            let body = json!({"metadata": {"ownerReferences": [reference]}});
            cx.patch(&path, patch::STRATEGIC, &body).await.ok();
        }
        cx.delete_with(&deleted, &policy(FOREGROUND)).await.ok();
        cx.gone(&deleted).await;
        let left = pods(cx, &ns).await;
        assert_eq!(left.len(), 5);
        for pod in &left {
            assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{}", name_of(pod));
            let owners = pod["metadata"]["ownerReferences"].as_array().expect("owners");
            assert_eq!(owners.len(), 1, "the absent owner is taken away");
        }
    });
}
