//! Custom objects whose versions differ, and the webhook that makes one of the other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Api, frame};
use super::review_server::{Reply, ReviewServer};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FIRST: &str = "/apis/example.com/v1/namespaces/default/pears";
const SECOND: &str = "/apis/example.com/v2/namespaces/default/pears";

/// Version 1 has a size, version 2 has it within a shape.
fn definition(stored: &str, server: &ReviewServer) -> Value {
    let version = |name: &str, spec: Value| {
        json!({
            "name": name, "served": true, "storage": name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let size = json!({"type": "integer"});
    let first = json!({"type": "object", "properties": {"size": size}});
    let shape =
        json!({"type": "object", "properties": {"size": size, "colour": {"type": "string", "default": "green"}}});
    let second = json!({"type": "object", "properties": {"shape": shape}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pears.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "pears", "kind": "Pear"},
            "versions": [version("v1", first), version("v2", second)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": server.client_config(), "conversionReviewVersions": ["v1", "v1beta1"],
            }},
        },
    })
}

fn convert(object: &Value, wanted: &str) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = json!(wanted);
    converted["spec"] = match wanted {
        "example.com/v2" => json!({"shape": {"size": object["spec"]["size"]}, "unknown": true}),
        _ => json!({"size": object["spec"]["shape"]["size"]}),
    };
    converted
}

