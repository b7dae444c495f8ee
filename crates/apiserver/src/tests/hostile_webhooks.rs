//! Webhooks that are away, slow, endless, or answer what nobody asked. `docs/vulnerabilities.md` says which reports these
//! are.

use std::sync::Arc;

use serde_json::{Value, json};

use super::harness::{Answer, Api};
use super::review_server::{Reply, ReviewServer, configure};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(api: &Api, name: &str) -> Answer {
    api.post(MAPS, &json!({"metadata": {"name": name}}).to_string()).await
}

async fn both(changed: &Value) -> (Api, ReviewServer) {
    let (api, server) = (Api::start().await, ReviewServer::start(Reply::allows()));
    for kind in ["mutating", "validating"] {
        configure(&api, kind, "c", &[server.webhook(kind, changed)]).await;
    }
    (api, server)
}

/// V05: a webhook that points elsewhere does not make the server ask there, and is as good as away.
#[tokio::test]
async fn redirects_of_webhooks_lead_nowhere() {
    let (api, server) = both(&json!({})).await;
    let canary = ReviewServer::start(Reply::allows());
    let location: &'static str = Box::leak(canary.url().into_boxed_str());
    for code in [301, 302, 303, 307, 308] {
        server.reply(Reply::With(code, "secret".into(), location));
        let refused = create(&api, "m").await;
        let (code, text) = refused.refusal();
        let expected =
            "Internal error occurred: failed calling webhook \"mutating.example.com\": failed to call webhook: Post ";
        assert!(code == 500 && text.starts_with(expected), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    assert!(canary.asked().is_empty());
}

/// What is wrong with an answer is a failure of the call; the policy says what comes of it.
#[tokio::test]
async fn bad_answers_are_failures() {
    let with_uid = |response: Value| Reply::Response(response);
    let (api, server) = both(&json!({"timeoutSeconds": 1})).await;
    let replies = [
        (Reply::With(200, "garbage".into(), "/"), "failed to call webhook: "),
        (Reply::With(200, String::new(), "/"), "failed to call webhook: "),
        (Reply::With(200, "{}".into(), "/"), "received invalid webhook response: webhook response was absent"),
        (Reply::With(500, "broken".into(), "/"), "failed to call webhook: "),
        (
            with_uid(json!({"uid": "other", "allowed": true})),
            "received invalid webhook response: expected response.uid=",
        ),
        (
            with_uid(json!({"allowed": true, "patch": "W10="})),
            "webhook returned response.patch but not response.patchType",
        ),
        (with_uid(json!({"allowed": true, "patchType": "JSONPatch", "patch": "bm8="})), "received undecodable patch"),
        (Reply::Endless, "response is too large"),
        (Reply::Never, "context deadline exceeded"),
    ];
    for (reply, expected) in replies {
        server.reply(reply);
        let (code, text) = create(&api, "m").await.refusal();
        let start = "Internal error occurred: failed calling webhook \"mutating.example.com\": ";
        assert!(code == 500 && text.starts_with(start) && text.contains(expected), "{expected}: {text}");
    }
    let depth = 2000;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    server.reply(Reply::With(200, nested, "/"));
    assert_eq!(create(&api, "m").await.code, 500);
}

#[tokio::test]
async fn requests_go_on_where_the_policy_says_so() {
    let (api, server) = both(&json!({"failurePolicy": "Ignore", "timeoutSeconds": 1})).await;
    server.reply(Reply::With(500, "broken".into(), "/"));
    assert_eq!(create(&api, "a").await.code, 201);
    server.reply(Reply::Never);
    assert_eq!(create(&api, "b").await.code, 201);
    drop(server);
    assert_eq!(create(&api, "c").await.code, 201);
}

/// Patches cannot do more to the server than to the object.
#[tokio::test]
async fn patches_are_bounded() {
    let (api, server) = both(&json!({})).await;
    for operations in [
        json!([{"op": "add", "path": "/data/-1/0", "value": 1}]),
        json!([{"op": "add", "path": "/metadata/finalizers/99999999999999999999", "value": "x"}]),
        json!([{"op": "move", "from": "/metadata", "path": "/metadata/labels"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "replace", "path": "", "value": []}]),
        json!([{"op": "replace", "path": "/kind", "value": "Secret"}]),
        Value::Array(vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 20_000]),
    ] {
        server.reply(Reply::patches(&operations));
        let answer = create(&api, "m").await;
        assert!(answer.code >= 400, "{}", answer.text);
    }
    server.reply(Reply::allows());
    assert_eq!(create(&api, "m").await.code, 201);
}

/// A first attempt may go by a cache that lags; what is written is what both were asked about last.
fn check_last(server: &ReviewServer, stored: &Value) {
    let asked = server.asked();
    assert!(asked.len() >= 2, "{stored}");
    for asked in asked.iter().rev().take(2) {
        assert_eq!(asked.request["oldObject"], *stored);
    }
}

/// V12: the old object is what is stored, whatever is asked for.
#[tokio::test]
async fn the_old_object_is_the_stored_one() {
    let node = json!({"rules": [{
        "operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes", "nodes/status"],
    }]});
    let (api, server) = both(&node).await;
    let made = api.post("/api/v1/nodes", &json!({"metadata": {"name": "n", "labels": {"a": "b"}}}).to_string()).await;
    assert_eq!(made.code, 201);
    let path = "/api/v1/nodes/n";
    let rename = json!({"metadata": {"labels": {"a": "changed"}}, "spec": {"unschedulable": true}}).to_string();
    for (path, kind) in [
        (path.to_owned(), "merge-patch"),
        (path.to_owned(), "strategic-merge-patch"),
        (format!("{path}/status"), "merge-patch"),
    ] {
        let mut stored = api.get("/api/v1/nodes/n").await.json();
        server.asked();
        assert_eq!(api.patch(kind, &path, &rename).await.code, 200);
        check_last(&server, &stored);
        stored = api.get("/api/v1/nodes/n").await.json();
        let mut put = stored.clone();
        put["metadata"]["labels"]["a"] = json!("again");
        server.asked();
        assert_eq!(api.put(&path, &put.to_string()).await.code, 200);
        check_last(&server, &stored);
    }
}

