//! StatefulSets: the order in which pods come and go, halting where one is not ready, partitions, rolling back.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX, BUSYBOX_OTHER, ECHO, echo, is_true, name_of, pause, pod, text, with};
use super::workloads::{self, image, image_of, pods_of, pods_until, workload};

pub(crate) fn checks() -> Vec<Check> {
    vec![ordered(), burst(), rolling(), canary(), evicted(), subresources()]
}

/// Its pods are ready as long as `/tmp/ready` is there.
fn gated(name: &str, spec: Value) -> Value {
    let script = "touch /tmp/ready; trap exit TERM; while :; do sleep 1; done";
    let probe = json!({"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5});
    let container = with(super::object::shell("main", script), json!({"readinessProbe": probe}));
    stateful(name, &container, spec)
}

fn stateful(name: &str, container: &Value, spec: Value) -> Value {
    workload(name, std::slice::from_ref(container), with(json!({"serviceName": name, "replicas": 1}), spec))
}

fn ready(pods: &[Value]) -> usize {
    pods.iter().filter(|pod| is_true(pod, "Ready")).count()
}

async fn scale(place: &Place, name: &str, replicas: u32) {
    let path = place.path(&format!("statefulsets/{name}/scale"));
    place.merge(&path, &json!({"spec": {"replicas": replicas}})).await.ok();
}

async fn exactly(place: &Place, name: &str, count: usize) -> Vec<Value> {
    pods_until(place, name, |pods| pods.len() == count && ready(pods) == count).await
}

/// Makes a pod unready, and ready again.
async fn make_ready(place: &Place, pod: &str, is_ready: bool) {
    let command = if is_ready { "touch /tmp/ready" } else { "rm /tmp/ready" };
    place.exec(pod, "main", command).await;
    place.until(&place.path(&format!("pods/{pod}")), |pod| is_true(pod, "Ready") == is_ready).await;
}

/// Watches the pods of a set from now on.
async fn watch(place: &Place, name: &str) -> super::live::Watch {
    let list = place.get(&place.path("pods")).await.ok();
    let version = text(&list["metadata"]["resourceVersion"]);
    place.watch(&place.path(&format!("pods?labelSelector=app%3D{name}&resourceVersion={version}"))).await
}

fn ordered() -> Check {
    const ITEM: &str = "StatefulSet Basic StatefulSet functionality Scaling should happen in predictable order and halt if any stateful pod is unhealthy";
    Check::new("stateful-order", &[ITEM], async |place: Place| {
        let mut seen = watch(&place, "ordered").await;
        place.create("statefulsets", &gated("ordered", json!({}))).await.ok();
        exactly(&place, "ordered", 1).await;
        make_ready(&place, "ordered-0", false).await;
        scale(&place, "ordered", 3).await;
        let settled = |set: &Value| set["status"]["observedGeneration"] == set["metadata"]["generation"];
        place.until(&place.path("statefulsets/ordered"), settled).await;
        place.stays(&place.path("statefulsets/ordered"), 3, |set| set["status"]["replicas"] == 1).await;
        make_ready(&place, "ordered-0", true).await;
        exactly(&place, "ordered", 3).await;
        for expected in ["ordered-0", "ordered-1", "ordered-2"] {
            assert_eq!(name_of(&seen.until("ADDED", |_| true).await), expected);
        }
        // The last one goes first, and only when it is ready or there is nobody else to wait for.
        for name in ["ordered-0", "ordered-1", "ordered-2"] {
            make_ready(&place, name, false).await;
        }
        scale(&place, "ordered", 0).await;
        place.stays(&place.path("statefulsets/ordered"), 3, |set| set["status"]["replicas"] == 3).await;
        for name in ["ordered-0", "ordered-1"] {
            make_ready(&place, name, true).await;
        }
        for expected in ["ordered-2", "ordered-1", "ordered-0"] {
            assert_eq!(name_of(&seen.until("DELETED", |_| true).await), expected);
        }
    })
}

fn burst() -> Check {
    const ITEM: &str =
        "StatefulSet Basic StatefulSet functionality Burst scaling should run to completion even with unhealthy pods";
    Check::new("stateful-burst", &[ITEM], async |place: Place| {
        place.create("statefulsets", &gated("burst", json!({"podManagementPolicy": "Parallel"}))).await.ok();
        exactly(&place, "burst", 1).await;
        make_ready(&place, "burst-0", false).await;
        scale(&place, "burst", 3).await;
        pods_until(&place, "burst", |pods| pods.len() == 3 && ready(pods) == 2).await;
        make_ready(&place, "burst-0", true).await;
        exactly(&place, "burst", 3).await;
        make_ready(&place, "burst-0", false).await;
        scale(&place, "burst", 0).await;
        exactly(&place, "burst", 0).await;
    })
}

fn revisions(set: &Value) -> (&str, &str) {
    (text(&set["status"]["currentRevision"]), text(&set["status"]["updateRevision"]))
}

async fn rolled_out(place: &Place, name: &str) -> Value {
    let is_over = |set: &Value| {
        let (current, update) = revisions(set);
        current == update
            && set["status"]["observedGeneration"] == set["metadata"]["generation"]
            && set["status"]["readyReplicas"] == set["spec"]["replicas"]
    };
    place.until(&place.path(&format!("statefulsets/{name}")), is_over).await
}

fn rolling() -> Check {
    const ITEM: &str = "StatefulSet Basic StatefulSet functionality should perform rolling updates and roll backs of template modifications";
    Check::new("stateful-rolling", &[ITEM], async |place: Place| {
        place
            .create("statefulsets", &gated("rolling", json!({"replicas": 3, "podManagementPolicy": "Parallel"})))
            .await
            .ok();
        exactly(&place, "rolling", 3).await;
        let first = rolled_out(&place, "rolling").await;
        let path = place.path("statefulsets/rolling");
        for new in [BUSYBOX_OTHER, BUSYBOX] {
            make_ready(&place, "rolling-1", false).await;
            let mut seen = watch(&place, "rolling").await;
            place.strategic(&path, &image("main", new)).await.ok();
            // It begins at the end and waits for the one that is not ready.
            assert_eq!(name_of(&seen.until("DELETED", |_| true).await), "rolling-2");
            place.until(&path, |set| set["status"]["updatedReplicas"] == 1).await;
            let (current, update) = {
                let set = place.get(&path).await.ok();
                (revisions(&set).0.to_owned(), revisions(&set).1.to_owned())
            };
            assert_ne!(current, update);
            make_ready(&place, "rolling-1", true).await;
            for expected in ["rolling-1", "rolling-0"] {
                assert_eq!(name_of(&seen.until("DELETED", |_| true).await), expected);
            }
            let over = rolled_out(&place, "rolling").await;
            assert_eq!(revisions(&over).0, update);
            let all_new =
                |pod: &Value| image_of(pod) == new && pod["metadata"]["labels"]["controller-revision-hash"] == *update;
            pods_until(&place, "rolling", |pods| pods.iter().all(all_new) && ready(pods) == 3).await;
        }
        let last = rolled_out(&place, "rolling").await;
        assert_eq!(revisions(&last).0, revisions(&first).0, "the first revision is used again");
    })
}

fn canary() -> Check {
    const ITEM: &str = "StatefulSet Basic StatefulSet functionality should perform canary updates and phased rolling updates of template modifications";
    Check::new("stateful-canary", &[ITEM], async |place: Place| {
        let partition =
            |number: u32| json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}});
        let spec = with(partition(3), json!({"replicas": 3, "podManagementPolicy": "Parallel"}));
        place.create("statefulsets", &gated("canary", spec)).await.ok();
        exactly(&place, "canary", 3).await;
        let path = place.path("statefulsets/canary");
        place.strategic(&path, &image("main", BUSYBOX_OTHER)).await.ok();
        let images = |pods: &[Value]| {
            let mut images: Vec<(String, bool)> =
                pods.iter().map(|pod| (name_of(pod).to_owned(), image_of(pod) == BUSYBOX_OTHER)).collect();
            images.sort();
            images.into_iter().map(|(_, new)| new).collect::<Vec<_>>()
        };
        place.until(&path, |set| revisions(set).0 != revisions(set).1).await;
        assert_eq!(images(&pods_of(&place, "canary").await), [false, false, false]);
        let phases = [(2, [false, false, true]), (1, [false, true, true])];
        for (number, wanted) in phases {
            place.merge(&path, &json!({"spec": partition(number)})).await.ok();
            pods_until(&place, "canary", |pods| ready(pods) == 3 && images(pods) == wanted).await;
        }
        // Those that are deleted come back at the revision that their number has.
        for name in ["canary-0", "canary-2"] {
            place.delete(&place.path(&format!("pods/{name}"))).await.ok();
            place.gone_or_new(&place.path(&format!("pods/{name}"))).await;
        }
        pods_until(&place, "canary", |pods| ready(pods) == 3 && images(pods) == [false, true, true]).await;
        place.merge(&path, &json!({"spec": partition(0)})).await.ok();
        rolled_out(&place, "canary").await;
        pods_until(&place, "canary", |pods| ready(pods) == 3 && images(pods) == [true, true, true]).await;
    })
}

