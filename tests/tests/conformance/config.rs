//! Config maps, secrets and pod templates.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of, text};
use crate::lifecycle::Lifecycle;

/// Create, watch, patch, list everywhere and delete by label.
async fn life(cx: &Cx, ns: &str, resource: &str, data: &str) {
    let path = format!("/api/v1/namespaces/{ns}/{resource}");
    let selector = "labelSelector=test-static%3Dtrue";
    let mut watch = cx.watch(&format!("{path}?{selector}")).await;
    let object = json!({"metadata": {"name": "test-static", "labels": {"test-static": "true"}},
        "data": {"valueName": data}});
    cx.create(&path, &object).await.ok();
    watch.until("ADDED", |object| name_of(object) == "test-static").await;
    let body = json!({"metadata": {"labels": {"test-patched": "true"}}, "data": {"valueName": "dmFsdWU="}});
    cx.merge(&format!("{path}/test-static"), &body).await.ok();
    watch.until("MODIFIED", |object| object["metadata"]["labels"]["test-patched"] == "true").await;
    let read = cx.get(&format!("{path}/test-static")).await.ok();
    assert_eq!(text(&read["data"]["valueName"]), "dmFsdWU=");
    let all = cx.items(&format!("/api/v1/{resource}?{selector}")).await;
    assert_eq!(all.len(), 1);
    assert_eq!(text(&all[0]["metadata"]["namespace"]), ns);
    cx.delete(&format!("{path}?{selector}")).await.ok();
    watch.until("DELETED", |object| name_of(object) == "test-static").await;
    assert!(cx.items(&format!("{path}?{selector}")).await.is_empty());
}

/// Data that cannot be changed, nor made changeable, while everything else can.
async fn is_immutable(cx: &Cx, ns: &str, resource: &str) {
    let path = format!("/api/v1/namespaces/{ns}/{resource}");
    let own = format!("{path}/immutable");
    let object = json!({"metadata": {"name": "immutable"}, "data": {"data-1": "dmFsdWUtMQ=="}});
    let mut current = cx.create(&path, &object).await.ok();
    current["data"]["data-4"] = "dmFsdWUtNA==".into();
    current = cx.replace(&own, &current).await.ok();
    current["immutable"] = true.into();
    current = cx.replace(&own, &current).await.ok();
    let mut changed = current.clone();
    changed["data"]["data-5"] = "dmFsdWUtNQ==".into();
    let refused = cx.replace(&own, &changed).await.refused(422);
    assert!(refused.contains("field is immutable when `immutable` is set"), "{refused}");
    for value in [Value::Null, false.into()] {
        let mut changed = current.clone();
        changed["immutable"] = value;
        cx.replace(&own, &changed).await.refused(422);
    }
    let mut changed = current.clone();
    changed["metadata"]["labels"] = json!({"label1": "value1"});
    cx.replace(&own, &changed).await.ok();
    let read = cx.get(&own).await.ok();
    assert_eq!(read["data"], current["data"]);
    assert_eq!(read["metadata"]["labels"]["label1"], "value1");
    cx.delete(&own).await.ok();
    assert!(!cx.exists(&own).await);
}

fn with_empty_key() -> Value {
    json!({"metadata": {"name": "emptykey"}, "data": {"": "dmFsdWUtMQ=="}})
}

#[test]
fn config_map_with_empty_key() {
    conform(async |cx| {
        let ns = cx.namespace("config").await;
        cx.create(&format!("/api/v1/namespaces/{ns}/configmaps"), &with_empty_key()).await.refused(422);
    });
}

#[test]
fn config_map_lifecycle() {
    conform(async |cx| life(cx, &cx.namespace("config").await, "configmaps", "value").await);
}

#[test]
fn config_map_update() {
    conform(async |cx| {
        let ns = cx.namespace("config").await;
        let path = format!("/api/v1/namespaces/{ns}/configmaps");
        let mut map = cx.create(&path, &json!({"metadata": {"name": "one"}})).await.ok();
        map["data"] = json!({"data": "value"});
        cx.replace(&format!("{path}/one"), &map).await.ok();
        assert_eq!(cx.get(&format!("{path}/one")).await.ok()["data"], json!({"data": "value"}));
    });
}

#[test]
fn config_map_volume_immutability() {
    conform(async |cx| is_immutable(cx, &cx.namespace("config").await, "configmaps").await);
}

#[test]
fn secrets_with_empty_key() {
    conform(async |cx| {
        let ns = cx.namespace("config").await;
        cx.create(&format!("/api/v1/namespaces/{ns}/secrets"), &with_empty_key()).await.refused(422);
    });
}

#[test]
fn secret_patching() {
    conform(async |cx| life(cx, &cx.namespace("config").await, "secrets", "dmFsdWU=").await);
}

#[test]
fn secrets_volume_immutability() {
    conform(async |cx| is_immutable(cx, &cx.namespace("config").await, "secrets").await);
}

fn pod_template() -> Value {
    json!({"metadata": {}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
        "containers": [{"name": "nginx", "image": "nginx"}]}}})
}

#[test]
fn pod_template_lifecycle() {
    conform(async |cx| {
        let namespace = &cx.namespace("templates").await;
        let resource = "podtemplates";
        Lifecycle { group: "", resource, namespace, object: pod_template(), status: None }.run(cx).await;
    });
}

#[test]
fn pod_template_delete_a_collection() {
    conform(async |cx| {
        let ns = cx.namespace("templates").await;
        let path = format!("/api/v1/namespaces/{ns}/podtemplates");
        for name in ["a", "b", "c", "other"] {
            let mut object = pod_template();
            object["metadata"]["name"] = name.into();
            object["metadata"]["labels"]["podtemplate-set"] = (name != "other").to_string().into();
            cx.create(&path, &object).await.ok();
        }
        let selected = format!("{path}?labelSelector=podtemplate-set%3Dtrue");
        assert_eq!(cx.items(&selected).await.len(), 3);
        cx.delete(&selected).await.ok();
        assert_eq!(cx.names(&path).await, ["other"]);
    });
}

#[test]
fn pod_template_replace() {
    conform(async |cx| {
        let ns = cx.namespace("templates").await;
        let path = format!("/api/v1/namespaces/{ns}/podtemplates");
        let mut object = pod_template();
        object["metadata"]["name"] = "one".into();
        let mut made = cx.create(&path, &object).await.ok();
        made["metadata"]["annotations"] = json!({"updated": "true"});
        cx.replace(&format!("{path}/one"), &made).await.ok();
        assert_eq!(cx.get(&format!("{path}/one")).await.ok()["metadata"]["annotations"]["updated"], "true");
    });
}
