//! A server that speaks CBOR: what it reads, sends and stores as it, and that others hear nothing of it.

use api_machinery::cbor::{self, CborError};
use component_base::Gates;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::harness::Api;
use crate::gates;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "apples.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "apples", "kind": "Apple"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

async fn speaking() -> Api {
    Api::as_process(|lifecycle| lifecycle.with_gates(Gates::default().with(gates::CBOR, true)), |_| {}).await
}

/// Code, content type and document of an answer to who would like nothing but CBOR.
async fn ask(api: &Api, line: &str, content_type: &str, body: Option<&Value>) -> (u16, String, Value) {
    let body = body.map(cbor::encode_value).unwrap_or_default();
    let headers = [("accept", "application/cbor"), ("content-type", content_type)];
    let answer = api.open(line, &headers, body).await;
    let content_type = answer.headers()["content-type"].to_str().expect("a text").to_owned();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, content_type, cbor::parse_value(&bytes).unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn objects_lists_and_errors_travel_as_cbor() {
    let api = speaking().await;
    let secret = json!({"metadata": {"name": "s"}, "data": {"a": "AP8="}, "stringData": {"b": "c"}});
    let (code, form, made) = ask(&api, &format!("POST {SECRETS}"), "application/cbor", Some(&secret)).await;
    assert_eq!((code, form.as_str(), &made["kind"]), (201, "application/cbor", &json!("Secret")), "{made}");
    assert_eq!(made["data"], json!({"a": "AP8=", "b": "Yw=="}));
    let as_json = api.get(&format!("{SECRETS}/s")).await.json();
    assert_eq!(as_json, ask(&api, &format!("GET {SECRETS}/s"), "", None).await.2, "the same in both forms");
    let (_, _, list) = ask(&api, &format!("GET {SECRETS}"), "", None).await;
    let expected = api.get(SECRETS).await.json();
    assert_eq!((&list["items"], &list["kind"]), (&expected["items"], &json!("SecretList")));
    let (code, form, status) = ask(&api, &format!("GET {SECRETS}/missing"), "", None).await;
    assert_eq!((code, form.as_str(), &status["reason"]), (404, "application/cbor", &json!("NotFound")));
    let accept = [("accept", "application/cbor;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")];
    let answer = api.open(&format!("GET {SECRETS}/s"), &accept, "").await;
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    let partial = cbor::parse_value(&bytes).expect("CBOR");
    assert_eq!((&partial["kind"], &partial["data"]), (&json!("PartialObjectMetadata"), &Value::Null));
    let applied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "data": {"x": "AQ=="}});
    let line = format!("PATCH {SECRETS}/t?fieldManager=m");
    let (code, _, made) = ask(&api, &line, "application/apply-patch+cbor", Some(&applied)).await;
    assert_eq!((code, &made["data"]["x"]), (201, &json!("AQ==")), "{made}");
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}});
    let (code, _, refused) = ask(&api, &format!("DELETE {SECRETS}/t"), "application/cbor", Some(&options)).await;
    assert_eq!(code, 409, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_and_broken_bodies_are_told_as_of_json() {
    let api = speaking().await;
    let secret = json!({"metadata": {"name": "s"}, "foo": 1});
    let line = format!("POST {SECRETS}?fieldValidation=Strict");
    let (code, _, status) = ask(&api, &line, "application/cbor", Some(&secret)).await;
    assert_eq!(code, 400);
    assert!(status["message"].as_str().is_some_and(|text| text.contains("unknown field \"foo\"")), "{status}");
    for body in [&b"\xd9\xd9\xf7\x9f"[..], &b"\xff"[..], &[0x81; 10_000]] {
        let answer = api.send(&format!("POST {SECRETS}"), &[("content-type", "application/cbor")], body).await;
        assert_eq!(answer.code, 400, "{}", answer.text);
        assert!(answer.text.contains("is unrecognized (must be of type Secret)"), "{}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_are_sequences_of_documents() {
    let api = speaking().await;
    api.config_map("a").await;
    let line = "GET /api/v1/namespaces/default/configmaps?watch=1";
    let answer = api.open(line, &[("accept", "application/cbor")], "").await;
    assert_eq!(answer.headers()["content-type"], "application/cbor-seq");
    let frame = answer.into_body().frame().await.expect("a frame").expect("no error").into_data().expect("data");
    // Several may come at once; where one ends is told by what is in it.
    let length = match cbor::parse_value(&frame) {
        Err(CborError::Extraneous(_, at)) => at,
        _ => frame.len(),
    };
    let event = cbor::parse_value(&frame[..length]).expect("one document");
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("a")), "{event}");
    assert_eq!(event["object"]["data"]["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_stored_as_cbor_and_read_in_either_form() {
    let api = speaking().await;
    assert_eq!(api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION).await.code, 201);
    let apples = "/apis/example.com/v1/namespaces/default/apples";
    let apple = r#"{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"x"},"spec":{"n":1.5,"l":[]}}"#;
    let mut made = api.post(apples, apple).await;
    for _ in 0..100 {
        if made.code == 201 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        made = api.post(apples, apple).await;
    }
    assert_eq!(made.code, 201, "{}", made.text);
    let backend = api.server.cx().backend();
    let key = "/registry/example.com/apples/default/x";
    let stored = backend.get(&key.into()).await.expect("a read").kv.expect("it is there").value;
    assert!(cbor::is_self_described(&stored));
    assert_eq!(cbor::parse_value(&stored).expect("CBOR")["spec"], json!({"n": 1.5, "l": []}));

    // One that was stored before is read, too, and written in the new form.
    let older = apple.replace("\"x\"", "\"y\",\"uid\":\"u\",\"namespace\":\"default\"");
    let key = "/registry/example.com/apples/default/y";
    backend.txn(&key.into(), storage::Expect::Any, storage::Write::put(older)).await.expect("a write");
    let labelled = api.patch("merge-patch", &format!("{apples}/y"), r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!(labelled.code, 200, "{}", labelled.text);
    let stored = backend.get(&key.into()).await.expect("a read").kv.expect("it is there").value;
    assert!(cbor::is_self_described(&stored));
    let (_, _, shown) = ask(&api, &format!("GET {apples}/y"), "", None).await;
    assert_eq!((&shown["kind"], &shown["spec"]["n"]), (&json!("Apple"), &json!(1.5)), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_speak_it_refuses_it() {
    let api = Api::start().await;
    for (line, headers) in [
        (format!("GET {SECRETS}"), ("accept", "application/cbor")),
        (format!("POST {SECRETS}"), ("content-type", "application/cbor")),
        (format!("PATCH {SECRETS}/s"), ("content-type", "application/apply-patch+cbor")),
    ] {
        let answer = api.send(&line, &[headers], cbor::encode_value(&json!({}))).await;
        assert!(matches!(answer.code, 406 | 415), "{line}: {}", answer.text);
        assert!(!answer.text.contains("cbor"), "{line}: {}", answer.text);
    }
}
