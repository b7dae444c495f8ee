//! Requests passed on to servers that are none of ours: bodies that pass in both directions at once, and servers that say
//! what they serve in older forms, or no more.

use std::sync::Arc;

use base::TaskGroup;
use component_base::serving::{Request, Response, ServerHandle, handler_fn, text};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::front::{Front, SERVICES};

const NAME: &str = "v1.old.example.io";
const GROUP: &str = "old.example.io";
const VERSION: &str = "/apis/old.example.io/v1";
const THINGS: &str = "/apis/old.example.io/v1/things";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const WHOLE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A front with a server behind that has passed the check.
async fn with<F, A>(answer: F) -> (Front, ServerHandle)
where
    F: Fn(TaskGroup, Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let front = Front::start().await;
    let tasks = front.sockets.tasks.clone();
    let handle = front.trust.start(&tasks.clone(), Arc::new(handler_fn(move |request| answer(tasks.clone(), request))));
    front.trust_and_register(NAME, handle.address()).await;
    front.until_condition(NAME, "Passed").await;
    (front, handle)
}

/// Reads until something has come.
async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), wanted: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(wanted) {
        let byte = stream.read_u8().await;
        read.push(byte.unwrap_or_else(|error| panic!("{error} before {wanted}: {}", String::from_utf8_lossy(&read))));
    }
}

#[tokio::test]
async fn neither_body_waits_for_the_end_of_the_other() {
    let (front, _handle) = with(|_, request| async move {
        if request.uri().path() == VERSION {
            return text(StatusCode::OK, "{}");
        }
        Response::new(request.into_body())
    })
    .await;
    let mut socket = front.sockets.connect().await;
    let head = format!(
        "POST {THINGS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer root\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    for (chunk, wanted) in [("3\r\none\r\n", "one"), ("3\r\ntwo\r\n", "two"), ("0\r\n\r\n", "\r\n0\r\n\r\n")] {
        socket.write_all(chunk.as_bytes()).await.unwrap();
        read_until(&mut socket, wanted).await;
    }
    // More than this server itself would take of one request.
    let large = "x".repeat(4 * 1024 * 1024);
    let answer = front.api().post(THINGS, &large).await;
    assert_eq!((answer.code, answer.text.len()), (200, large.len()));
    front.sockets.stop().await;
}

