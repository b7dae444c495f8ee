//! Two ends of a connection in one process, and what broken or hostile peers do to one.

use std::time::Duration;

use base::TaskGroup;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn pair(group: &TaskGroup, options: Options) -> (Connection, Incoming) {
    let (left, right) = tokio::io::duplex(8 * 1024);
    let (client, _, client_driver) = start(left, Role::Client, options);
    let (_, server, server_driver) = start(right, Role::Server, options);
    group.spawn("client", async move { drop(client_driver.await) });
    group.spawn("server", async move { drop(server_driver.await) });
    (client, server)
}

#[tokio::test(start_paused = true)]
async fn echo_with_half_close_and_data_larger_than_every_buffer() {
    let group = TaskGroup::new("test");
    let (client, mut server) = pair(&group, Options::default());
    group.spawn("echo", async move {
        while let Some(incoming) = server.next().await {
            assert_eq!(incoming.header("streamtype"), Some("data"));
            let (mut from, mut to) = incoming.accept().await.unwrap().into_split();
            tokio::io::copy(&mut from, &mut to).await.unwrap();
        }
    });
    for _ in 0..3 {
        let stream = client.open(Headers::new(&[("streamType", "data")])).await.unwrap();
        let (mut from, mut to) = stream.into_split();
        let sent = vec![7_u8; 300_000];
        let expected = sent.clone();
        let write = async move {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), read) = tokio::join!(write, from.read_to_end(&mut received));
        read.unwrap();
        assert!(received == expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_fails_to_open() {
    let group = TaskGroup::new("test");
    let (client, mut server) = pair(&group, Options::default());
    group.spawn("refuse", async move {
        while let Some(incoming) = server.next().await {
            incoming.refuse();
        }
    });
    assert!(matches!(client.open(Headers::default()).await, Err(SpdyError::Refused)));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_replies_to_times_out() {
    let group = TaskGroup::new("test");
    let (client, _server) = pair(&group, Options::default());
    assert!(matches!(client.open(Headers::default()).await, Err(SpdyError::ReplyTimeout)));
}

#[tokio::test(start_paused = true)]
async fn close_delivers_everything_written_before() {
    let group = TaskGroup::new("test");
    let (client, mut server) = pair(&group, Options::default());
    group.spawn("serve", async move {
        let connection = server.connection().clone();
        let mut stream = server.next().await.unwrap().accept().await.unwrap();
        stream.write_all(&[1; 100_000]).await.unwrap();
        drop(stream);
        connection.close().await;
    });
    let mut stream = client.open(Headers::default()).await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    assert_eq!(received.len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_reading_and_breaks_writing() {
    let group = TaskGroup::new("test");
    let (client, mut server) = pair(&group, Options::default());
    group.spawn("serve", async move {
        let mut stream = server.next().await.unwrap().accept().await.unwrap();
        stream.write_all(b"bye").await.unwrap();
        stream.reset();
        std::future::pending::<()>().await;
        drop(server);
    });
    let mut stream = client.open(Headers::default()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "bye");
    assert_eq!(stream.write(b"x").await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_an_error_not_an_end() {
    let (left, right) = tokio::io::duplex(1024);
    let (client, _incoming, driver) = start(left, Role::Client, Options::default());
    let (_server, mut server_incoming, server_driver) = start(right, Role::Server, Options::default());
    let group = TaskGroup::new("test");
    group.spawn("client", async move { drop(driver.await) });
    let server_group = TaskGroup::new("server");
    server_group.spawn_cancellable("server", async move { drop(server_driver.await) });
    let (stream, _served) = tokio::join!(client.open(Headers::default()), async {
        server_incoming.next().await.unwrap().accept().await.unwrap()
    });
    server_group.cancel();
    let mut received = Vec::new();
    let error = stream.unwrap().read_to_end(&mut received).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_although_it_pings() {
    let (left, right) = tokio::io::duplex(1024);
    let options = Options { ping_interval: Some(Duration::from_secs(5)), idle_timeout: None };
    let (_client, _incoming, driver) = start(left, Role::Client, options);
    let idle = Options { ping_interval: None, idle_timeout: Some(Duration::from_secs(60)) };
    let (_server, _server_incoming, server_driver) = start(right, Role::Server, idle);
    let (_, server) = tokio::join!(driver, server_driver);
    assert!(matches!(server, Err(SpdyError::Idle)));
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_answers_are_not() {
    let (mut peer, ours) = tokio::io::duplex(1024);
    let (_server, _incoming, driver) = start(ours, Role::Server, Options::default());
    let group = TaskGroup::new("test");
    group.spawn("server", async move { drop(driver.await) });
    peer.write_all(&frame::ping(2)).await.unwrap();
    peer.write_all(&frame::ping(7)).await.unwrap();
    let mut answer = vec![0; 12];
    peer.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, frame::ping(7));
}

#[tokio::test(start_paused = true)]
async fn wrong_ids_end_the_connection_with_goaway() {
    let (mut peer, ours) = tokio::io::duplex(1024);
    let (_server, _incoming, driver) = start(ours, Role::Server, Options::default());
    let block = headers::Deflater::new().unwrap().block(&Headers::default()).unwrap();
    peer.write_all(&frame::syn_stream(2, &block)).await.unwrap();
    let outcome = driver.await;
    assert!(matches!(outcome, Err(SpdyError::StreamId(2))));
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, frame::go_away(0, 1));
}

#[tokio::test(start_paused = true)]
async fn streams_beyond_the_limit_are_refused() {
    let (mut peer, ours) = tokio::io::duplex(64 * 1024);
    let (_server, incoming, driver) = start(ours, Role::Server, Options::default());
    let group = TaskGroup::new("test");
    group.spawn("server", async move { drop(driver.await) });
    let mut deflater = headers::Deflater::new().unwrap();
    for index in 0..100_u32 {
        let block = deflater.block(&Headers::default()).unwrap();
        peer.write_all(&frame::syn_stream(index * 2 + 1, &block)).await.unwrap();
    }
    let mut refusal = vec![0; 16];
    peer.read_exact(&mut refusal).await.unwrap();
    assert_eq!(refusal, frame::reset(129, frame::REFUSED_STREAM), "64 wait, the 65th is refused");
    drop(incoming);
}

proptest::proptest! {
    #[test]
    fn random_bytes_end_a_connection_without_panic(noise in proptest::collection::vec(proptest::num::u8::ANY, 0..600), control: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async move {
            let (mut peer, ours) = tokio::io::duplex(4096);
            let (server, incoming, driver) = start(ours, Role::Server, Options::default());
            drop((server, incoming));
            let feed = async move {
                if control {
                    drop(peer.write_all(&[0x80, 3, 0]).await);
                }
                drop(peer.write_all(&noise).await);
                drop(peer.shutdown().await);
                let mut rest = Vec::new();
                drop(peer.read_to_end(&mut rest).await);
            };
            let _ = tokio::join!(driver, feed);
        });
    }
}