fn evicted() -> Check {
    const ITEM: &str = "StatefulSet Basic StatefulSet functionality Should recreate evicted statefulset";
    Check::new("stateful-evicted", &[ITEM], async |place: Place| {
        let container = with(
            echo("main", 21_017),
            json!({"image": ECHO, "ports": [{"containerPort": 21_017, "hostPort": 21_017}]}),
        );
        // Put on the node by hand, so that only the kubelet notices the clash.
        let taken = place.ready(&pod("taken", std::slice::from_ref(&container), json!({"nodeName": "node-1"}))).await;
        assert!(is_true(&taken, "Ready"));
        let mut seen = watch(&place, "evicted").await;
        let mut set = stateful("evicted", &container, json!({}));
        set["spec"]["template"]["spec"]["nodeName"] = json!("node-1");
        place.create("statefulsets", &set).await.ok();
        let failed = seen.until("MODIFIED", |pod| pod["status"]["phase"] == "Failed").await;
        seen.until("DELETED", |pod| pod["metadata"]["uid"] == failed["metadata"]["uid"]).await;
        place.delete(&place.path("pods/taken")).await.ok();
        let path = place.path("pods/evicted-0");
        let again = place.until(&path, |pod| is_true(pod, "Ready")).await;
        assert_ne!(again["metadata"]["uid"], failed["metadata"]["uid"]);
    })
}

fn subresources() -> Check {
    const ITEMS: &[&str] = &[
        "StatefulSet Basic StatefulSet functionality should have a working scale subresource",
        "StatefulSet Basic StatefulSet functionality should validate Statefulset Status endpoints",
        "StatefulSet Basic StatefulSet functionality should list, patch and delete a collection of StatefulSets",
    ];
    Check::new("stateful-subresources", ITEMS, async |place: Place| {
        let set = stateful("sub", &pause("main"), json!({}));
        place.create("statefulsets", &set).await.ok();
        exactly(&place, "sub", 1).await;
        let path = place.path("statefulsets/sub");
        workloads::status(&place, "statefulsets", "sub").await;
        let patch = json!({"metadata": {"labels": {"patched": "yes"}}, "spec": {"template": {"spec": {"terminationGracePeriodSeconds": 2}}}});
        assert_eq!(place.strategic(&path, &patch).await.ok()["metadata"]["labels"]["patched"], "yes");
        workloads::scale(&place, &path).await;
        workloads::collection(&place, "statefulsets", &[stateful("collected", &pause("main"), json!({}))]).await;
    })
}
