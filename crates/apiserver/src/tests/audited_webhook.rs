//! The audit log as it is sent to a service over HTTPS.

use std::time::Duration;

use audit::{Batching, Delivery, Mode, Truncation};
use serde_json::{Value, json};

use super::fake_webhook::{FakeWebhook, Reply};
use super::harness::Api;
use crate::config::{AuditConfig, AuditWebhookConfig};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// A batch that nothing but the end makes leave.
const PATIENT: Batching = Batching { room: 100, max_events: 100, max_wait: Duration::from_secs(3600), rate: None };

/// A server that tells the service all of one user's requests.
async fn start(
    webhook: &FakeWebhook,
    user: &str,
    mode: Mode,
    truncation: Option<Truncation>,
) -> (tempfile::TempDir, Api) {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = folder.path().join("policy.yaml");
    let rules = format!("[{{level: RequestResponse, users: [{user}]}}]");
    std::fs::write(&policy, format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n")).expect("a policy");
    let delivery = Delivery { mode, batching: PATIENT, truncation };
    let (kubeconfig, first_delay) = (webhook.kubeconfig(), Duration::from_millis(1));
    let webhook = Some(AuditWebhookConfig { kubeconfig, first_delay, delivery });
    (folder, Api::with(|server| server.audit = Some(AuditConfig { policy, log: None, webhook })).await)
}

/// The code of an answer to a user who may nothing.
async fn alice(api: &Api, path: &str) -> u16 {
    api.send(&format!("GET {path}"), &[("authorization", "Bearer alice")], "").await.code
}

fn lists(webhook: &FakeWebhook) -> Vec<Value> {
    let asked = webhook.asked();
    for list in &asked {
        assert_eq!((list.uri.as_str(), list.authorization.as_str()), ("/ask?timeout=30s", "Bearer secret"));
        assert_eq!((&list.body["kind"], &list.body["apiVersion"]), (&json!("EventList"), &json!("audit.k8s.io/v1")));
        assert_eq!(list.body["metadata"], json!({}));
    }
    asked.into_iter().map(|list| list.body["items"].clone()).collect()
}

#[tokio::test]
async fn what_waits_is_sent_at_the_end() {
    let webhook = FakeWebhook::start(Reply::With(200, String::new()));
    let (_folder, api) = start(&webhook, "alice", Mode::Batch, None).await;
    assert_eq!(alice(&api, MAPS).await, 403);
    assert_eq!(alice(&api, &format!("{MAPS}/a")).await, 403);
    assert!(webhook.asked().is_empty(), "a batch waits to be full");
    crate::server::shut_down(api.server.cx(), None).await;
    let [items] = lists(&webhook).try_into().expect("one list");
    let told: Vec<(&Value, &Value)> =
        items.as_array().expect("events").iter().map(|event| (&event["requestURI"], &event["stage"])).collect();
    let (first, second) = (json!(MAPS), json!(format!("{MAPS}/a")));
    let (received, complete) = (json!("RequestReceived"), json!("ResponseComplete"));
    assert_eq!(told, [(&first, &received), (&first, &complete), (&second, &received), (&second, &complete)]);
    assert_eq!(items[1]["responseObject"]["reason"], "Forbidden");
    assert!(items[0].get("kind").is_none() && items[0].get("responseStatus").is_none(), "{}", items[0]);
}

#[tokio::test]
async fn a_service_that_refuses_is_asked_again_and_refuses_requests_where_that_is_asked_for() {
    let webhook = FakeWebhook::start(Reply::With(403, "{}".to_owned()));
    let (_folder, api) = start(&webhook, "alice", Mode::BlockingStrict, None).await;
    let answer = api.send(&format!("GET {MAPS}"), &[("authorization", "Bearer alice")], "").await;
    let text = format!("Internal Server Error: \"{MAPS}\": failed to store audit event\n");
    assert_eq!((answer.code, answer.text), (500, text));
    // That the request was refused is told, too, which goes no better.
    assert_eq!(lists(&webhook).len(), 10, "five tries of each event");
    let metrics = api.get("/metrics").await.text;
    for expected in ["apiserver_audit_error_total{plugin=\"webhook\"} 2", "apiserver_audit_requests_rejected_total 1"] {
        assert!(metrics.contains(expected), "{expected}");
    }
    webhook.reply(Reply::With(200, String::new()));
    assert_eq!(alice(&api, MAPS).await, 403);
    let stages: Vec<Value> = lists(&webhook).iter().map(|items| items[0]["stage"].clone()).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"], "each is told before the request goes on");
}

#[tokio::test]
async fn what_is_too_large_is_sent_without_its_objects() {
    let webhook = FakeWebhook::start(Reply::With(200, String::new()));
    let truncation = Truncation { max_event_bytes: 3000, max_batch_bytes: 10_000 };
    let (_folder, api) = start(&webhook, "root", Mode::Blocking, Some(truncation)).await;
    let review = |pad: usize| {
        let name = "x".repeat(pad);
        format!(r#"{{"spec": {{"resourceAttributes": {{"verb": "get", "resource": "pods", "name": "{name}"}}}}}}"#)
    };
    for (pad, is_whole) in [(1, true), (3000, false)] {
        let made = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review(pad)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let event = lists(&webhook).pop().expect("a list")[0].clone();
        assert_eq!(event["stage"], "ResponseComplete");
        assert_eq!(event.get("responseObject").is_some(), is_whole, "{event}");
        assert_eq!(event["annotations"].get("audit.k8s.io/truncated").is_none(), is_whole, "{event}");
    }
}
