//! Pods as the API and the scheduler see them.

use std::time::Duration;

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, text};
use crate::lifecycle::Lifecycle;

const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "pause:1"}]}})
}

fn with_class(name: &str, class: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["runtimeClassName"] = class.into();
    pod
}

async fn pods(cx: &Cx) -> String {
    format!("/api/v1/namespaces/{}/pods", cx.namespace("pods").await)
}

#[test]
fn pods_qos() {
    conform(async |cx| {
        let path = pods(cx).await;
        let mut object = pod("qos");
        let amounts = json!({"cpu": "100m", "memory": "100Mi"});
        object["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
        assert_eq!(cx.create(&path, &object).await.ok()["status"]["qosClass"], "Guaranteed");
    });
}

#[test]
fn pod_with_a_deleted_runtime_class_is_rejected() {
    conform(async |cx| {
        let path = pods(cx).await;
        let class = json!({"metadata": {"name": "short"}, "handler": "runc"});
        cx.create(CLASSES, &class).await.ok();
        let dry = format!("{path}?dryRun=All");
        cx.eventually("the class", async || {
            (cx.create(&dry, &with_class("x", "short")).await.code == 201).then_some(())
        })
        .await;
        cx.delete(&format!("{CLASSES}/short")).await.ok();
        let refused = cx
            .eventually("the refusal", async || {
                let answer = cx.create(&dry, &with_class("x", "short")).await;
                (answer.code != 201).then_some(answer)
            })
            .await;
        refused.refused(403);
    });
}

#[test]
fn pod_with_a_non_existing_runtime_class_is_rejected() {
    conform(async |cx| {
        let path = pods(cx).await;
        let refused = cx.create(&format!("{path}?dryRun=All"), &with_class("x", "absent")).await.refused(403);
        assert!(refused.contains("pod rejected: RuntimeClass \"absent\" not found"), "{refused}");
    });
}

#[test]
fn runtime_class_overhead_is_respected() {
    conform(async |cx| {
        let path = pods(cx).await;
        let overhead = json!({"cpu": "10m", "memory": "1Mi"});
        let class = json!({"metadata": {"name": "heavy"}, "handler": "runc", "overhead": {"podFixed": overhead}});
        cx.create(CLASSES, &class).await.ok();
        let made = cx.create(&path, &with_class("heavy", "heavy")).await.ok();
        assert_eq!(made["spec"]["overhead"], overhead);
        cx.until(&format!("{path}/heavy"), |pod| pod["status"]["phase"] == "Running").await;
        let mut other = with_class("other", "heavy");
        other["spec"]["overhead"] = json!({"cpu": "20m"});
        cx.create(&path, &other).await.refused(403);
    });
}

#[test]
fn a_pod_of_an_existing_runtime_class_is_scheduled() {
    conform(async |cx| {
        let path = pods(cx).await;
        cx.create(CLASSES, &json!({"metadata": {"name": "light"}, "handler": "runc"})).await.ok();
        let made = cx.create(&path, &with_class("light", "light")).await.ok();
        assert!(made["spec"]["overhead"].is_null());
        cx.until(&format!("{path}/light"), |pod| !text(&pod["spec"]["nodeName"]).is_empty()).await;
    });
}

#[test]
fn runtime_class_api() {
    conform(async |cx| {
        let object = json!({"handler": "e2e-handler"});
        let (group, resource) = ("node.k8s.io", "runtimeclasses");
        Lifecycle { group, resource, namespace: "", object, status: None }.run(cx).await;
    });
}

#[test]
fn invalid_sysctls_are_rejected() {
    conform(async |cx| {
        let path = pods(cx).await;
        let mut object = pod("sysctls");
        let sysctl = |name: &str| json!({"name": name, "value": "100"});
        object["spec"]["securityContext"] = json!({"sysctls": [
            sysctl("foo-"), sysctl("kernel.shmmax"), sysctl("safe-and-unsafe"), sysctl("bar..")]});
        let refused = cx.create(&path, &object).await.refused(422);
        assert!(refused.contains("Invalid value: \"foo-\""), "{refused}");
        assert!(refused.contains("Invalid value: \"bar..\""), "{refused}");
        assert!(!refused.contains("safe-and-unsafe") && !refused.contains("kernel.shmmax"), "{refused}");
    });
}

#[test]
fn a_node_selector_that_matches_nothing() {
    conform(async |cx| {
        let path = pods(cx).await;
        let mut object = pod("restricted");
        object["spec"]["nodeSelector"] = json!({"label": "nonempty"});
        cx.create(&path, &object).await.ok();
        let own = format!("{path}/restricted");
        let read = cx.until(&own, |pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable").await;
        assert_eq!(read["status"]["conditions"][0]["type"], "PodScheduled");
        cx.stays("the pod without node", Duration::from_secs(30), async || {
            cx.get(&own).await.ok()["spec"]["nodeName"].is_null()
        })
        .await;
    });
}
