//! Clients that speak the protocols in bad faith: requests that two readers would read in two ways, and floods of frames
//! that cost the server more than the client. `docs/vulnerabilities.md` says which reports these are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::tests::{PATIENCE, Running, dial, get, start};
use super::*;

/// Types of HTTP/2 frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;
/// `GET https://a/` in HPACK: three entries of the static table and a literal.
const GET_ROOT: &[u8] = &[0x82, 0x87, 0x84, 0x41, 1, b'a'];
/// The same as a `POST`, which may have a body.
const POST_ROOT: &[u8] = &[0x83, 0x87, 0x84, 0x41, 1, b'a'];

/// Counts what reaches it; requests last until their client is gone.
fn counting(lasting: bool) -> (Running, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let handler = handler_fn(move |request: Request| {
        if request.uri().path() != "/honest" {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let waits = lasting && request.uri().path() != "/honest";
        async move {
            if waits {
                std::future::pending::<()>().await;
            }
            text(StatusCode::OK, "ok")
        }
    });
    (start(Arc::new(handler), Limits { streams: 100, ..Limits::default() }), seen)
}

/// What came back for some bytes, up to the end of the connection.
async fn answer_to(running: &Running, bytes: &[u8]) -> String {
    let mut stream = dial(running, b"http/1.1", None).await.into_inner();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // The end may come as a reset.
    drop(
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .unwrap_or_else(|_| panic!("the connection stays open: {}", String::from_utf8_lossy(bytes))),
    );
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let length = hidden.len();
    for (name, head) in [
        ("two lengths", format!("Content-Length: 0\r\nContent-Length: {length}\r\n")),
        ("a list of lengths", format!("Content-Length: 0, {length}\r\n")),
        ("a length that is none", "Content-Length: +0\r\n".to_owned()),
        ("a space before the colon", format!("Content-Length : {length}\r\n")),
        ("a name on two lines", format!("Content-\r\n Length: {length}\r\n")),
        ("an encoding that is not known", "Transfer-Encoding: xchunked\r\n".to_owned()),
        ("chunked is not last", "Transfer-Encoding: chunked, identity\r\n".to_owned()),
        ("a bare return", "X: a\rContent-Length: 0\r\n".to_owned()),
        ("a null", "X: \0\r\n".to_owned()),
    ] {
        let (running, seen) = counting(false);
        let answer = answer_to(&running, format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n{hidden}").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{name}: {answer}");
        assert_eq!((answer.matches("HTTP/1.1").count(), seen.load(Ordering::Relaxed)), (1, 0), "{name}: {answer}");
    }
    for line in ["GET  / HTTP/1.1", "GET / HTTP/1.1 x", "GET nowhere HTTP/1.1", "GET / HTTP/3.0", "G\u{0}T / HTTP/1.1"]
    {
        let (running, seen) = counting(false);
        let answer = answer_to(&running, format!("{line}\r\nHost: a\r\n\r\n").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{line}: {answer}");
        assert_eq!(seen.load(Ordering::Relaxed), 0, "{line}");
    }
}

/// Of two ways to say where a body ends the chunks count, whatever a length says, and nothing is left to be a request.
#[tokio::test]
async fn chunks_win_over_a_length() {
    let (running, seen) = counting(false);
    let head =
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer =
        answer_to(&running, format!("{head}0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(seen.load(Ordering::Relaxed) <= 1, "{answer}");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Sends a flood while the answers are read; says whether the server ended the connection with an error.
async fn flood(running: &Running, frames: impl Iterator<Item = Vec<u8>>) -> bool {
    let stream = dial(running, b"h2", None).await.into_inner();
    let (mut read, mut write) = tokio::io::split(stream);
    let send = async {
        write.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
        write.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        let mut batch = Vec::new();
        for frame in frames {
            batch.extend(frame);
            if batch.len() > 1 << 14 {
                write.write_all(&batch).await?;
                batch.clear();
            }
        }
        write.write_all(&batch).await?;
        write.flush().await
    };
    let receive = async {
        let (mut went, mut rest) = (false, Vec::new());
        let mut buffer = [0; 1 << 14];
        while let Ok(count @ 1..) = read.read(&mut buffer).await {
            rest.extend_from_slice(&buffer[..count]);
            while rest.len() >= 9 {
                let length = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
                if rest.len() < 9 + length {
                    break;
                }
                let error = rest.get(13..17).is_some_and(|code| code != [0; 4]);
                went |= rest[3] == GO_AWAY && error;
                rest.drain(..9 + length);
            }
        }
        went
    };
    let all = async {
        let ((), went) = tokio::join!(async { drop(send.await) }, receive);
        went
    };
    // What ended in silence within the time did not end as it should.
    tokio::time::timeout(PATIENCE, all).await.unwrap_or(false)
}

async fn is_well(running: &Running) {
    let stream = dial(running, b"h2", None).await;
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    running.tasks.spawn_cancellable("honest", async move { drop(connection.await) });
    let answer = tokio::time::timeout(PATIENCE, client.send_request(get("https://localhost/honest"))).await;
    assert_eq!(answer.expect("others wait").unwrap().status(), StatusCode::OK);
}

fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    let (running, seen) = counting(true);
    let frames = streams(20_000).flat_map(|stream| {
        [frame(HEADERS, END_HEADERS | END_STREAM, stream, GET_ROOT), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])]
    });
    assert!(flood(&running, frames).await, "no GOAWAY");
    assert!(seen.load(Ordering::Relaxed) < 2_000, "{} requests reached the handler", seen.load(Ordering::Relaxed));
    is_well(&running).await;
}

/// A client can also have the server reset its streams, by what is against the rules of a stream.
#[tokio::test]
async fn streams_that_the_server_must_reset_end_the_connection() {
    let (running, seen) = counting(true);
    let frames = streams(20_000).flat_map(|stream| {
        // A window that grows by nothing is an error of the stream.
        [frame(HEADERS, END_HEADERS, stream, POST_ROOT), frame(8, 0, stream, &[0, 0, 0, 0])]
    });
    assert!(flood(&running, frames).await, "no GOAWAY");
    assert!(seen.load(Ordering::Relaxed) < 2_000, "{} requests reached the handler", seen.load(Ordering::Relaxed));
    is_well(&running).await;
}

#[tokio::test]
async fn more_streams_than_are_allowed_are_not_served() {
    let (running, seen) = counting(true);
    let stream = dial(&running, b"h2", None).await.into_inner();
    let (_read, mut write) = tokio::io::split(stream);
    write.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    write.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    for stream in streams(1_000) {
        if write.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, GET_ROOT)).await.is_err() {
            break;
        }
    }
    drop(write.flush().await);
    is_well(&running).await;
    assert!(seen.load(Ordering::Relaxed) <= 100, "{} requests run", seen.load(Ordering::Relaxed));
}

