//! ReplicaSets and ReplicationControllers: adopting and releasing pods, scaling, status, collections.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX_OTHER, is_true, name_of, pause, pod, text, with};
use super::workloads::{self, pods_until, workload};

pub(crate) fn checks() -> Vec<Check> {
    vec![subresources(), adoption(), replaced(), collection(), controller_life()]
}

fn controller(name: &str, replicas: u32) -> Value {
    let mut object = workload(name, &[pause("main")], json!({"replicas": replicas}));
    object["spec"]["selector"] = json!({"app": name});
    object
}

fn subresources() -> Check {
    const ITEMS: &[&str] = &[
        "ReplicaSet Replicaset should have a working scale subresource",
        "ReplicaSet should validate Replicaset Status endpoints",
    ];
    Check::new("replicaset-subresources", ITEMS, async |place: Place| {
        place.create("replicasets", &workload("sub", &[pause("main")], json!({"replicas": 1}))).await.ok();
        let path = place.path("replicasets/sub");
        place.until(&path, |set| set["status"]["readyReplicas"] == 1).await;
        workloads::status(&place, "replicasets", "sub").await;
        workloads::scale(&place, &path).await;
    })
}

fn adoption() -> Check {
    const ITEMS: &[&str] = &[
        "ReplicaSet should adopt matching pods on creation and release no longer matching pods",
        "ReplicationController should adopt matching pods on creation",
    ];
    Check::new("adoption", ITEMS, async |place: Place| {
        let orphan =
            |name: &str| with(pod(name, &[pause("main")], json!({})), json!({"metadata": {"labels": {"app": name}}}));
        place.ready(&orphan("adopted-set")).await;
        place.ready(&orphan("adopted-controller")).await;
        place.create("replicasets", &workload("adopted-set", &[pause("main")], json!({"replicas": 1}))).await.ok();
        place.create("replicationcontrollers", &controller("adopted-controller", 1)).await.ok();
        for name in ["adopted-set", "adopted-controller"] {
            let path = place.path(&format!("pods/{name}"));
            let owned = place.until(&path, |pod| pod["metadata"]["ownerReferences"][0]["name"] == name).await;
            assert_eq!(owned["metadata"]["ownerReferences"][0]["controller"], true);
        }
        let path = place.path("pods/adopted-set");
        place.merge(&path, &json!({"metadata": {"labels": {"app": "released"}}})).await.ok();
        place.until(&path, |pod| pod["metadata"]["ownerReferences"].is_null()).await;
        pods_until(&place, "adopted-set", |pods| pods.len() == 1 && name_of(&pods[0]) != "adopted-set").await;
    })
}

fn replaced() -> Check {
    Check::new("replicaset-patches", &["ReplicaSet Replace and Patch tests"], async |place: Place| {
        place.create("replicasets", &workload("patched", &[pause("main")], json!({"replicas": 1}))).await.ok();
        let path = place.path("replicasets/patched");
        let list = place.get(&place.path("replicasets")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let watched = place.path(&format!("replicasets?labelSelector=app%3Dpatched&resourceVersion={version}"));
        let mut watch = place.watch(&watched).await;
        place.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 2}})).await.ok();
        watch.until("MODIFIED", |set| set["status"]["readyReplicas"] == 2).await;
        let patch = json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": BUSYBOX_OTHER}]}}}});
        let patched = place.strategic(&path, &patch).await.ok();
        assert_eq!(patched["spec"]["template"]["spec"]["containers"][0]["image"], BUSYBOX_OTHER);
        watch.until("MODIFIED", |set| set["spec"]["replicas"] == 3 && set["status"]["replicas"] == 3).await;
        place.delete_with(&path, &json!({"propagationPolicy": "Background"})).await.ok();
    })
}

fn collection() -> Check {
    const ITEM: &str = "ReplicaSet should list and delete a collection of ReplicaSets";
    Check::new("replicaset-collection", &[ITEM], async |place: Place| {
        let sets = ["one", "two", "three"].map(|name| workload(name, &[pause("main")], json!({"replicas": 1})));
        workloads::collection(&place, "replicasets", &sets).await;
    })
}

fn controller_life() -> Check {
    const ITEM: &str = "ReplicationController should test the lifecycle of a ReplicationController";
    Check::new("controller-life", &[ITEM], async |place: Place| {
        let list = place.get(&place.path("replicationcontrollers")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let watched = place.path(&format!("replicationcontrollers?labelSelector=app%3Dlife&resourceVersion={version}"));
        let mut watch = place.watch(&watched).await;
        place.create("replicationcontrollers", &controller("life", 1)).await.ok();
        watch.until("ADDED", |_| true).await;
        watch.until("MODIFIED", |found| found["status"]["readyReplicas"] == 1).await;
        let path = place.path("replicationcontrollers/life");
        place.strategic(&path, &json!({"metadata": {"labels": {"patched": "yes"}}})).await.ok();
        watch.until("MODIFIED", |found| found["metadata"]["labels"]["patched"] == "yes").await;
        let condition = json!({"type": "Own", "status": "True"});
        place.strategic(&format!("{path}/status"), &json!({"status": {"conditions": [condition]}})).await.ok();
        watch.until("MODIFIED", |found| is_true(found, "Own")).await;
        place.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 2}})).await.ok();
        watch.until("MODIFIED", |found| found["status"]["readyReplicas"] == 2).await;
        let all = place.items("/api/v1/replicationcontrollers?labelSelector=patched%3Dyes").await;
        assert_eq!(all.iter().map(name_of).collect::<Vec<_>>(), ["life"]);
        place.delete_with(&place.path("replicationcontrollers?labelSelector=patched%3Dyes"), &json!({})).await.ok();
        watch.until("DELETED", |_| true).await;
    })
}