#[tokio::test]
async fn an_upgraded_connection_carries_bytes_both_ways() {
    let (front, _handle) = with(|tasks, mut request| async move {
        let upgrade = hyper::upgrade::on(&mut request);
        let mut answer = text(StatusCode::OK, "");
        if request.headers().contains_key("upgrade") {
            tasks.spawn_cancellable("echo", async move {
                let mut io = TokioIo::new(upgrade.await.unwrap());
                let mut bytes = [0; 4];
                io.read_exact(&mut bytes).await.unwrap();
                io.write_all(&bytes.map(|byte| byte.to_ascii_uppercase())).await.unwrap();
            });
            *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            for (name, value) in [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")] {
                answer.headers_mut().insert(name, HeaderValue::from_static(value));
            }
        }
        answer
    })
    .await;
    let mut socket = front.sockets.connect().await;
    let head = format!(
        "POST {THINGS}/x/exec HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\n\
         Upgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut socket, "\r\n\r\n").await;
    socket.write_all(b"ping").await.unwrap();
    read_until(&mut socket, "PING").await;
    front.sockets.stop().await;
}

/// A server that knows neither the one document of discovery nor descriptions of version 3.
fn older(request: &Request) -> Response {
    let body = match request.uri().path() {
        VERSION => json!({"kind": "APIResourceList", "groupVersion": "old.example.io/v1", "resources": [
            {"name": "things", "singularName": "thing", "namespaced": false, "kind": "Thing", "verbs": ["list"]}]}),
        "/openapi/v2" => json!({"swagger": "2.0", "info": {"title": "Old", "version": "v1"},
            "paths": {THINGS: {"get": {"responses": {"200": {"description": "OK",
                "schema": {"$ref": "#/definitions/old.Thing"}}}}}},
            "definitions": {"old.Thing": {"type": "object"}}}),
        _ => return text(StatusCode::NOT_FOUND, "404 page not found"),
    };
    let mut answer = text(StatusCode::OK, body.to_string());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn group(document: &Value) -> Option<Value> {
    document["items"].as_array()?.iter().find(|item| item["metadata"]["name"] == GROUP).cloned()
}

#[tokio::test]
async fn older_servers_are_found_and_described_like_others() {
    let (front, _handle) = with(|_, request| async move { older(&request) }).await;
    let is_current = |document: &Value| group(document).is_some_and(|own| own["versions"][0]["freshness"] == "Current");
    let whole = front.until("/apis", WHOLE, is_current).await;
    assert_eq!(group(&whole).unwrap()["versions"][0]["resources"][0]["responseKind"]["kind"], "Thing");

    let key = format!("apis/{GROUP}/v1");
    let index = front.until("/openapi/v3", "application/json", |index| index["paths"][&key].is_object()).await;
    let url = index["paths"][&key]["serverRelativeURL"].as_str().unwrap().to_owned();
    let described = front.api().get(&url).await;
    assert_eq!((described.code, &described.headers["cache-control"]), (200, &"public, immutable".parse().unwrap()));
    let described = described.json();
    assert_eq!(described["info"]["title"], "Old");
    assert!(described["components"]["schemas"]["old.Thing"].is_object(), "{described}");
    let packed = [("accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")];
    assert_eq!(front.api().send(&format!("GET {url}"), &packed, "").await.code, 200);
    let whole = front.until("/openapi/v2", "application/json", |whole| whole["paths"][THINGS].is_object()).await;
    assert_eq!(whole["definitions"]["old.Thing"], json!({"type": "object"}));
    let metrics = front.api().get("/metrics").await.text;
    for line in [
        format!("aggregator_openapi_v2_regeneration_count{{apiservice=\"{NAME}\",reason=\"add\"}} 1\n"),
        "aggregator_discovery_aggregation_count_total ".to_owned(),
        format!("aggregator_unavailable_apiservice{{name=\"{NAME}\"}} 0\n"),
    ] {
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    front.sockets.stop().await;
}

#[tokio::test]
async fn a_server_that_goes_away_is_missed() {
    let (front, handle) = with(|_, request| async move { older(&request) }).await;
    let is_fresh = |wanted: &'static str| {
        move |document: &Value| group(document).is_some_and(|own| own["versions"][0]["freshness"] == wanted)
    };
    front.until("/apis", WHOLE, is_fresh("Current")).await;
    handle.shutdown(std::time::Duration::ZERO).await;
    let refused = front.api().get(THINGS).await;
    let address = handle.address();
    assert_eq!(refused.code, 503);
    assert!(
        refused.text.starts_with("dial tcp 127.0.0.1:") || refused.text.starts_with("dial tcp [::1]:"),
        "{}",
        refused.text
    );

    // A change of the APIService has it looked at again at once.
    let touched =
        front.api().patch("merge-patch", &format!("{SERVICES}/{NAME}"), r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!(touched.code, 200, "{}", touched.text);
    let message = front.until_condition(NAME, "FailedDiscoveryCheck").await;
    let url = format!("https://localhost:{}{VERSION}", address.port());
    let expected = format!("failing or missing response from {url}: Get \"{url}\": dial tcp ");
    assert!(message.starts_with(&expected), "{message}");
    let whole = front.until("/apis", WHOLE, is_fresh("Stale")).await;
    assert!(group(&whole).unwrap()["versions"][0]["resources"].as_array().is_none_or(Vec::is_empty));
    let groups = front.api().get("/apis").await.json();
    assert!(groups["groups"].as_array().unwrap().iter().any(|own| own["name"] == GROUP), "it is still listed");
    let refused = front.api().get(THINGS).await;
    assert_eq!((refused.code, refused.text.as_str()), (503, "service unavailable\n"));
    let metrics = front.api().get("/metrics").await.text;
    for line in [
        format!("aggregator_unavailable_apiservice_total{{name=\"{NAME}\",reason=\"FailedDiscoveryCheck\"}} 1\n"),
        format!("aggregator_unavailable_apiservice{{name=\"{NAME}\"}} 1\n"),
    ] {
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    let terminated = |line: &&str| {
        line.starts_with("apiserver_request_terminations_total{")
            && ["code=\"503\"", "component=\"aggregator\"", "group=\"old.example.io\"", "resource=\"\""]
                .iter()
                .all(|label| line.contains(label))
    };
    assert!(metrics.lines().any(|line| terminated(&line)), "{metrics}");
    front.sockets.stop().await;
}

#[tokio::test]
async fn a_certificate_without_names_is_refused_and_counted() {
    let front = Front::start().await;
    let answer = handler_fn(|_| async { text(StatusCode::OK, "{}") });
    let handle = front.trust.start_as("nameless", &front.sockets.tasks, Arc::new(answer));
    front.trust_and_register(NAME, handle.address()).await;
    front.until_condition(NAME, "FailedDiscoveryCheck").await;
    let metrics = front.api().get("/metrics").await.text;
    let count = metrics.lines().find_map(|line| line.strip_prefix("apiserver_kube_aggregator_x509_missing_san_total "));
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");
    front.sockets.stop().await;
}

/// What is passed on to oneself would come back, again and again.
#[tokio::test]
async fn a_server_does_not_stand_behind_itself() {
    let front = Front::start().await;
    let body = format!(
        r#"{{"metadata":{{"name":"{NAME}"}},"spec":{{"group":"{GROUP}","version":"v1","insecureSkipTLSVerify":true,
        "groupPriorityMinimum":2000,"versionPriority":10,"service":{{"namespace":"default","name":"kubernetes"}}}}}}"#
    );
    // Somebody is ready behind it, so that it comes to the question itself.
    let slice = r#"{"metadata":{"name":"ready","labels":{"kubernetes.io/service-name":"kubernetes"}},"addressType":"IPv4",
        "endpoints":[{"addresses":["192.0.2.1"]}],"ports":[{"name":"https","port":6443}]}"#;
    for (path, body) in [(SLICES, slice), (SERVICES, &body)] {
        let made = front.api().post(path, body).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    let message = front.until_condition(NAME, "FailedDiscoveryCheck").await;
    assert_eq!(message, "the server does not stand behind itself");
    assert_eq!(front.api().get(THINGS).await.code, 503);
    front.sockets.stop().await;
}
