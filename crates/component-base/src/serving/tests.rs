//! Real sockets on ephemeral ports, real TLS, both protocols.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::{Drained, TaskGroup};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::*;
use crate::flags::{Errors, Flag, FlagSet, Invalid};
use crate::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTls, ServerTrust, ServingCerts, TlsOptions};

/// Ends what hangs; far beyond what any step takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Pair {
    cert: String,
    key: String,
}

fn pair(names: &[&str]) -> Pair {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Pair { cert: made.cert.pem(), key: made.signing_key.serialize_pem() }
}

pub(super) struct Running {
    pub(super) handle: ServerHandle,
    pub(super) tasks: TaskGroup,
    serving: Pair,
}

pub(super) fn start(handler: Arc<dyn Handler>, limits: Limits) -> Running {
    let serving = pair(&["localhost"]);
    let certs = ServingCerts::from_pem(serving.cert.as_bytes(), serving.key.as_bytes()).unwrap();
    let tls = ServerTls::new(certs, TlsOptions::default()).unwrap();
    tls.request_client_certs(&[]).unwrap();
    let tasks = TaskGroup::new("test");
    let listener = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Exclusive).unwrap();
    let handle = Server::new(handler, Security::Tls(tls)).with_limits(limits).spawn(&tasks, listener).unwrap();
    Running { handle, tasks, serving }
}

pub(super) type Stream = TokioIo<tokio_rustls::client::TlsStream<TcpStream>>;

