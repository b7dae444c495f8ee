//! Whole sessions in one process: every protocol against its server, then through HTTP, proxies and translation.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::{Rng, TaskGroup};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

const V5: Subprotocol = Subprotocol::TRANSLATED[0];

fn dialects() -> Vec<Dialect> {
    let spdy = Protocol::SPDY_SERVER.into_iter().map(Dialect::Spdy);
    spdy.chain(Subprotocol::SERVED.into_iter().chain([V5]).map(Dialect::WebSocket)).collect()
}

/// A client and a server session joined by a small pipe.
async fn sessions(dialect: Dialect, set: StreamSet, group: &TaskGroup) -> (ClientCommand, RemoteCommand) {
    let (near, far) = tokio::io::duplex(8 * 1024);
    let client = async {
        match dialect {
            Dialect::Spdy(protocol) => ClientCommand::over_spdy(near, protocol, set, group).await.unwrap(),
            Dialect::WebSocket(subprotocol) => ClientCommand::over_websocket(near, subprotocol, set, group).await,
        }
    };
    let server = RemoteCommand::start(far, dialect, set, SessionOptions::default(), group);
    let (client, server) = tokio::join!(client, server);
    (client, server.unwrap())
}

fn can_end_input(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Spdy(_)) || dialect == Dialect::WebSocket(V5)
}

/// `cat`, with a word on stderr, ending with code 3.
async fn serve_cat(mut session: RemoteCommand, ends_input: bool) {
    let (mut stdin, mut stdout) = (session.stdin.take().unwrap(), session.stdout.take().unwrap());
    if let Some(stderr) = &mut session.stderr {
        stderr.write_all(b"warning").await.unwrap();
    }
    if ends_input {
        tokio::io::copy(&mut stdin, &mut stdout).await.unwrap();
    } else {
        tokio::io::copy(&mut stdin.take(200_000), &mut stdout).await.unwrap();
    }
    session.finish(&CommandStatus::exit(3), StatusForm::Short).await;
}

async fn run_cat(mut client: ClientCommand) -> (Vec<u8>, String, CommandStatus) {
    let (mut stdin, mut stdout) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    let mut stderr = client.stderr.take().unwrap();
    let write = async {
        stdin.write_all(&[9; 200_000]).await.unwrap();
        stdin.shutdown().await.unwrap();
    };
    let (mut out, mut err) = (Vec::new(), String::new());
    let ((), read, warned, outcome) =
        tokio::join!(write, stdout.read_to_end(&mut out), stderr.read_to_string(&mut err), client.status());
    read.unwrap();
    warned.unwrap();
    (out, err, outcome.unwrap())
}

const ALL: StreamSet = StreamSet { stdin: true, stdout: true, stderr: true, tty: false };