/// V11: whatever way a write takes, it is told as what it is going to be.
#[tokio::test]
async fn every_kind_of_write_is_told() {
    let (api, server) = both(&json!({})).await;
    assert_eq!(create(&api, "m").await.code, 201);
    server.reply(Reply::Made(Arc::new(|review| {
        let bad = review["request"]["object"]["data"]["bad"].is_string();
        json!({"allowed": !bad, "status": {"code": 403, "message": "bad"}})
    })));
    let path = format!("{MAPS}/m");
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"bad": "1"}}).to_string();
    for (kind, query, body) in [
        ("json-patch", "", r#"[{"op":"add","path":"/data","value":{"bad":"1"}}]"#),
        ("merge-patch", "", r#"{"data":{"bad":"1"}}"#),
        ("strategic-merge-patch", "", r#"{"data":{"bad":"1"}}"#),
        ("apply", "?fieldManager=me&force=true", applied.as_str()),
    ] {
        let refused = api.patch(kind, &format!("{path}{query}"), body).await;
        assert!(refused.code == 403 && refused.text.contains("denied the request: bad"), "{kind}: {}", refused.text);
    }
    let put = api.put(&path, &json!({"metadata": {"name": "m"}, "data": {"bad": "1"}}).to_string()).await;
    assert_eq!(put.code, 403, "{}", put.text);
    assert!(api.get(&path).await.json().get("data").is_none());
}

/// Services that lead nowhere.
#[tokio::test]
async fn services_without_endpoints_are_failures() {
    let api = Api::start().await;
    let server = ReviewServer::start(Reply::allows());
    let service = |name: &str, port: i32| json!({"clientConfig": {"service": {"namespace": "default", "name": name, "port": port}}});
    let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 443}]}});
    assert_eq!(api.post("/api/v1/namespaces/default/services", &body.to_string()).await.code, 201);
    let post = |host: &str, why: &str| format!("failed to call webhook: Post \"https://{host}/?timeout=5s\": {why}");
    for (name, port, expected) in [
        ("absent", 443, post("absent.default.svc:443", "service \"absent\" not found")),
        ("s", 80, post("s.default.svc:80", "no service port 80 found for service \"s\"")),
        ("s", 443, post("s.default.svc:443", "no endpoints available for service \"s\"")),
    ] {
        let config = format!("c-{name}-{port}");
        configure(&api, "validating", &config, &[server.webhook("w", &service(name, port))]).await;
        let (code, text) = create(&api, "m").await.refusal();
        assert_eq!(
            (code, text),
            (500, format!("Internal error occurred: failed calling webhook \"w.example.com\": {expected}"))
        );
        let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{config}");
        api.delete(&path).await;
        api.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations").await;
    }
}