/// A webhook that does its work, and then something to each answer.
fn converts(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Reply {
    Reply::Made(Arc::new(move |review| {
        let request = &review["request"];
        let wanted = request["desiredAPIVersion"].as_str().expect("a version");
        let objects = request["objects"].as_array().expect("objects");
        let objects: Vec<Value> = objects.iter().map(|object| convert(object, wanted)).collect();
        let mut response = json!({"result": {"status": "Success"}, "convertedObjects": objects});
        change(&mut response);
        response
    }))
}

async fn until(api: &Api, path: &str, fits: impl Fn(&Value) -> bool) {
    for _ in 0..200 {
        let answer = api.get(path).await;
        if answer.code == 200 && fits(&answer.json()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} never got there: {:?}", api.get(path).await);
}

async fn with_pears(stored: &str) -> (Api, ReviewServer) {
    let (api, server) = (Api::start().await, ReviewServer::start(converts(|_| {})));
    let made = api.post(DEFINITIONS, &definition(stored, &server).to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    for path in [FIRST, SECOND] {
        until(&api, path, |_| true).await;
    }
    (api, server)
}

/// The next events of a watch, as many as are wanted: several may come at once.
async fn events(watch: &mut component_base::serving::Body, count: usize) -> Vec<Value> {
    let mut events = Vec::new();
    while events.len() < count {
        let frame = frame(watch).await.expect("an event");
        events.extend(frame.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
    }
    events
}

fn pear(version: &str, name: &str, spec: &Value) -> String {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Pear", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

#[tokio::test]
async fn versions_are_converted_both_ways() {
    let (api, server) = with_pears("v1").await;
    let created = api.post(SECOND, &pear("v2", "a", &json!({"shape": {"size": 3}}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    // What the webhook adds and the schema does not know goes, and defaults are those of the version that is shown.
    let in_second = json!({"shape": {"size": 3, "colour": "green"}});
    assert_eq!(created.json()["spec"], in_second);
    let directions: Vec<Value> = server.asked().iter().map(|own| own.request["desiredAPIVersion"].clone()).collect();
    assert!(directions.contains(&json!("example.com/v1")), "{directions:?}");
    let first = api.get(&format!("{FIRST}/a")).await.json();
    assert_eq!((&first["apiVersion"], &first["spec"]), (&json!("example.com/v1"), &json!({"size": 3})));
    let second = api.get(&format!("{SECOND}/a")).await.json();
    assert_eq!((&second["apiVersion"], &second["spec"]), (&json!("example.com/v2"), &in_second));
    let patched = api.patch("merge-patch", &format!("{SECOND}/a"), r#"{"spec":{"shape":{"size":4}}}"#).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    assert_eq!(api.get(&format!("{FIRST}/a")).await.json()["spec"], json!({"size": 4}));
    // Who asks for what is stored asks nobody else.
    server.asked();
    api.get(&format!("{FIRST}/a")).await;
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_list_is_one_question_and_is_asked_once() {
    let (api, server) = with_pears("v1").await;
    for name in ["a", "b", "c"] {
        assert_eq!(api.post(FIRST, &pear("v1", name, &json!({"size": 1}))).await.code, 201);
    }
    server.asked();
    for _ in 0..2 {
        let list = api.get(SECOND).await.json();
        let items = list["items"].as_array().expect("items");
        assert_eq!(items.len(), 3);
        assert!(items.iter().all(|item| item["spec"]["shape"]["size"] == 1 && item["apiVersion"] == "example.com/v2"));
    }
    let asked: Vec<usize> =
        server.asked().iter().map(|own| own.request["objects"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(asked, [3], "what was converted is kept");
    let mut watch = api.open(&format!("GET {SECOND}?watch=true&resourceVersion=0"), &[], "").await.into_body();
    let known = events(&mut watch, 3).await;
    assert!(known.iter().all(|event| event["object"]["spec"]["shape"]["size"] == 1), "{known:?}");
    assert_eq!(api.post(FIRST, &pear("v1", "d", &json!({"size": 9}))).await.code, 201);
    let event = events(&mut watch, 1).await.remove(0);
    assert_eq!((&event["type"], &event["object"]["spec"]["shape"]["size"]), (&json!("ADDED"), &json!(9)));
}

/// What is wrong with an answer is told in upstream's words.
#[tokio::test]
async fn bad_answers_are_failures() {
    let (api, server) = with_pears("v1").await;
    assert_eq!(api.post(FIRST, &pear("v1", "a", &json!({"size": 1}))).await.code, 201);
    let set = |path: &'static str, value: Value| {
        converts(move |response| *response.pointer_mut(path).expect(path) = value.clone())
    };
    let rows = [
        (set("/result", json!({"status": "Failed", "message": "no"})), "failed: no"),
        (set("/result", json!({})), "failed: response.result.status was '', not 'Success'"),
        (set("/convertedObjects", json!([])), "returned 0 objects, expected 1"),
        (
            set("/convertedObjects/0/apiVersion", json!("example.com/v3")),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
        ),
        (
            set("/convertedObjects/0/kind", json!("Apple")),
            "returned invalid object at index 0: invalid kind (expected Pear, received Apple)",
        ),
        (
            set("/convertedObjects/0/metadata/name", json!("b")),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            set("/convertedObjects/0/metadata", Value::Null),
            "returned invalid metadata: invalid metadata of type <nil> in converted object",
        ),
        (
            converts(|response| response["convertedObjects"][0]["metadata"]["labels"] = json!({"a": "/"})),
            "returned invalid metadata: metadata.labels",
        ),
        (Reply::With(500, "broken".into(), "/"), "failed: "),
        (Reply::With(200, "garbage".into(), "/"), "failed: "),
        (Reply::With(301, String::new(), "/"), "failed: "),
        (Reply::Endless, "failed: "),
    ];
    for (reply, expected) in rows {
        server.reply(reply);
        let (code, text) = api.get(&format!("{SECOND}/a")).await.refusal();
        let expected = format!("conversion webhook for example.com/v1, Kind=Pear {expected}");
        assert!(code == 500 && text.starts_with(&expected), "{expected}: {code} {text}");
    }
    assert_eq!(api.get(&format!("{FIRST}/a")).await.code, 200, "what is stored needs no webhook");
    server.reply(converts(|response| response["convertedObjects"][0]["metadata"]["labels"] = json!({"made": "so"})));
    let second = api.get(&format!("{SECOND}/a")).await.json();
    assert_eq!(second["metadata"]["labels"], json!({"made": "so"}), "labels may change");
    let metrics = api.get("/metrics").await.text;
    for line in [
        r#"apiserver_conversion_webhook_request_total{failure_type="",result="success"} 1"#,
        r#"failure_type="conversion_webhook_partial_response_failure",result="failure"} 1"#,
        r#"failure_type="conversion_webhook_malformed_response_failure",result="failure"} 3"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// A webhook that hangs on one object keeps nobody from the others.
#[tokio::test]
async fn who_asks_for_something_else_does_not_wait_for_a_webhook_that_hangs() {
    let (api, server) = with_pears("v1").await;
    for name in ["a", "stuck"] {
        assert_eq!(api.post(FIRST, &pear("v1", name, &json!({"size": 1}))).await.code, 201);
    }
    let (answers, is_asked) = (converts(|_| {}), Arc::new(tokio::sync::Notify::new()));
    let noticed = Arc::clone(&is_asked);
    server.reply(Reply::By(Arc::new(move |review| {
        let mut objects = review["request"]["objects"].as_array().expect("objects").iter();
        if objects.any(|object| object["metadata"]["name"] == "stuck") {
            noticed.notify_one();
            return Reply::Never;
        }
        answers.clone()
    })));
    let others = async {
        is_asked.notified().await;
        let read = api.get(&format!("{SECOND}/a")).await;
        assert_eq!((read.code, &read.json()["spec"]["shape"]["size"]), (200, &json!(1)));
    };
    tokio::select! {
        list = api.get(SECOND) => panic!("{list:?}"),
        within = tokio::time::timeout(Duration::from_secs(20), others) => within.expect("an answer in time"),
    }
}

#[tokio::test]
async fn what_is_stored_as_a_former_version_is_converted_when_it_is_shown() {
    let (api, server) = with_pears("v1").await;
    assert_eq!(api.post(FIRST, &pear("v1", "old", &json!({"size": 1}))).await.code, 201);
    let path = format!("{DEFINITIONS}/pears.example.com");
    let spec = definition("v2", &server)["spec"].clone();
    let changed = api.patch("merge-patch", &path, &json!({"spec": spec}).to_string()).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    until(&api, &path, |own| own["status"]["storedVersions"] == json!(["v1", "v2"])).await;
    until(&api, &format!("{SECOND}/old"), |own| own["spec"]["shape"]["size"] == 1).await;
    assert_eq!(api.get(&format!("{FIRST}/old")).await.json()["spec"], json!({"size": 1}));
    // A write brings the object to the version that is stored now.
    let patched = api.patch("merge-patch", &format!("{FIRST}/old"), r#"{"spec":{"size":2}}"#).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    server.asked();
    assert_eq!(api.get(&format!("{SECOND}/old")).await.json()["spec"]["shape"]["size"], 2);
    assert!(server.asked().is_empty(), "what is stored needs no webhook");
}

#[tokio::test]
async fn a_bundle_that_cannot_be_read_keeps_a_definition_out() {
    let (api, server) = (Api::start().await, ReviewServer::start(converts(|_| {})));
    let mut bad = definition("v1", &server);
    bad["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("Z2FyYmFnZQ==");
    let made = api.post(DEFINITIONS, &bad.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    until(&api, &format!("{DEFINITIONS}/pears.example.com"), |own| {
        let conditions = own["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["reason"] == "InvalidCABundle" && condition["status"] == "False")
    })
    .await;
    assert_eq!(api.get(FIRST).await.code, 404);
}