#[tokio::test(start_paused = true)]
async fn cat_over_every_protocol() {
    for dialect in dialects() {
        let group = TaskGroup::new("test");
        let (client, server) = sessions(dialect, ALL, &group).await;
        let protocol = client.protocol;
        let (result, ()) = tokio::join!(run_cat(client), serve_cat(server, can_end_input(dialect)));
        let (out, err, outcome) = result;
        assert!(out == [9; 200_000], "{dialect:?}: {} bytes", out.len());
        assert_eq!(err, "warning", "{dialect:?}");
        let expected = match protocol.has_status() {
            true => CommandStatus::exit(3),
            false => CommandStatus::Failure(
                "error executing remote command: command terminated with non-zero exit code: command terminated with \
                 exit code 3"
                    .into(),
            ),
        };
        assert_eq!(outcome, expected, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn terminals_resize_from_v3_on() {
    let set = StreamSet { stdin: true, stdout: true, stderr: false, tty: true };
    for dialect in [Dialect::Spdy(Protocol::V4), Dialect::Spdy(Protocol::V3), Dialect::WebSocket(V5)] {
        let group = TaskGroup::new("test");
        let (mut client, mut server) = sessions(dialect, set, &group).await;
        let size = TerminalSize { width: 81, height: 25 };
        client.resize.as_mut().unwrap().send(size).await.unwrap();
        assert_eq!(server.resize.as_mut().unwrap().next().await, Some(size), "{dialect:?}");
    }
    let group = TaskGroup::new("test");
    let (client, server) = sessions(Dialect::Spdy(Protocol::V2), set, &group).await;
    assert!(client.resize.is_none() && server.resize.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_status_comes_after_all_output_even_to_a_slow_client() {
    let set = StreamSet { stdout: true, ..StreamSet::default() };
    for dialect in [Dialect::Spdy(Protocol::V4), Dialect::WebSocket(V5), Dialect::WebSocket(Subprotocol::SERVED[4])] {
        let group = TaskGroup::new("test");
        let (mut client, mut server) = sessions(dialect, set, &group).await;
        group.spawn("server", async move {
            server.stdout.take().unwrap().write_all(&[1; 1_000_000]).await.unwrap();
            server.finish(&CommandStatus::Success, StatusForm::Short).await;
        });
        let mut stdout = client.stdout.take().unwrap();
        let mut total = 0;
        let mut buffer = vec![0; 50_000];
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            match stdout.read(&mut buffer).await.unwrap() {
                0 => break,
                read => total += read,
            }
        }
        assert_eq!((total, client.status().await.unwrap()), (1_000_000, CommandStatus::Success), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_spdy_client_that_opens_too_few_streams_is_dropped() {
    let group = TaskGroup::new("test");
    let (near, far) = tokio::io::duplex(1024);
    let few = StreamSet { stdout: true, ..StreamSet::default() };
    let client = ClientCommand::over_spdy(near, Protocol::V4, few, &group);
    let server = RemoteCommand::start(far, Dialect::Spdy(Protocol::V4), ALL, SessionOptions::default(), &group);
    let (client, server) = tokio::join!(client, server);
    assert!(matches!(server.map(|_| ()), Err(SessionError::CreationTimeout)));
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_is_noticed() {
    for dialect in [Dialect::Spdy(Protocol::V4), Dialect::WebSocket(V5)] {
        let group = TaskGroup::new("test");
        let (client, server) = sessions(dialect, ALL, &group).await;
        drop(client);
        server.closed().cancelled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_session_is_no_success() {
    for dialect in dialects() {
        let group = TaskGroup::new("test");
        let (mut client, server) = sessions(dialect, ALL, &group).await;
        drop(server);
        assert!(matches!(client.status().await, Err(CommandStatusError::Lost(_))), "{dialect:?}");
    }
}

/// Echoes every forward in upper case, except port 1, which fails.
async fn serve_forwards(mut session: PortForward, group: TaskGroup) {
    while let Some(mut forward) = session.next().await {
        group.spawn("forward", async move {
            if forward.port == 1 {
                return forward.fail("error forwarding port 1 to pod p, uid u: connection refused").await;
            }
            let mut text = vec![0; 5];
            forward.data.read_exact(&mut text).await.unwrap();
            text.make_ascii_uppercase();
            forward.data.write_all(&text).await.unwrap();
            forward.data.shutdown().await.unwrap();
            forward.finish();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn port_forward_plain_and_tunnelled() {
    for carrier in [Carrier::Plain, Carrier::Tunnel] {
        let group = TaskGroup::new("test");
        let (near, far) = tokio::io::duplex(1024);
        let dialect = if carrier == Carrier::Plain { ForwardDialect::Spdy } else { ForwardDialect::Tunnel };
        let session = PortForward::start(far, dialect, &[], "peer", SessionOptions::default(), &group).await;
        group.spawn("server", serve_forwards(session, group.clone()));
        let client = match carrier {
            Carrier::Plain => PortForwardClient::start(near, carrier, &group),
            Carrier::Tunnel => PortForwardClient::start(WebSocketIo::client(near).await, carrier, &group),
        };
        for _ in 0..3 {
            let mut forward = client.open(8080).await.unwrap();
            forward.data.write_all(b"hello").await.unwrap();
            let mut answer = String::new();
            forward.data.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "HELLO");
            assert_eq!(forward.error.text().await.unwrap(), "");
        }
        let failed = client.open(1).await.unwrap();
        let text = failed.error.text().await.unwrap();
        assert_eq!(text, "error forwarding port 1 to pod p, uid u: connection refused");
        client.close().await;
        client.closed().cancelled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_pair_is_given_up_with_a_word() {
    let group = TaskGroup::new("test");
    let (near, far) = tokio::io::duplex(1024);
    let session = PortForward::start(far, ForwardDialect::Spdy, &[], "1.2.3.4:5", SessionOptions::default(), &group);
    group.spawn("server", serve_forwards(session.await, group.clone()));
    let (connection, _incoming, driver) = spdy::start(near, spdy::Role::Client, spdy::Options::default());
    group.spawn("client", async move { drop(driver.await) });
    let headers = [("streamType", "error"), ("port", "80"), ("requestID", "7")];
    let mut error = connection.open(spdy::Headers::new(&headers)).await.unwrap();
    let mut text = String::new();
    error.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "(conn=1.2.3.4:5, request=7) timed out waiting for streams");
    for bad in [("port", "0"), ("port", "x"), ("streamType", "other")] {
        let headers = spdy::Headers::new(&[bad, ("streamType", "data"), ("port", "80")]);
        assert!(matches!(connection.open(headers).await, Err(spdy::SpdyError::Refused)), "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_websocket_port_forward_starts_with_the_port_on_each_channel() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;
    let group = TaskGroup::new("test");
    let (near, far) = tokio::io::duplex(1024);
    let dialect = ForwardDialect::WebSocket(Subprotocol::PORT_FORWARD[1]);
    let session = PortForward::start(far, dialect, &[8080, 1], "peer", SessionOptions::default(), &group).await;
    group.spawn("server", serve_forwards(session, group.clone()));
    let mut socket = tokio_tungstenite::WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    for expected in [&[0_u8, 0x90, 0x1f], &[1, 0x90, 0x1f], &[2, 1, 0], &[3, 1, 0]] {
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::binary(expected.to_vec()));
    }
    socket.send(Message::binary(&b"\0hello"[..])).await.unwrap();
    let mut texts = Vec::new();
    while let Some(Ok(Message::Binary(bytes))) = socket.next().await {
        texts.push(String::from_utf8(bytes.to_vec()).unwrap());
    }
    texts.sort();
    assert_eq!(texts, ["\0HELLO", "\u{3}error forwarding port 1 to pod p, uid u: connection refused"]);
}

type Answer = Response<Full<Bytes>>;

/// Serves one HTTP connection with `handler` and returns the client's end.
fn http_server<F, R>(group: &TaskGroup, handler: F) -> DuplexStream
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    let (near, far) = tokio::io::duplex(16 * 1024);
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
    let connection = connection.with_upgrades();
    group.spawn_cancellable("http", async move { drop(connection.await) });
    near
}

/// A node's server for `cat`.
fn cat_backend(group: &TaskGroup) -> DuplexStream {
    let tasks = group.clone();
    http_server(group, move |mut request| {
        let tasks = tasks.clone();
        async move {
            let accepted = match accept_remote_command(&mut request, &Subprotocol::SERVED) {
                Ok(accepted) => accepted,
                Err(refusal) => return refusal.into_response(),
            };
            let sessions = tasks.clone();
            tasks.spawn("session", async move {
                let io = accepted.upgrade.io().await.unwrap();
                let options = SessionOptions::default();
                let session = RemoteCommand::start(io, accepted.dialect, ALL, options, &sessions).await.unwrap();
                serve_cat(session, true).await;
            });
            accepted.response.map(|()| Full::default())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn cat_through_http_and_a_byte_proxy() {
    let group = TaskGroup::new("test");
    let tasks = group.clone();
    let hub = http_server(&group, move |mut request| {
        let tasks = tasks.clone();
        async move {
            let backend = cat_backend(&tasks);
            match proxy_upgrade(&mut request, backend, "/exec/ns/pod/c?input=1", "node").await.unwrap() {
                Proxied::Refused(response) => response.map(Full::new),
                Proxied::Switched { response, copy } => {
                    tasks.spawn("copy", async move { drop(copy.await) });
                    response.map(|()| Full::default())
                }
            }
        }
    });
    let request = spdy_request("/exec", "hub", &["v5.channel.k8s.io", "v4.channel.k8s.io"]).unwrap();
    let (io, chosen) = dial_spdy(hub, request).await.unwrap();
    assert_eq!(chosen, "v4.channel.k8s.io");
    let client = ClientCommand::over_spdy(io, Protocol::V4, ALL, &group).await.unwrap();
    let (out, err, outcome) = run_cat(client).await;
    assert_eq!((out.len(), err.as_str(), outcome), (200_000, "warning", CommandStatus::exit(3)));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told_in_the_servers_words() {
    let told = r#"{"kind":"Status","status":"Failure","message":"pods \"p\" is forbidden","code":403}"#;
    for (code, body, expected) in [
        (500, "container not found (\"c\")\n", "container not found (\"c\")"),
        (403, told, "pods \"p\" is forbidden"),
        (101, "", ""),
    ] {
        let group = TaskGroup::new("test");
        let answer = move |_| async move { http::Response::builder().status(code).body(Full::from(body)).unwrap() };
        let request = spdy_request("/exec", "node", &["v4.channel.k8s.io"]).unwrap();
        let error = dial_spdy(http_server(&group, answer), request).await.err().unwrap();
        assert_eq!(error.to_string(), format!("unable to upgrade connection: {expected}"));
    }
}

#[tokio::test(start_paused = true)]
async fn cat_translated_from_websocket_to_spdy() {
    let group = TaskGroup::new("test");
    let tasks = group.clone();
    let hub = http_server(&group, move |mut request| {
        let tasks = tasks.clone();
        async move {
            let accepted = accept_remote_command(&mut request, &Subprotocol::TRANSLATED).unwrap();
            let own = tasks.clone();
            tasks.spawn("translate", async move {
                let io = accepted.upgrade.io().await.unwrap();
                let options = SessionOptions::default();
                let front = RemoteCommand::start(io, accepted.dialect, ALL, options, &own).await.unwrap();
                let names = Protocol::ALL.map(Protocol::name);
                let request = spdy_request("/exec/ns/pod/c", "node", &names).unwrap();
                let (io, chosen) = dial_spdy(cat_backend(&own), request).await.unwrap();
                let protocol = Protocol::from_name(&chosen).unwrap();
                translate(front, ClientCommand::over_spdy(io, protocol, ALL, &own).await.unwrap()).await;
            });
            accepted.response.map(|()| Full::default())
        }
    });
    let request = websocket_request("/exec", "hub", &["v5.channel.k8s.io"], &Rng::seeded(1)).unwrap();
    let (io, chosen) = dial_websocket(hub, request).await.unwrap();
    assert_eq!(chosen, "v5.channel.k8s.io");
    let client = ClientCommand::over_websocket(io, V5, ALL, &group).await;
    let (out, err, outcome) = run_cat(client).await;
    assert_eq!((out.len(), err.as_str(), outcome), (200_000, "warning", CommandStatus::exit(3)));
}

/// A server that ends the outputs, reports and closes must find nothing unread: its TCP would throw the report away.
#[tokio::test(start_paused = true)]
async fn a_translator_says_nothing_between_the_end_of_the_output_and_the_report() {
    let group = TaskGroup::new("test");
    let set = StreamSet { stdin: false, stdout: true, stderr: true, tty: false };
    let (mut client, front) = sessions(Dialect::WebSocket(V5), set, &group).await;
    let (near, far) = tokio::io::duplex(8 * 1024);
    let (connection, mut incoming, driver) = spdy::start(far, spdy::Role::Server, spdy::Options::default());
    group.spawn_cancellable("server", async move { drop(driver.await) });
    let server = async {
        let mut error = incoming.next().await.unwrap().accept().await.unwrap();
        let mut outputs = Vec::new();
        for _ in ["stdout", "stderr"] {
            outputs.push(incoming.next().await.unwrap().accept().await.unwrap());
        }
        for output in &mut outputs {
            output.shutdown().await.unwrap();
            let said = tokio::time::timeout(Duration::from_secs(1), output.read(&mut [0; 8])).await;
            assert!(said.is_err(), "{said:?}");
        }
        error.write_all(&CommandStatus::exit(137).to_error_stream(Protocol::V4, StatusForm::Short)).await.unwrap();
        drop((error, outputs));
        connection.close().await;
    };
    let translator = async {
        let back = ClientCommand::over_spdy(near, Protocol::V4, set, &group).await.unwrap();
        translate(front, back).await
    };
    let (translated, outcome, ()) = tokio::join!(translator, client.status(), server);
    assert_eq!((translated, outcome.unwrap()), (Some(CommandStatus::exit(137)), CommandStatus::exit(137)));
}

#[tokio::test(start_paused = true)]
async fn port_forward_with_the_tunnel_taken_off() {
    let group = TaskGroup::new("test");
    let tasks = group.clone();
    let hub = http_server(&group, move |mut request| {
        let tasks = tasks.clone();
        async move {
            let own = tasks.clone();
            let backend = http_server(&tasks, move |mut request| {
                let own = own.clone();
                async move {
                    assert_eq!(request.method(), "POST");
                    assert!(!request.headers().contains_key("sec-websocket-key"));
                    let accepted = accept_port_forward(&mut request).unwrap();
                    let tasks = own.clone();
                    own.spawn("forward", async move {
                        let io = accepted.upgrade.io().await.unwrap();
                        let options = SessionOptions::default();
                        let session = PortForward::start(io, accepted.dialect, &[], "p", options, &tasks).await;
                        serve_forwards(session, tasks.clone()).await;
                    });
                    accepted.response.map(|()| Full::default())
                }
            });
            match proxy_tunnel(&mut request, backend, "/portForward/ns/pod", "node").await.unwrap() {
                Proxied::Refused(response) => response.map(Full::new),
                Proxied::Switched { response, copy } => {
                    tasks.spawn("copy", async move { drop(copy.await) });
                    response.map(|()| Full::default())
                }
            }
        }
    });
    let protocol = format!("{TUNNEL_PREFIX}{PORT_FORWARD}");
    let request = websocket_request("/portforward", "hub", &[&protocol], &Rng::seeded(1)).unwrap();
    let (io, chosen) = dial_websocket(hub, request).await.unwrap();
    assert_eq!(chosen, protocol);
    let client = PortForwardClient::start(WebSocketIo::client(io).await, Carrier::Tunnel, &group);
    let mut forward = client.open(8080).await.unwrap();
    forward.data.write_all(b"hello").await.unwrap();
    let mut answer = String::new();
    forward.data.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "HELLO");
}

/// A backend that refuses is asked once, the answer is passed on, and the client's connection is closed.
#[tokio::test(start_paused = true)]
async fn a_refused_upgrade_ends_the_connection_and_redirects_go_nowhere() {
    for (status, location, expected) in [(403, None, 403), (500, None, 500), (302, Some("http://canary/"), 500)] {
        let group = TaskGroup::new("test");
        let asked = Arc::new(AtomicUsize::new(0));
        let (tasks, count) = (group.clone(), Arc::clone(&asked));
        let mut hub = http_server(&group, move |mut request| {
            let (tasks, count) = (tasks.clone(), Arc::clone(&count));
            async move {
                let backend = http_server(&tasks, move |_| {
                    count.fetch_add(1, Ordering::Relaxed);
                    let mut builder = Response::builder().status(status);
                    if let Some(location) = location {
                        builder = builder.header("Location", location);
                    }
                    let answer = builder.body(Full::from("no")).unwrap();
                    async move { answer }
                });
                match proxy_upgrade(&mut request, backend, "/exec/x", "node").await {
                    Ok(Proxied::Refused(response)) => response.map(Full::new),
                    Ok(Proxied::Switched { .. }) => panic!("switched"),
                    Err(error) => {
                        let mut response = Response::new(Full::from(error.to_string()));
                        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                        response.headers_mut().insert("connection", "close".parse().unwrap());
                        response
                    }
                }
            }
        });
        let head =
            "POST /exec HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n";
        hub.write_all(head.as_bytes()).await.unwrap();
        hub.write_all(b"GET /second HTTP/1.1\r\nHost: hub\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        hub.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
        assert!(!answer.to_lowercase().contains("location"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn bad_close_signals_end_a_websocket_session() {
    use futures_util::SinkExt as _;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;
    for signal in [&[255_u8][..], &[255, 9], &[255, 0, 0]] {
        let group = TaskGroup::new("test");
        let (near, far) = tokio::io::duplex(1024);
        let options = SessionOptions::default();
        let session = RemoteCommand::start(far, Dialect::WebSocket(V5), ALL, options, &group).await.unwrap();
        let mut socket = tokio_tungstenite::WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        socket.send(Message::binary(signal.to_vec())).await.unwrap();
        session.closed().cancelled().await;
    }
}
