//! Pods as objects: their life seen by watchers, changes while they run, generations, deletion.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX_OTHER, container, idle, is_true, name_of, pause, phase, pod, restarts, text, with};

/// Changes of one pod's specification; the suite makes 500, which takes long beside everything else.
const UPDATES: u32 = 150;

pub(crate) fn checks() -> Vec<Check> {
    vec![life(), deadline(), updated(), status(), collection(), generation(), many_generations()]
}

fn life() -> Check {
    const ITEMS: &[&str] = &[
        "Pods should be submitted and removed",
        "Pods should get a host IP",
        "Pods Extended (pod generation) Pod Generation custom-set generation on new pods and graceful delete",
    ];
    Check::new("pod-life", ITEMS, async |place: Place| {
        let list = place.get(&place.path("pods?labelSelector=time%3Dnow")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let mut watch =
            place.watch(&place.path(&format!("pods?labelSelector=time%3Dnow&resourceVersion={version}"))).await;
        let meta =
            json!({"metadata": {"labels": {"time": "now"}, "generation": 100, "finalizers": ["example.com/hold"]}});
        let running = place
            .ready(&with(pod("submitted", &[pause("main")], json!({"terminationGracePeriodSeconds": 5})), meta))
            .await;
        let added = watch.until("ADDED", |_| true).await;
        assert_eq!(added["metadata"]["generation"], 1);
        let host: std::net::IpAddr = text(&running["status"]["hostIP"]).parse().expect("an address");
        assert!(!host.is_unspecified());
        let path = place.path("pods/submitted");
        let deleted = place.delete(&path).await.ok();
        assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 5);
        assert_eq!(deleted["metadata"]["generation"], 2);
        place.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
        let last = watch.until("DELETED", |_| true).await;
        assert!(!last["metadata"]["deletionTimestamp"].is_null(), "{last}");
        assert_eq!(last["spec"]["terminationGracePeriodSeconds"], 5, "{last}");
        place.gone(&path).await;
    })
}

fn deadline() -> Check {
    const ITEM: &str = "Pods should allow activeDeadlineSeconds to be updated";
    Check::new("active-deadline", &[ITEM], async |place: Place| {
        place.ready(&pod("deadline", &[idle("main")], json!({"activeDeadlineSeconds": 300}))).await;
        let path = place.path("pods/deadline");
        place.merge(&path, &json!({"spec": {"activeDeadlineSeconds": 3}})).await.ok();
        let failed = place.until(&path, |pod| phase(pod) == "Failed").await;
        assert_eq!(failed["status"]["reason"], "DeadlineExceeded");
        assert_eq!(failed["status"]["message"], "Pod was active on the node longer than the specified deadline");
    })
}

fn updated() -> Check {
    const ITEMS: &[&str] = &["Pods should be updated", "Pods should run through the lifecycle of Pods and PodStatus"];
    Check::new("pod-updates", ITEMS, async |place: Place| {
        let mut pod = place
            .ready(&with(
                pod("updated", &[idle("main")], json!({})),
                json!({"metadata": {"labels": {"step": "first"}}}),
            ))
            .await;
        let path = place.path("pods/updated");
        let list = place.get(&place.path("pods")).await.ok();
        let version = text(&list["metadata"]["resourceVersion"]);
        let mut watch = place.watch(&place.path(&format!("pods?resourceVersion={version}"))).await;
        pod = place.until(&path, |found| found["metadata"]["name"] == name_of(&pod)).await;
        pod["metadata"]["labels"]["step"] = json!("second");
        pod["metadata"]["resourceVersion"] = Value::Null;
        place.replace(&path, &pod).await.ok();
        watch.until("MODIFIED", |pod| pod["metadata"]["labels"]["step"] == "second").await;
        assert_eq!(place.items(&place.path("pods?labelSelector=step%3Dsecond")).await.len(), 1);
        // The image of a running pod is changed: its container is started again.
        let image = json!({"spec": {"containers": [{"name": "main", "image": BUSYBOX_OTHER}]}});
        place.strategic(&path, &image).await.ok();
        watch.until("MODIFIED", |pod| restarts(pod, "main") == 1 && is_true(pod, "Ready")).await;
        let held = json!({"status": {"conditions": [{"type": "example.com/Own", "status": "True"}]}});
        place.strategic(&format!("{path}/status"), &held).await.ok();
        watch.until("MODIFIED", |pod| is_true(pod, "example.com/Own") && is_true(pod, "Ready")).await;
        place.delete_with(&place.path("pods?labelSelector=step%3Dsecond"), &json!({})).await.ok();
        watch.until("DELETED", |pod| name_of(pod) == "updated").await;
    })
}

