//! Extension servers that belong to an attacker, or are ill. `docs/vulnerabilities.md` says which reports these are.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use component_base::serving::{Request, Response, ServerHandle, handler_fn, text};
use futures_util::StreamExt as _;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use streaming::DialError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::front::Front;

const NAME: &str = "v1.bad.example.io";
const THINGS: &str = "/apis/bad.example.io/v1/things";
const WHOLE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A front whose server behind answers as a function says, once it has passed the check.
async fn with<F>(answer: F) -> (Front, ServerHandle)
where
    F: Fn(&Request) -> Response + Send + Sync + 'static,
{
    let front = Front::start().await;
    let answer = Arc::new(answer);
    let handler = handler_fn(move |request: Request| {
        let answer = Arc::clone(&answer);
        async move {
            if request.uri().path() == "/test/never" || request.uri().path().ends_with("/slow") {
                std::future::pending::<()>().await;
            }
            answer(&request)
        }
    });
    let handle = front.trust.start(&front.sockets.tasks, Arc::new(handler));
    front.trust_and_register(NAME, handle.address()).await;
    front.until_condition(NAME, "Passed").await;
    (front, handle)
}

fn is_check(request: &Request) -> bool {
    request.uri().path() == "/apis/bad.example.io/v1"
}

#[tokio::test]
async fn users_are_told_of_by_the_front_alone() {
    let (front, _handle) = with(|request| text(StatusCode::OK, format!("{:?}", request.headers()))).await;
    let claims = [
        ("x-remote-user", "system:admin"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scope", "all"),
        ("x-remote-uid", "0"),
        ("impersonate-user", "al/ice"),
        ("impersonate-extra-a%2fb", "c"),
    ];
    let told = front.api().send(&format!("GET {THINGS}"), &claims, "").await;
    assert_eq!(told.code, 403, "nobody may who is impersonated: {}", told.text);
    let told = front.api().send(&format!("GET {THINGS}"), &claims[..4], "").await.text;
    for expected in [
        "\"x-remote-user\": \"root\"",
        "\"x-remote-group\": \"system:masters\"",
        "\"x-remote-group\": \"system:authenticated\"",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    for gone in ["system:admin", "x-remote-extra-scope", "x-remote-uid", "authorization", "Bearer"] {
        assert!(!told.contains(gone), "{gone} in {told}");
    }
    for forwarded in
        ["\"x-forwarded-uri\": \"/apis/bad.example.io/v1/things\"", "\"x-forwarded-proto\": \"https\"", "audit-id"]
    {
        assert!(told.contains(forwarded), "{forwarded} in {told}");
    }
    front.sockets.stop().await;
}

/// CVE-2022-3172: clients would go where the server points, with their credentials.
#[tokio::test]
async fn redirects_of_extension_servers_lead_nowhere() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let to = format!("https://{}/steal", canary.local_addr().unwrap());
    let (front, _handle) = with(move |request| {
        if is_check(request) {
            return text(StatusCode::OK, "{}");
        }
        let code = request.uri().path().rsplit('/').next().and_then(|code| code.parse().ok());
        let mut answer = text(StatusCode::from_u16(code.unwrap_or(302)).unwrap(), "go there");
        answer.headers_mut().insert(LOCATION, HeaderValue::from_str(&to).unwrap());
        answer
    })
    .await;
    for code in [300, 301, 302, 303, 307, 308] {
        let answer = front.api().get(&format!("{THINGS}/{code}")).await;
        assert_eq!(answer.code, 502, "{code}: {}", answer.text);
        assert_eq!(answer.text, "the backend attempted to redirect this request, which is not permitted");
        assert!(!answer.headers.contains_key(LOCATION), "{code}");
        let upgraded = front.sockets.websocket(&format!("{THINGS}/{code}"), &[]).await;
        let Err(DialError::Refused(refused)) = upgraded else { panic!("{code}: not refused") };
        assert!(refused.parts.status.as_u16() >= 500, "{code}: {:?}", refused.parts);
        assert!(!refused.parts.headers.contains_key(LOCATION), "{code}");
    }
    let visited = canary.accept();
    assert!(visited.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "the canary was visited");
    front.sockets.stop().await;
}

/// CVE-2018-1002105: the raw tunnel of a refused upgrade would carry requests with the front's identity.
#[tokio::test]
async fn a_refused_upgrade_leaves_no_tunnel_behind() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let (front, _handle) = with(move |request| {
        if request.uri().path().starts_with(THINGS) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        text(if is_check(request) { StatusCode::OK } else { StatusCode::FORBIDDEN }, "no")
    })
    .await;
    let mut socket = front.sockets.connect().await;
    let head = format!(
        "GET {THINGS}/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\n\
         Upgrade: SPDY/3.1\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let second = format!("GET {THINGS}/y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    socket.write_all(second.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    drop(socket.read_to_end(&mut answers).await);
    let answers = String::from_utf8_lossy(&answers);
    assert!(answers.starts_with("HTTP/1.1 403 "), "{answers}");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "{answers}");
    front.sockets.stop().await;
}

#[tokio::test]
async fn an_upgrade_passes_through() {
    let (front, _handle) = with(|request| {
        if is_check(request) {
            return text(StatusCode::OK, "{}");
        }
        let mut answer = text(StatusCode::SWITCHING_PROTOCOLS, "");
        let key = request.headers().get("sec-websocket-key").cloned();
        assert!(key.is_some() && request.headers()["x-remote-user"] == "root", "{:?}", request.headers());
        for (name, value) in [("connection", "Upgrade"), ("upgrade", "websocket")] {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    })
    .await;
    let mut socket = front.sockets.connect().await;
    let head = format!(
        "GET {THINGS}/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    socket.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
    front.sockets.stop().await;
}

#[tokio::test]
async fn a_server_that_never_answers_takes_no_longer_than_the_client_allows() {
    let (front, _handle) = with(|_| text(StatusCode::OK, "{}")).await;
    let answer = front.api().get(&format!("{THINGS}/slow?timeout=200ms")).await;
    assert_eq!(answer.code, 504, "{}", answer.text);
    front.sockets.stop().await;
}

#[tokio::test]
async fn garbage_and_endless_documents_are_bounded_and_harm_nobody() {
    let (front, _handle) = with(|request| {
        let path = request.uri().path();
        if path == "/openapi/v2" || path == "/openapi/v3" {
            let piece = Bytes::from_static(&[b'['; 64 * 1024]);
            let endless = futures_util::stream::repeat(piece).map(|piece| Ok(http_body::Frame::data(piece)));
            return Response::new(StreamBody::new(endless).boxed_unsync());
        }
        let mut answer = text(StatusCode::OK, "[".repeat(10_000));
        if path == "/apis" {
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(WHOLE));
        }
        answer
    })
    .await;
    let of = |document: &serde_json::Value| {
        let items = document["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["metadata"]["name"] == "bad.example.io")
    };
    let whole = front.until("/apis", WHOLE, |document| of(document).is_some()).await;
    let version = &of(&whole).unwrap()["versions"][0];
    assert_eq!(version["freshness"], "Stale", "{version}");
    assert!(version["resources"].as_array().is_none_or(Vec::is_empty));
    let index = front.api().get("/openapi/v3").await.json();
    assert!(index["paths"]["apis/bad.example.io/v1"].is_null() && index["paths"]["apis/apps/v1"].is_object());
    assert_eq!(front.api().get("/apis/apps/v1/deployments").await.code, 200);
    front.sockets.stop().await;
}
