//! Events of both groups.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform, name_of, patch, text};

const CORE: &str = "/api/v1";
const NEW: &str = "/apis/events.k8s.io/v1";

fn new_event(ns: &str, name: &str, label: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"testevent-set": label}},
        "regarding": {"namespace": ns, "kind": "Pod", "name": "x"}, "note": "This is a test event",
        "eventTime": "2017-09-19T13:49:16.000000Z", "action": "Do", "reason": "Test", "type": "Normal",
        "reportingController": "test-controller", "reportingInstance": "test-node",
    })
}

fn core_event(ns: &str, name: &str, label: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"testevent-constant": label}},
        "involvedObject": {"namespace": ns, "kind": "Pod", "name": "x"}, "message": "This is a test event",
        "reason": "Test", "type": "Normal", "count": 1, "source": {"component": "test"},
    })
}

async fn collection_goes(cx: &Cx, path: &str, make: impl Fn(&str, &str) -> Value, label: &str) {
    for name in ["test-event-1", "test-event-2", "test-event-3"] {
        cx.create(path, &make(name, "true")).await.ok();
    }
    cx.create(path, &make("other", "false")).await.ok();
    let selected = format!("{path}?labelSelector={label}%3Dtrue");
    assert_eq!(cx.items(&selected).await.len(), 3);
    cx.delete(&selected).await.ok();
    cx.eventually("the deletion", async || cx.items(&selected).await.is_empty().then_some(())).await;
    assert!(cx.exists(&format!("{path}/other")).await);
}

#[test]
fn new_event_lifecycle_of_a_list() {
    conform(async |cx| {
        let ns = cx.namespace("events").await;
        let path = format!("{NEW}/namespaces/{ns}/events");
        collection_goes(cx, &path, |name, label| new_event(&ns, name, label), "testevent-set").await;
    });
}

#[test]
fn new_event_lifecycle_of_a_single_event() {
    conform(async |cx| {
        let ns = cx.namespace("events").await;
        let path = format!("{NEW}/namespaces/{ns}/events");
        cx.create(&path, &new_event(&ns, "event-test", "true")).await.ok();
        let everywhere = format!("{NEW}/events?fieldSelector=metadata.namespace%3D{ns}");
        assert!(cx.names(&everywhere).await.contains(&"event-test".to_owned()));
        let by_reason = |reason: &str| format!("{path}?fieldSelector=reason%3D{reason}");
        assert_eq!(cx.names(&by_reason("Test")).await, ["event-test"]);
        assert!(cx.names(&by_reason("Other")).await.is_empty());
        let by_controller = format!("{path}?fieldSelector=reportingController%3Dtest-controller");
        assert_eq!(cx.names(&by_controller).await, ["event-test"]);

        let own = format!("{path}/event-test");
        let series = json!({"series": {"count": 2, "lastObservedTime": "2017-09-19T13:50:16.000000Z"}});
        let patched = cx.patch(&own, patch::STRATEGIC, &series).await.ok();
        assert_eq!(patched["series"]["count"], 2);
        let mut event = cx.get(&own).await.ok();
        event["series"] = json!({"count": 100, "lastObservedTime": "2014-09-19T13:49:16.000000Z"});
        cx.replace(&own, &event).await.ok();
        let read = cx.get(&own).await.ok();
        assert_eq!(read["series"], json!({"count": 100, "lastObservedTime": "2014-09-19T13:49:16.000000Z"}));
        cx.delete(&own).await.ok();
        assert!(!cx.exists(&own).await);
        assert!(cx.names(&path).await.iter().all(|name| name != "event-test"));
    });
}

#[test]
fn event_delete_a_collection() {
    conform(async |cx| {
        let ns = cx.namespace("events").await;
        let path = format!("{CORE}/namespaces/{ns}/events");
        collection_goes(cx, &path, |name, label| core_event(&ns, name, label), "testevent-constant").await;
    });
}

#[test]
fn event_manage_the_lifecycle() {
    conform(async |cx| {
        let ns = cx.namespace("events").await;
        let path = format!("{CORE}/namespaces/{ns}/events");
        cx.create(&path, &core_event(&ns, "event-test", "true")).await.ok();
        let selected = format!("{CORE}/events?labelSelector=testevent-constant%3Dtrue");
        assert_eq!(cx.names(&selected).await, ["event-test"]);
        let own = format!("{path}/event-test");
        let body = json!({"message": "This is a test event - patched"});
        let patched = cx.patch(&own, patch::STRATEGIC, &body).await.ok();
        assert_eq!(text(&patched["message"]), "This is a test event - patched");
        assert_eq!(name_of(&cx.get(&own).await.ok()), "event-test");
        let mut event = cx.get(&own).await.ok();
        event["message"] = "updated".into();
        event["count"] = 7.into();
        cx.replace(&own, &event).await.ok();
        let read = cx.get(&own).await.ok();
        assert_eq!((text(&read["message"]), &read["count"]), ("updated", &7.into()));
        cx.delete(&own).await.ok();
        assert!(cx.names(&selected).await.is_empty());
    });
}
