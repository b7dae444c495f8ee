//! DaemonSets: a pod per node that they are for, replaced when it is gone, failed or out of date.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX, BUSYBOX_OTHER, idle, is_true, name_of, pause, restarts, text};
use super::workloads::{self, image, image_of, pods_until, workload};

const LABEL: &str = "conformance-color";

pub(crate) fn checks() -> Vec<Check> {
    vec![simple(), complex(), rollback(), revisions(), subresources()]
}

fn node_of(pod: &Value) -> &str {
    text(&pod["spec"]["nodeName"])
}

/// Waits until exactly these nodes have a ready pod of the set.
async fn runs_on(place: &Place, name: &str, nodes: &[&str]) -> Vec<Value> {
    let wanted: BTreeSet<&str> = nodes.iter().copied().collect();
    let as_wanted = |pods: &[Value]| {
        let have: BTreeSet<&str> = pods.iter().filter(|pod| is_true(pod, "Ready")).map(node_of).collect();
        have == wanted && pods.len() == wanted.len()
    };
    pods_until(place, name, as_wanted).await
}

const BOTH: &[&str] = &["node-1", "node-2"];

fn simple() -> Check {
    const ITEMS: &[&str] = &[
        "Daemon set should run and stop simple daemon",
        "Daemon set should retry creating failed daemon pods",
        "Daemon set should update pod when spec was updated and update strategy is RollingUpdate",
    ];
    Check::new("daemons", ITEMS, async |place: Place| {
        place.create("daemonsets", &workload("simple", &[idle("main")], json!({}))).await.ok();
        let pods = runs_on(&place, "simple", BOTH).await;
        place.delete(&place.path(&format!("pods/{}", name_of(&pods[0])))).await.ok();
        let pods = runs_on(&place, "simple", BOTH).await;
        let failing = name_of(&pods[0]);
        let failed = json!({"status": {"phase": "Failed"}});
        place.merge(&place.path(&format!("pods/{failing}/status")), &failed).await.ok();
        place.gone(&place.path(&format!("pods/{failing}"))).await;
        runs_on(&place, "simple", BOTH).await;
        let path = place.path("daemonsets/simple");
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        pods_until(&place, "simple", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| image_of(pod) == BUSYBOX_OTHER && is_true(pod, "Ready"))
        })
        .await;
        place.delete_with(&path, &json!({"propagationPolicy": "Foreground"})).await.ok();
        place.gone(&path).await;
        assert!(workloads::pods_of(&place, "simple").await.is_empty());
    })
}

fn complex() -> Check {
    Check::new("chosen-daemons", &["Daemon set should run and stop complex daemon"], async |place: Place| {
        let selector = |color: &str| json!({"spec": {"template": {"spec": {"nodeSelector": {LABEL: color}}}}});
        let set = super::object::with(workload("complex", &[idle("main")], json!({})), selector("blue"));
        place.create("daemonsets", &set).await.ok();
        runs_on(&place, "complex", &[]).await;
        let paint = async |color: Value| {
            place.merge("/api/v1/nodes/node-1", &json!({"metadata": {"labels": {LABEL: color}}})).await.ok();
        };
        paint(json!("blue")).await;
        runs_on(&place, "complex", &["node-1"]).await;
        paint(json!("green")).await;
        runs_on(&place, "complex", &[]).await;
        let strategy = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
        let changed = super::object::with(selector("green"), strategy);
        place.merge(&place.path("daemonsets/complex"), &changed).await.ok();
        runs_on(&place, "complex", &["node-1"]).await;
        paint(Value::Null).await;
        runs_on(&place, "complex", &[]).await;
    })
}