pub(super) async fn dial(running: &Running, alpn: &[u8], identity: Option<&Pair>) -> Stream {
    let bundle = CaBundle::from_pem("test", running.serving.cert.as_bytes()).unwrap();
    let mut client = ClientTls::new(ServerTrust::Bundle(bundle.into_shared()));
    client.alpn = vec![alpn.to_vec()];
    if let Some(pair) = identity {
        client.identity = ClientIdentity::from_pem(pair.cert.as_bytes(), pair.key.as_bytes()).unwrap();
    }
    let name = client.name_for("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(client.config().unwrap());
    let stream = TcpStream::connect(running.handle.address()).await.unwrap();
    TokioIo::new(connector.connect(name, stream).await.unwrap())
}

pub(super) fn get(uri: &str) -> http::Request<Body> {
    http::Request::get(uri).header("host", "localhost").body(empty()).unwrap()
}

async fn body_of(response: http::Response<hyper::body::Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Says which protocol, who the client is, and panics on demand.
fn echo() -> Arc<dyn Handler> {
    Arc::new(handler_fn(|request: Request| async move {
        assert!(request.uri().path() != "/panic", "asked to");
        let certificates = request.extensions().get::<PeerCertificates>().map_or(0, |chain| chain.len());
        let remote = request.extensions().get::<RemoteAddr>().map(|remote| remote.0.ip().to_string());
        let sni = request.extensions().get::<SniName>().map(|name| name.0.to_string());
        text(StatusCode::OK, format!("{:?} {certificates} {remote:?} {sni:?}", request.version()))
    }))
}

#[tokio::test]
async fn both_protocols_show_who_calls() {
    let running = start(echo(), Limits::default());
    let client = pair(&["somebody"]);

    let (mut http1, connection) =
        hyper::client::conn::http1::handshake(dial(&running, b"http/1.1", None).await).await.unwrap();
    running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
    let response = http1.send_request(get("/")).await.unwrap();
    assert_eq!(body_of(response).await, r#"HTTP/1.1 0 Some("127.0.0.1") Some("localhost")"#);

    let stream = dial(&running, b"h2", Some(&client)).await;
    let (mut http2, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
    let response = http2.send_request(get("https://localhost/")).await.unwrap();
    assert_eq!(body_of(response).await, r#"HTTP/2.0 1 Some("127.0.0.1") Some("localhost")"#);
}

#[tokio::test]
async fn a_panic_costs_the_request_not_the_connection() {
    let running = start(echo(), Limits::default());
    let stream = dial(&running, b"http/1.1", None).await;
    let (mut http1, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
    let response = http1.send_request(get("/panic")).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    body_of(response).await;
    assert_eq!(http1.send_request(get("/")).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_headers_is_cut() {
    let limits = Limits { header_read: Duration::from_millis(200), ..Limits::default() };
    let running = start(echo(), limits);
    let mut stream = dial(&running, b"http/1.1", None).await.into_inner();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
    let mut answer = Vec::new();
    // The end may come as an orderly close or as a reset.
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection stays open"));
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_never_shakes_hands_is_cut() {
    let limits = Limits { handshake: Duration::from_millis(100), ..Limits::default() };
    let running = start(echo(), limits);
    let mut stream = TcpStream::connect(running.handle.address()).await.unwrap();
    let mut answer = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection stays open"));
    assert!(answer.is_empty());
}

/// Tells that a request has come, and answers it when it is told to.
fn answers_when_told(entered: &Arc<Notify>, leave: &Arc<Notify>) -> Arc<dyn Handler> {
    let (entered, leave) = (Arc::clone(entered), Arc::clone(leave));
    Arc::new(handler_fn(move |_| {
        let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
        async move {
            entered.notify_one();
            leave.notified().await;
            text(StatusCode::OK, "finished")
        }
    }))
}

#[tokio::test]
async fn shutdown_finishes_what_has_begun() {
    for (alpn, uri) in [(&b"http/1.1"[..], "/"), (b"h2", "https://localhost/")] {
        let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let running = start(answers_when_told(&entered, &leave), Limits::default());
        let stream = dial(&running, alpn, None).await;
        let request = request_over(&running.tasks, stream, alpn, get(uri));
        let shutdown = async {
            entered.notified().await;
            let shutdown = running.handle.shutdown(PATIENCE);
            let release = async {
                tokio::task::yield_now().await;
                leave.notify_one();
            };
            tokio::join!(shutdown, release).0
        };
        let (answer, drained) = tokio::join!(request, shutdown);
        assert_eq!((answer.as_str(), drained), ("finished", Drained::All));
        assert!(TcpStream::connect(running.handle.address()).await.is_err(), "the listener is still open");
    }
}

async fn request_over(tasks: &TaskGroup, stream: Stream, alpn: &[u8], request: http::Request<Body>) -> String {
    if alpn == b"h2" {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tasks.spawn_cancellable("client", async move { drop(connection.await) });
        return body_of(sender.send_request(request).await.unwrap()).await;
    }
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tasks.spawn_cancellable("client", async move { drop(connection.await) });
    body_of(sender.send_request(request).await.unwrap()).await
}

#[tokio::test]
async fn shutdown_cuts_what_does_not_end() {
    let entered = Arc::new(Notify::new());
    let handler = handler_fn({
        let entered = Arc::clone(&entered);
        move |_| {
            let running = Arc::clone(&entered);
            async move {
                running.notify_one();
                std::future::pending::<()>().await;
                drop(running);
                text(StatusCode::OK, "never")
            }
        }
    });
    let running = start(Arc::new(handler), Limits::default());
    let stream = dial(&running, b"h2", None).await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
    let request = sender.send_request(get("https://localhost/"));
    let shutdown = async {
        entered.notified().await;
        running.handle.shutdown(Duration::from_millis(50)).await
    };
    let (answer, drained) = tokio::join!(request, shutdown);
    assert!(answer.is_err());
    assert!(matches!(drained, Drained::Stuck(_)), "{drained:?}");
    assert_eq!(running.handle.connections(), 0);
    assert_eq!(Arc::strong_count(&entered), 1, "the request or its server is still there");
}

#[tokio::test]
async fn idle_connections_end() {
    let limits = Limits { idle: Duration::from_secs(1), ..Limits::default() };
    let running = start(echo(), limits);
    let stream = dial(&running, b"h2", None).await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let request = async { sender.send_request(get("https://localhost/")).await.unwrap().status() };
    let ended = tokio::time::timeout(PATIENCE, connection);
    let (status, ended) = tokio::join!(request, ended);
    assert_eq!(status, StatusCode::OK);
    ended.expect("the connection stays open").unwrap();

    // One that never even begins to speak HTTP/2 is cut, too.
    let mut silent = dial(&running, b"h2", None).await.into_inner();
    let mut rest = Vec::new();
    drop(tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("the connection stays open"));
}

#[tokio::test]
async fn go_away_ends_an_http2_connection_after_the_request() {
    for ask in [Ask::Extension, Ask::Header] {
        let handler = handler_fn(move |request: Request| async move {
            let mut response = text(StatusCode::OK, "bye");
            match ask {
                Ask::Extension => request.extensions().get::<GoAway>().unwrap().send(),
                Ask::Header => drop(response.headers_mut().insert("connection", "close".parse().unwrap())),
            }
            response
        });
        go_away_after_one_request(Arc::new(handler)).await;
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Extension,
    Header,
}

async fn go_away_after_one_request(handler: Arc<dyn Handler>) {
    let running = start(handler, Limits::default());
    let stream = dial(&running, b"h2", None).await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let request = async { body_of(sender.send_request(get("https://localhost/")).await.unwrap()).await };
    let ended = tokio::time::timeout(PATIENCE, connection);
    let (answer, ended) = tokio::join!(request, ended);
    assert_eq!(answer, "bye");
    ended.expect("the connection stays open").unwrap();
}

#[tokio::test]
async fn upgrades_hand_over_the_stream() {
    let tasks = TaskGroup::new("upgraded");
    let handler = handler_fn({
        let tasks = tasks.clone();
        move |mut request: Request| {
            let tasks = tasks.clone();
            async move {
                let upgrade = hyper::upgrade::on(&mut request);
                tasks.spawn("echo", async move {
                    let mut stream = TokioIo::new(upgrade.await.unwrap());
                    let mut word = [0; 4];
                    stream.read_exact(&mut word).await.unwrap();
                    stream.write_all(&word).await.unwrap();
                });
                let mut response = Response::new(empty());
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                response.headers_mut().insert("connection", "upgrade".parse().unwrap());
                response.headers_mut().insert("upgrade", "echo".parse().unwrap());
                response
            }
        }
    });
    let running = start(Arc::new(handler), Limits::default());
    let mut stream = dial(&running, b"http/1.1", None).await.into_inner();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nping").await.unwrap();
    let mut answer = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("no answer"));
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101") && answer.ends_with("\r\n\r\nping"), "{answer}");
}

#[tokio::test]
async fn plain_listeners_serve_health_ports() {
    let tasks = TaskGroup::new("test");
    let listener = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Shared).unwrap();
    let handle = Server::new(echo(), Security::Plain).spawn(&tasks, listener).unwrap();
    let mut stream = TcpStream::connect(handle.address()).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("x-content-type-options: nosniff"), "{answer}");
    assert!(matches!(handle.shutdown(PATIENCE).await, Drained::All));
}

const SERVING_FLAGS: &[Flag] = &secure_serving_flags("0", "");
const SERVING: &[FlagSet] = &[FlagSet { title: "secure serving", flags: SERVING_FLAGS }];

fn secure(arguments: &[String]) -> Result<SecureServing, Invalid> {
    let options = crate::flags::parse(SERVING, arguments.iter().cloned())?;
    let mut errors = Errors::new();
    let secure = SecureServing::from_options(&options, "apiserver", &mut errors);
    errors.into_result().map(|()| secure)
}

#[tokio::test]
async fn flags_lead_to_a_server_with_a_pair_of_its_own() {
    assert_eq!(crate::flags::check_table(SERVING), Vec::<String>::new());
    let dir = tempfile::tempdir().unwrap();
    let secure = secure(&["--bind-address=127.0.0.1".into(), format!("--cert-dir={}", dir.path().display())]).unwrap();
    assert!(!secure.is_enabled());
    let generate = |names: &[String]| {
        let made = pair(&names.iter().map(String::as_str).collect::<Vec<_>>());
        Ok((made.cert.into_bytes(), made.key.into_bytes()))
    };
    let certs = secure.certificates(&["localhost".to_owned()], &generate).unwrap();
    let again = secure.certificates(&["other".to_owned()], &generate).unwrap();
    assert_eq!(certs.default_chain(), again.default_chain(), "the pair was not kept");
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("apiserver.crt"), mode("apiserver.key")), (0o644, 0o600));

    let client_ca = CaFile::load(dir.path().join("apiserver.crt")).unwrap();
    let tasks = TaskGroup::new("test");
    let handle = secure.serve(&tasks, certs, &[client_ca], echo()).unwrap();
    assert!(TcpStream::connect(handle.address()).await.is_ok());
}

#[test]
fn bad_serving_flags_are_reported_together() {
    let arguments = ["--secure-port=70000", "--tls-cert-file=a", "--tls-min-version=1", "--tls-sni-cert-key=x"];
    let problems = secure(&arguments.map(str::to_owned)).unwrap_err();
    assert_eq!(problems.problems().len(), 4, "{problems}");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let first = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Exclusive).unwrap();
    let address: SocketAddr = first.local_addr().unwrap();
    let error = bind(address, PortSharing::Exclusive).unwrap_err();
    assert!(error.to_string().starts_with(&format!("failed to create listener: failed to listen on {address}: ")));
}

/// Content that tells whether anybody still has it.
struct Kept(Arc<Vec<u8>>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_let_go() {
    for alpn in [&b"http/1.1"[..], b"h2"] {
        let content = Arc::new(vec![b'x'; 32 << 20]);
        let cuts = Arc::new(AtomicUsize::new(0));
        let handler = handler_fn({
            let (content, cuts) = (Arc::clone(&content), Arc::clone(&cuts));
            move |_| {
                let (content, cuts) = (Arc::clone(&content), Arc::clone(&cuts));
                async move {
                    let mut response = Response::new(full(bytes::Bytes::from_owner(Kept(content))));
                    let mut soon = TakenBy::new(tokio::time::Instant::now() + Duration::from_millis(300));
                    soon.tell(move || _ = cuts.fetch_add(1, Ordering::Relaxed));
                    response.extensions_mut().insert(soon);
                    response
                }
            }
        });
        let running = start(Arc::new(handler), Limits { idle: Duration::from_secs(2), ..Limits::default() });
        let before = Arc::strong_count(&content);
        let stream = dial(&running, alpn, None).await;
        let response = if alpn == b"h2" {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
            sender.send_request(get("https://localhost/")).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
            running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
            sender.send_request(get("/")).await.unwrap()
        };
        assert!(Arc::strong_count(&content) > before, "the answer is on its way");
        let gone = async {
            while Arc::strong_count(&content) > before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("the answer is still kept");
        assert!(response.into_body().collect().await.is_err(), "the client must not take a part for all");
        // A connection of HTTP/1.1 has all of a body that is one piece at once; it ends as idle.
        assert!(alpn != b"h2" || cuts.load(Ordering::Relaxed) == 1, "it is told of once");
    }
}

#[tokio::test]
async fn an_answer_that_is_read_comes_whole() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let handler = handler_fn({
        let content = content.clone();
        move |_| {
            let mut response = Response::new(full(content.clone()));
            response.extensions_mut().insert(TakenBy::new(tokio::time::Instant::now() + PATIENCE));
            async move { response }
        }
    });
    let running = start(Arc::new(handler), Limits::default());
    let stream = dial(&running, b"h2", None).await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
    let response = sender.send_request(get("https://localhost/")).await.unwrap();
    assert_eq!(response.headers()["content-length"], "1000000");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), content);
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    let handler = handler_fn(|request: Request| async move {
        if request.uri().path() == "/known" {
            request.extensions().get::<Newcomer>().unwrap().is_known();
        }
        text(StatusCode::OK, "ok")
    });
    let running = start(Arc::new(handler), Limits { newcomers: Some(2), ..Limits::default() });
    let mut connections = Vec::new();
    for path in ["/", "/known", "/"] {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(dial(&running, b"http/1.1", None).await).await.unwrap();
        running.tasks.spawn_cancellable("client", async move { drop(connection.await) });
        assert_eq!(body_of(sender.send_request(get(path)).await.unwrap()).await, "ok");
        connections.push(sender);
    }
    let mut refused = TcpStream::connect(running.handle.address()).await.unwrap();
    let mut nothing = Vec::new();
    // The end may come as an orderly close or as a reset.
    let ended = tokio::time::timeout(PATIENCE, refused.read_to_end(&mut nothing)).await;
    drop(ended.expect("one connection too many stays open"));
    for mut sender in connections {
        assert_eq!(body_of(sender.send_request(get("/")).await.unwrap()).await, "ok", "those that are open go on");
    }
}

/// The port is closed at once, and what runs goes on to its end.
#[tokio::test]
async fn draining_closes_the_listener_while_requests_run() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let running = start(answers_when_told(&entered, &leave), Limits::default());
    let stream = dial(&running, b"h2", None).await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let request = async {
        let response = sender.send_request(get("https://localhost/")).await.unwrap();
        body_of(response).await
    };
    let drain = async {
        entered.notified().await;
        running.handle.drain();
        let closed = async {
            while TcpStream::connect(running.handle.address()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, closed).await.expect("the listener is still open");
        leave.notify_one();
    };
    let ended = tokio::time::timeout(PATIENCE, connection);
    let (answer, (), ended) = tokio::join!(request, drain, ended);
    assert_eq!(answer, "finished");
    ended.expect("the connection stays open").unwrap();
}
