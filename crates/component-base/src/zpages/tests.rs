use std::collections::BTreeMap;

use base::{Rng, TokioClock};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::*;

fn pages(gates: Gates) -> Zpages {
    let clock =
        std::sync::Arc::new(TokioClock::starting_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_729_112_623)));
    let flags = BTreeMap::from([("v".to_owned(), "2".to_owned()), ("mark".to_owned(), "a<b".to_owned())]);
    let lifecycle = Lifecycle::new("test", clock, Rng::seeded(1)).with_gates(gates).with_command_line(flags);
    Zpages::new("apiserver", &lifecycle, &["/metrics", "/healthz", "/healthz"])
}

fn on() -> Gates {
    Gates::default().with(FLAGZ, true).with(STATUSZ, true)
}

async fn ask(pages: &Zpages, path: &str, accept: &str) -> (u16, HeaderMap, Vec<u8>) {
    let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
    let (parts, body) = pages.answer(path, &headers).unwrap().into_parts();
    (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test(start_paused = true)]
async fn people_get_text() {
    let pages = pages(on());
    tokio::time::sleep(Duration::from_secs(3_723)).await;
    for accept in ["", "*/*", "text/plain", "application/json, text/plain;q=0.1"] {
        let (code, headers, body) = ask(&pages, "/statusz", accept).await;
        let text = String::from_utf8(body).unwrap();
        assert_eq!((code, &headers["content-type"]), (200, &HeaderValue::from_static("text/plain; charset=utf-8")));
        assert!(text.starts_with("\napiserver statusz\nWarning: This endpoint is not meant to be "), "{text}");
        let facts: Vec<&str> = text.lines().skip(4).collect();
        let expected = [
            ("Started", "Wed Oct 16 21:03:43 UTC 2024"),
            ("Up", "1 hr 02 min 03 sec"),
            ("Paths", "/flagz /healthz /metrics /statusz"),
        ];
        for (name, value) in expected {
            let fits = |line: &&&str| line.starts_with(name) && line.ends_with(value);
            assert!(facts.iter().any(|line| fits(&line)), "{name} {value}: {text}");
        }
    }
    let (_, _, body) = ask(&pages, "/flagz", "").await;
    let text = String::from_utf8(body).unwrap();
    let lines: Vec<&str> = text.lines().skip(4).collect();
    assert!(
        matches!(lines.as_slice(), [mark, v] if mark.ends_with("a&lt;b") && v.starts_with('v') && v.ends_with('2'))
    );
}

#[tokio::test(start_paused = true)]
async fn programs_get_objects() {
    let pages = pages(on());
    tokio::time::sleep(Duration::from_secs(7)).await;
    let structured = |media: &str, version: &str, kind: &str| format!("{media};v={version};g=config.k8s.io;as={kind}");
    let (code, headers, body) = ask(&pages, "/statusz", &structured("application/json", "v1beta1", "Statusz")).await;
    assert_eq!((code, headers.get("warning")), (200, None));
    let value: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(value["apiVersion"], "config.k8s.io/v1beta1");
    assert_eq!((&value["startTime"], &value["uptimeSeconds"]), (&json!("2024-10-16T21:03:43Z"), &json!(7)));
    assert_eq!((&value["emulationVersion"], &value["metadata"]), (&json!("1.36"), &json!({"name": "apiserver"})));
    let (_, headers, body) = ask(&pages, "/flagz", &structured("application/yaml", "v1alpha1", "Flagz")).await;
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains("flags:\n  mark: a<b\n  v: \"2\"\n"), "{text}");
    let warning = "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\"";
    assert_eq!(headers["warning"], warning);

    let refused = [
        "application/json".to_owned(),
        structured("application/json", "v1", "Statusz"),
        structured("application/json", "v1beta1", "Flagz"),
        structured("application/vnd.kubernetes.protobuf", "v1beta1", "Statusz"),
        structured("application/cbor", "v1beta1", "Statusz"),
    ];
    for accept in refused {
        let (code, _, body) = ask(&pages, "/statusz", &accept).await;
        let status: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((code, &status["reason"]), (406, &json!("NotAcceptable")), "{accept}");
    }
}

#[tokio::test]
async fn gates_decide_which_pages_and_forms_there_are() {
    let with_cbor = pages(on().with(CBOR, true));
    let accept = "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz";
    let (code, headers, body) = ask(&with_cbor, "/flagz", accept).await;
    assert_eq!((code, &headers["content-type"]), (200, &HeaderValue::from_static("application/cbor")));
    assert_eq!(cbor::parse_value(&body).unwrap()["flags"]["v"], "2");
    let off = pages(on().with(FLAGZ, false));
    assert!(off.answer("/flagz", &HeaderMap::new()).is_none());
    assert!(off.answer("/statusz", &HeaderMap::new()).is_some());
    assert!(off.answer("/status", &HeaderMap::new()).is_none());
}