fn status() -> Check {
    Check::new("pod-status", &["Pods should patch a pod status"], async |place: Place| {
        place.ready(&pod("status", &[pause("main")], json!({}))).await;
        let path = place.path("pods/status/status");
        let patched =
            place.strategic(&path, &json!({"status": {"message": "Patched by a test", "reason": "Test"}})).await.ok();
        assert_eq!(patched["status"]["message"], "Patched by a test");
        place.delete(&place.path("pods/status")).await.ok();
    })
}

fn collection() -> Check {
    Check::new("pod-collection", &["Pods should delete a collection of pods"], async |place: Place| {
        let label = json!({"metadata": {"labels": {"type": "collected"}}});
        for name in ["collected-1", "collected-2", "collected-3"] {
            place.create("pods", &with(pod(name, &[pause("main")], json!({})), label.clone())).await.ok();
        }
        let path = place.path("pods?labelSelector=type%3Dcollected");
        place.delete_with(&path, &json!({})).await.ok();
        place
            .eventually(async || {
                let left = place.items(&path).await;
                if left.is_empty() { Ok(()) } else { Err(format!("{} pods are left", left.len())) }
            })
            .await;
    })
}

fn generation() -> Check {
    const ITEM: &str =
        "Pods Extended (pod generation) Pod Generation pod generation should start at 1 and increment per update";
    Check::new("pod-generation", &[ITEM], async |place: Place| {
        let made = place.ready(&pod("generation", &[idle("main")], json!({"activeDeadlineSeconds": 5000}))).await;
        assert_eq!(made["metadata"]["generation"], 1);
        let path = place.path("pods/generation");
        let tolerations = json!([{"key": "foo-soft", "operator": "Exists", "effect": "NoSchedule"}]);
        let mut all = made["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        all.extend(tolerations.as_array().cloned().unwrap_or_default());
        let cases = [
            (json!({"metadata": {"labels": {"new": "label"}}}), 1),
            (json!({"spec": {"activeDeadlineSeconds": 4000}}), 2),
            (json!({"spec": {"tolerations": all}}), 3),
            (json!({"metadata": {"annotations": {"new": "annotation"}}}), 3),
        ];
        for (patch, expected) in cases {
            let patched = place.merge(&path, &patch).await.ok();
            assert_eq!(patched["metadata"]["generation"], expected, "{patch}");
            place.until(&path, |pod| pod["status"]["observedGeneration"] == expected).await;
        }
        let image = json!({"spec": {"containers": [{"name": "main", "image": BUSYBOX_OTHER}]}});
        assert_eq!(place.strategic(&path, &image).await.ok()["metadata"]["generation"], 4);
        let pod = place
            .until(&path, |pod| {
                container(pod, "main")["image"] == format!("docker.io/library/{BUSYBOX_OTHER}")
                    || restarts(pod, "main") == 1
            })
            .await;
        assert_eq!(pod["metadata"]["generation"], 4);
        place.until(&path, |pod| pod["status"]["observedGeneration"] == 4 && is_true(pod, "Ready")).await;
        place.delete(&path).await.ok();
    })
}

fn many_generations() -> Check {
    const ITEM: &str = "Pods Extended (pod generation) Pod Generation issue 500 podspec updates and verify generation and observedGeneration eventually converge";
    Check::new("many-generations", &[ITEM], async |place: Place| {
        place.ready(&pod("many", &[pause("main")], json!({"activeDeadlineSeconds": 10_000}))).await;
        let path = place.path("pods/many");
        for update in 1..UPDATES {
            place.merge(&path, &json!({"spec": {"activeDeadlineSeconds": 10_000 - update}})).await.ok();
        }
        let settled =
            |pod: &Value| pod["metadata"]["generation"] == UPDATES && pod["status"]["observedGeneration"] == UPDATES;
        place.until(&path, settled).await;
        place.delete(&path).await.ok();
    })
}