#[tokio::test]
async fn headers_without_end_end_the_connection() {
    let (running, seen) = counting(false);
    // A literal header of 16 bytes, over and over.
    let piece: Vec<u8> = [0x40, 5].iter().chain(b"x-abc").chain(&[8]).chain(b"12345678").copied().collect();
    let piece = piece.repeat(900);
    let first = frame(HEADERS, END_STREAM, 1, GET_ROOT);
    let frames = std::iter::once(first).chain((0..5_000).map(|_| frame(CONTINUATION, 0, 1, &piece)));
    assert!(flood(&running, frames).await, "no GOAWAY");
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    let empty = std::iter::once(frame(HEADERS, END_STREAM, 1, GET_ROOT))
        .chain((0..100_000).map(|_| frame(CONTINUATION, 0, 1, &[])));
    assert!(flood(&running, empty).await, "no GOAWAY for empty frames");
    is_well(&running).await;
}

#[tokio::test]
async fn frames_that_carry_nothing_do_not_keep_others_waiting() {
    type Frames = fn() -> Box<dyn Iterator<Item = Vec<u8>>>;
    let kinds: [(&str, Frames); 4] = [
        ("ping", || Box::new((0..30_000).map(|_| frame(PING, 0, 0, &[0; 8])))),
        ("settings", || Box::new((0..30_000).map(|_| frame(SETTINGS, 0, 0, &[])))),
        ("empty data", || {
            let first = std::iter::once(frame(HEADERS, END_HEADERS, 1, POST_ROOT));
            Box::new(first.chain((0..30_000).map(|_| frame(DATA, 0, 1, &[]))))
        }),
        ("unknown", || Box::new((0..30_000).map(|_| frame(0xbb, 0, 0, &[0; 8])))),
    ];
    for (name, frames) in kinds {
        let (running, _) = counting(true);
        let attack = async {
            let flooded = flood(&running, frames());
            // Whether it is borne or ended is the server's choice.
            tokio::time::timeout(std::time::Duration::from_millis(300), flooded).await.is_ok()
        };
        tokio::join!(attack, is_well(&running));
        is_well(&running).await;
        assert!(running.handle.connections() <= 3, "{name}");
    }
}