fn rollback() -> Check {
    const ITEM: &str = "Daemon set should rollback without unnecessary restarts";
    Check::new("daemons-rolled-back", &[ITEM], async |place: Place| {
        place.create("daemonsets", &workload("rollback", &[idle("main")], json!({}))).await.ok();
        let before = runs_on(&place, "rollback", BOTH).await;
        let path = place.path("daemonsets/rollback");
        place.strategic(&path, &image("main", "localhost:9/foo:non-existent")).await.ok();
        let mixed = |pods: &[Value]| {
            pods.len() == 2 && pods.iter().filter(|pod| image_of(pod) == BUSYBOX && is_true(pod, "Ready")).count() == 1
        };
        let during = pods_until(&place, "rollback", mixed).await;
        place.strategic(&path, &image("main", BUSYBOX)).await.ok();
        let after = runs_on(&place, "rollback", BOTH).await;
        let good = during.iter().find(|pod| image_of(pod) == BUSYBOX).map(name_of).unwrap_or_default();
        assert!(before.iter().any(|pod| name_of(pod) == good), "{good} is new");
        let kept = after.iter().find(|pod| name_of(pod) == good).expect("the pod that was good is kept");
        assert_eq!(restarts(kept, "main"), 0);
    })
}

fn revisions() -> Check {
    const ITEM: &str = "ControllerRevision should manage the lifecycle of a ControllerRevision";
    Check::new("controller-revisions", &[ITEM], async |place: Place| {
        place.create("daemonsets", &workload("revised", &[pause("main")], json!({}))).await.ok();
        runs_on(&place, "revised", BOTH).await;
        let path = place.path("controllerrevisions?labelSelector=app%3Drevised");
        let all = place.items(&path).await;
        assert_eq!(all.len(), 1, "{all:?}");
        let first = &all[0];
        assert_eq!(first["metadata"]["ownerReferences"][0]["name"], "revised");
        let one = place.path(&format!("controllerrevisions/{}", name_of(first)));
        let patched = place.strategic(&one, &json!({"metadata": {"labels": {"patched": "yes"}}})).await.ok();
        assert_eq!(patched["metadata"]["labels"]["patched"], "yes");
        // One more for the same content, which the controller must not take for a reason to tidy up at once.
        let own = json!({"metadata": {"name": "own-revision", "labels": {"app": "revised", "controller-revision-hash": "own"},
            "ownerReferences": first["metadata"]["ownerReferences"]}, "data": first["data"], "revision": 2});
        place.create("controllerrevisions", &own).await.ok();
        assert_eq!(place.items(&path).await.len(), 2);
        place.delete(&one).await.ok();
        there_are(&place, &path, 1).await;
        let one = place.path("controllerrevisions/own-revision");
        let mut updated = place.get(&one).await.ok();
        updated["metadata"]["labels"]["updated"] = json!("yes");
        // The controller may have numbered it meanwhile.
        updated["metadata"]["resourceVersion"] = json!("");
        place.replace(&one, &updated).await.ok();
        let patch = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 2}}}});
        place.strategic(&place.path("daemonsets/revised"), &patch).await.ok();
        there_are(&place, &path, 2).await;
        place.delete_with(&place.path("controllerrevisions?labelSelector=updated%3Dyes"), &json!({})).await.ok();
        there_are(&place, &path, 1).await;
        assert_eq!(place.items(&path).await[0]["revision"], 3);
        runs_on(&place, "revised", BOTH).await;
        place.delete_with(&place.path("daemonsets/revised"), &json!({"propagationPolicy": "Background"})).await.ok();
    })
}

async fn there_are(place: &Place, path: &str, count: usize) {
    let counted = async || match place.items(path).await.len() {
        have if have == count => Ok(()),
        have => Err(format!("there are {have} revisions instead of {count}")),
    };
    place.eventually(counted).await;
}

fn subresources() -> Check {
    const ITEMS: &[&str] = &[
        "Daemon set should verify changes to a daemon set status",
        "Daemon set should list and delete a collection of DaemonSets",
    ];
    Check::new("daemonset-subresources", ITEMS, async |place: Place| {
        place.create("daemonsets", &workload("status", &[pause("main")], json!({}))).await.ok();
        runs_on(&place, "status", BOTH).await;
        workloads::status(&place, "daemonsets", "status").await;
        place.delete_with(&place.path("daemonsets/status"), &json!({"propagationPolicy": "Background"})).await.ok();
        workloads::collection(&place, "daemonsets", &[workload("collected", &[pause("main")], json!({}))]).await;
    })
}
