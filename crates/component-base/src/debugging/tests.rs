use base::{Rng, SystemClock};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::serving::empty;

fn debugging(contention: Contention) -> (Lifecycle, Debugging) {
    let lifecycle = Lifecycle::new("test", SystemClock::shared(), Rng::seeded(1));
    let own = Debugging::new(&lifecycle, contention);
    (lifecycle, own)
}

async fn ask(own: &Debugging, path: &str) -> (u16, String) {
    assert!(Debugging::serves(path), "{path}");
    let (parts, body) = own.answer(path, &Method::GET, empty()).await.into_parts();
    (parts.status.as_u16(), String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn what_there_is_is_told_and_the_rest_is_unknown() {
    let (lifecycle, own) = debugging(Contention::Untold);
    lifecycle.tasks().spawn_cancellable("waits", std::future::pending());
    assert_eq!(ask(&own, "/debug/pprof").await.0, 302);
    let (code, index) = ask(&own, "/debug/pprof/").await;
    assert_eq!(code, 200);
    for name in profiles::NAMES {
        assert!(index.contains(&format!("<a href=\"/debug/pprof/{name}\">")), "{name}");
        assert_eq!(ask(&own, &format!("/debug/pprof/{name}")).await.0, 200, "{name}");
    }
    assert!(ask(&own, "/debug/pprof/goroutine").await.1.contains("\n1 @ waits\n"));
    assert!(ask(&own, "/debug/pprof/heap").await.1.contains("# VmRSS:"));
    let threads = ask(&own, "/debug/pprof/threadcreate").await.1;
    assert!(threads.starts_with("threadcreate profile: total ") && threads.contains(" ran "), "{threads}");
    for name in ["profile", "trace", "symbol", "allocs", "x/y", "../cmdline"] {
        assert_eq!(ask(&own, &format!("/debug/pprof/{name}")).await, (404, "Unknown profile\n".to_owned()), "{name}");
    }
    assert!(!Debugging::serves("/debug/pprofx") && !Debugging::serves("/debug"));
}

#[tokio::test]
async fn waits_are_told_only_where_that_is_asked_for() {
    let (_, untold) = debugging(Contention::Untold);
    assert!(!ask(&untold, "/debug/pprof/mutex").await.1.contains("waited"));
    let (_, told) = debugging(Contention::Told);
    for name in ["mutex", "block"] {
        assert!(ask(&told, &format!("/debug/pprof/{name}")).await.1.contains(" ns for a processor, gave it up "));
    }
}

#[tokio::test]
async fn the_verbosity_is_a_number_that_is_put() {
    let (_, own) = debugging(Contention::Untold);
    assert_eq!(ask(&own, "/debug/flags/v").await, (406, "unsupported http method\n".to_owned()));
    for body in ["", "x", "99999999999", &"1".repeat(5_000)] {
        let response = own.answer("/debug/flags/v", &Method::PUT, full(body.to_owned())).await;
        assert_eq!(response.status(), 400, "{body}");
    }
}

#[tokio::test]
async fn a_socket_serves_the_handlers_and_replaces_one_that_was_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("debug.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let (lifecycle, own) = debugging(Contention::Untold);
    own.listen(&path, lifecycle.tasks()).unwrap();
    for (target, begins) in [("/debug/pprof/cmdline", "HTTP/1.1 200"), ("/metrics", "HTTP/1.1 404")] {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(begins), "{answer}");
    }
    let elsewhere = own.listen(&directory.path().join("no/such"), lifecycle.tasks()).unwrap_err();
    assert!(elsewhere.to_string().starts_with("failed to listen on "));
}
