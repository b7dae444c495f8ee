//! Limit ranges.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of};
use crate::lifecycle::contains;

fn limits(name: &str, min: &Value, max: &Value, default: &Value, request: &Value, ratio: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"limits": [{"type": "Container", "min": min, "max": max,
        "default": default, "defaultRequest": request, "maxLimitRequestRatio": ratio}]}})
}

fn pod(name: &str, resources: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "main", "image": "pause:1", "resources": resources}]}})
}

fn triple(cpu: &str, memory: &str, storage: &str) -> Value {
    json!({"cpu": cpu, "memory": memory, "ephemeral-storage": storage})
}

async fn resources(cx: &Cx, path: &str, name: &str, given: &Value) -> Value {
    cx.create(path, &pod(name, given)).await.ok()["spec"]["containers"][0]["resources"].clone()
}

#[test]
fn limit_range_resources() {
    conform(async |cx| {
        let ns = cx.namespace("limits").await;
        let (path, pods) = (format!("/api/v1/namespaces/{ns}/limitranges"), format!("/api/v1/namespaces/{ns}/pods"));
        let range = limits(
            "limit-range",
            &triple("50m", "100Mi", "100Gi"),
            &triple("500m", "500Mi", "500Gi"),
            &triple("500m", "500Mi", "500Gi"),
            &triple("100m", "200Mi", "200Gi"),
            &json!({}),
        );
        let mut watch = cx.watch(&path).await;
        let made = cx.create(&path, &range).await.ok();
        watch.until("ADDED", |object| name_of(object) == "limit-range").await;
        let given = resources(cx, &pods, "pod-no-resources", &json!({})).await;
        let wanted = json!({"requests": triple("100m", "200Mi", "200Gi"), "limits": triple("500m", "500Mi", "500Gi")});
        assert!(contains(&given, &wanted), "{given}");
        let partial = json!({"requests": {"cpu": "300m", "memory": "150Mi", "ephemeral-storage": "150Gi"},
            "limits": {"cpu": "300m"}});
        let given = resources(cx, &pods, "pod-partial-resources", &partial).await;
        let wanted = json!({"requests": triple("300m", "150Mi", "150Gi"), "limits": triple("300m", "500Mi", "500Gi")});
        assert!(contains(&given, &wanted), "{given}");

        let refused = cx.create(&pods, &pod("pfpod", &json!({"requests": triple("10m", "50Mi", "50Gi")}))).await;
        let refused = refused.refused(403);
        assert!(refused.contains("minimum cpu usage per Container is 50m, but request is 10m"), "{refused}");
        let refused = cx.create(&pods, &pod("pfpod", &json!({"limits": triple("600m", "600Mi", "600Gi")}))).await;
        let refused = refused.refused(403);
        assert!(refused.contains("maximum cpu usage per Container is 500m, but limit is 600m"), "{refused}");

        let mut updated = made;
        updated["spec"]["limits"][0]["min"] = triple("9m", "49Mi", "49Gi");
        cx.replace(&format!("{path}/limit-range"), &updated).await.ok();
        let small = json!({"requests": triple("10m", "50Mi", "50Gi")});
        cx.eventually("the new minimum", async || {
            (cx.create(&pods, &pod("small", &small)).await.code == 201).then_some(())
        })
        .await;
        let large = json!({"limits": triple("600m", "600Mi", "600Gi")});
        cx.create(&pods, &pod("large", &large)).await.refused(403);
        cx.delete(&format!("{path}/limit-range")).await.ok();
        cx.eventually("the end of the limits", async || {
            (cx.create(&pods, &pod("large", &large)).await.code == 201).then_some(())
        })
        .await;
    });
}

#[test]
fn limit_range_list_patch_and_delete_by_collection() {
    conform(async |cx| {
        let (one, two) = (cx.namespace("limits-1").await, cx.namespace("limits-2").await);
        let path = |ns: &str| format!("/api/v1/namespaces/{ns}/limitranges");
        let empty = json!({});
        for ns in [&one, &two] {
            let mut range = limits("e2e", &triple("50m", "100Mi", "100Gi"), &empty, &empty, &empty, &empty);
            range["metadata"]["labels"] = json!({"e2e": "yes"});
            cx.create(&path(ns), &range).await.ok();
        }
        let everywhere = "/api/v1/limitranges?labelSelector=e2e%3Dyes";
        assert_eq!(cx.items(everywhere).await.len(), 2);
        let body = json!({"metadata": {"labels": {"e2e": "patched"}}, "spec": {"limits": [{"type": "Container",
            "min": triple("40m", "100Mi", "100Gi")}]}});
        let patched = cx.merge(&format!("{}/e2e", path(&one)), &body).await.ok();
        assert_eq!(patched["spec"]["limits"][0]["min"]["cpu"], "40m");
        cx.delete(&format!("{}?labelSelector=e2e%3Dpatched", path(&one))).await.ok();
        assert!(cx.items(&path(&one)).await.is_empty());
        let left = cx.items(everywhere).await;
        assert_eq!((left.len(), name_of(&left[0])), (1, "e2e"));
    });
}
