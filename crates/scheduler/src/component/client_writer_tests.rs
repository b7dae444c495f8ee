//! What becomes of bindings under an API server that is slow, loses answers or refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::object::Object;
use base::{Rng, TaskGroup, TokioClock};
use client::{ApiHandler, Body, ClientConfig, ClientCx, InProcess, Peer};
use component_base::serving::full;
use futures_util::future::join_all;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::test_objects::{object, pod};

/// Takes a second for each request, and counts those under way.
#[derive(Default)]
struct Slow {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl ApiHandler for Slow {
    async fn call(&self, _: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        let mut response = Response::new(full(r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#));
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response
    }
}

/// Binds the pod and answers that it failed; cannot be read at first.
struct Lossy {
    pod: Mutex<Pod>,
    unreadable: AtomicUsize,
}

#[async_trait]
impl ApiHandler for Lossy {
    async fn call(&self, request: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
        let mut response = Response::new(full(String::new()));
        let later = |left: usize| left.checked_sub(1);
        if request.method() == http::Method::POST {
            self.pod.lock().spec.node_name = "a".to_owned();
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        } else if self.unreadable.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later).is_ok() {
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        } else {
            let pod: Box<dyn Object> = Box::new(self.pod.lock().clone());
            response = Response::new(full(pod.to_json()));
            response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        }
        response
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_whose_answer_was_lost_is_looked_up() {
    for (unreadable, node, bound) in [(0, "a", true), (3, "a", true), (0, "b", false), (LOOKS, "a", false)] {
        let pod = pod("p").0;
        let writer = writer(Arc::new(Lossy { pod: Mutex::new(pod.clone()), unreadable: unreadable.into() }));
        assert_eq!(writer.bind(&pod, node).await.is_ok(), bound, "{unreadable} {node}");
    }
}

fn writer(server: Arc<dyn ApiHandler>) -> ClientWriter {
    let transport = Arc::new(InProcess::new(server, Peer::default()));
    let config = ClientConfig::for_server("https://in-process").with_rate(-1.0, 1);
    let cx = ClientCx::new(TokioClock::shared(), Rng::seeded(1), TaskGroup::new("test"));
    ClientWriter::new(&Client::with_transport(transport, config, cx).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_bindings_does_not_overrun_the_server() {
    let server = Arc::new(Slow::default());
    let writer = writer(server.clone());
    let pods: Vec<Pod> = (0..3 * MAX_BINDINGS).map(|number| pod(&number.to_string()).0).collect();
    let bound = join_all(pods.iter().map(|pod| writer.bind(pod, "a"))).await;
    assert!(bound.iter().all(Result::is_ok), "{bound:?}");
    assert_eq!(server.most.load(Ordering::SeqCst), MAX_BINDINGS);
}

/// Refuses every binding with this status, and counts what it is asked after that.
struct Refusing {
    status: http::StatusCode,
    looks: AtomicUsize,
}

#[async_trait]
impl ApiHandler for Refusing {
    async fn call(&self, request: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
        let mut response = Response::new(full(String::new()));
        *response.status_mut() = self.status;
        if request.method() != http::Method::POST {
            self.looks.fetch_add(1, Ordering::SeqCst);
        }
        response
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_was_refused_is_not_looked_up() {
    for (status, looks) in [(429, 0), (403, 0), (404, 0), (422, 0), (500, LOOKS), (409, LOOKS)] {
        let status = http::StatusCode::from_u16(status).unwrap();
        let server = Arc::new(Refusing { status, looks: AtomicUsize::default() });
        let bound = writer(server.clone()).bind(&pod("p").0, "a").await;
        assert!(bound.is_err(), "{status}");
        assert_eq!(server.looks.load(Ordering::SeqCst), looks, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_waited_for_after_the_last_look() {
    let server = Arc::new(Refusing { status: http::StatusCode::INTERNAL_SERVER_ERROR, looks: AtomicUsize::default() });
    let started = tokio::time::Instant::now();
    writer(server.clone()).bind(&pod("p").0, "a").await.unwrap_err();
    // Seven waits of 0.1 s, doubled each time, with a tenth of jitter; an eighth would make it more than 25 s.
    let took = started.elapsed();
    assert!((Duration::from_millis(12_700)..Duration::from_secs(14)).contains(&took), "{took:?}");
}

/// Notes the bodies that it is sent, and answers that another object is there.
#[derive(Default)]
struct Replaced(Mutex<Vec<String>>);

#[async_trait]
impl ApiHandler for Replaced {
    async fn call(&self, request: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
        self.0.lock().push(String::from_utf8_lossy(request.body()).into_owned());
        let mut response = Response::new(full(String::new()));
        *response.status_mut() = http::StatusCode::CONFLICT;
        response
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_victim_itself_is_deleted() {
    let server = Arc::new(Replaced::default());
    let deleted = writer(server.clone()).delete(&pod("p").0).await;
    assert!(matches!(deleted, Err(WriteError::NotFound(_))), "{deleted:?}");
    assert!(server.0.lock()[0].contains(r#""preconditions":{"uid":"uid-p"}"#), "{:?}", server.0.lock());
}

/// Gives a claim its devices and answers that it failed, or that it was too late.
struct LossyClaims {
    claim: Mutex<ResourceClaim>,
    status: http::StatusCode,
    takes: bool,
}

#[async_trait]
impl ApiHandler for LossyClaims {
    async fn call(&self, request: Request<bytes::Bytes>, _: &Peer) -> Response<Body> {
        let mut response = Response::new(full(String::new()));
        if request.method() == http::Method::GET {
            let claim: Box<dyn Object> = Box::new(self.claim.lock().clone());
            response = Response::new(full(claim.to_json()));
            response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        } else {
            if self.takes {
                *self.claim.lock() = claim_with("one", "uid-p");
            }
            *response.status_mut() = self.status;
        }
        response
    }
}

fn claim_with(device: &str, consumer: &str) -> ResourceClaim {
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": device});
    let consumer = json!({"resource": "pods", "name": "p", "uid": consumer});
    object(json!({"metadata": {"name": "c", "namespace": "default", "uid": "uid-c"},
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}}))
}

#[tokio::test(start_paused = true)]
async fn devices_whose_answer_was_lost_are_looked_up() {
    for (status, takes, written, done) in [
        (500, true, claim_with("one", "uid-p"), true),
        (409, true, claim_with("one", "uid-p"), true),
        (500, false, claim_with("one", "uid-p"), false),
        (500, true, claim_with("two", "uid-p"), false),
        (500, true, claim_with("one", "uid-q"), false),
        (403, true, claim_with("one", "uid-p"), false),
    ] {
        let mut free = claim_with("one", "uid-p");
        free.status = Default::default();
        let status = http::StatusCode::from_u16(status).unwrap();
        let writer = writer(Arc::new(LossyClaims { claim: Mutex::new(free), status, takes }));
        let outcome = writer.update_device_claim_status(&written).await;
        assert_eq!(outcome.is_ok(), done, "{status} {takes}");
    }
}

#[test]
fn what_claims_give_is_written_as_a_whole_or_not_at_all() {
    let with = |claims: &[&str]| {
        let mut own = pod("p").0;
        let status = |claim: &&str| object(json!({"resourceClaimName": claim, "resources": {"cpu": "1"}}));
        own.status.node_allocatable_resource_claim_statuses = claims.iter().map(status).collect();
        own
    };
    let listed = |claims: &[&str]| {
        let all = with(claims).status.node_allocatable_resource_claim_statuses;
        Some(Value::Array(all.iter().map(|claim| Value::Object(struct_to_map(claim))).collect()))
    };
    for (before, after, expected) in [
        (&[][..], &[][..], None),
        (&["c"], &["c"], None),
        (&["c"], &[], Some(Value::Null)),
        (&[], &["c"], listed(&["c"])),
        (&["c"], &["c", "d"], listed(&["c", "d"])),
    ] {
        let patch = status_patch(&with(before), &with(after).status);
        let fields = patch.get("status").and_then(Value::as_object).unwrap();
        assert_eq!(fields.get("nodeAllocatableResourceClaimStatuses"), expected.as_ref(), "{before:?} {after:?}");
    }
}
