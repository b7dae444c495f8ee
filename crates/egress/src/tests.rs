//! Connections through real proxies, good ones and bad ones.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_types::apiserver_config_v1::EgressSelectorConfiguration;
use base::{Connection, Rng, SharedConnector, TaskGroup};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::tls::{CaBundle, ServerTls, ServingCerts, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use server_api::konnectivity::packet::Payload;
use server_api::konnectivity::proxy_service_server::{ProxyService, ProxyServiceServer};
use server_api::konnectivity::{CloseResponse, Data, DialResponse, Packet, PacketType};
use server_api::tonic::transport::Server;
use server_api::tonic::{self, Request, Response, Status, Streaming};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};

use super::*;

struct Fixture {
    directory: tempfile::TempDir,
    tasks: TaskGroup,
    registry: Arc<Metrics>,
}

impl Fixture {
    fn new() -> Self {
        let registry = Metrics::new(MetricsOptions::default());
        Self { directory: tempfile::tempdir().unwrap(), tasks: TaskGroup::new("test"), registry }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    /// Who connects to the cluster, as a file says.
    fn cluster(&self, connection: &str) -> SharedConnector {
        let text = format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n\
             - name: cluster\n  connection: {connection}\n"
        );
        let configuration = read(Path::new(&self.file("egress.yaml", &text))).unwrap();
        let selector = self.selector(&configuration);
        assert!(selector.etcd().is_direct() && selector.control_plane().is_direct(), "what is not named");
        Arc::clone(selector.cluster())
    }

    fn selector(&self, configuration: &EgressSelectorConfiguration) -> EgressSelector {
        let rng = Rng::seeded(1);
        let around = Surroundings { tasks: &self.tasks, rng: &rng, metrics: &self.registry };
        EgressSelector::new(configuration, &around).unwrap()
    }

    fn over_socket(&self, protocol: &str) -> SharedConnector {
        let socket = self.path("proxy.sock").display().to_string();
        self.cluster(&format!("{{proxyProtocol: {protocol}, transport: {{uds: {{udsName: {socket}}}}}}}"))
    }

    /// A CONNECT proxy at a socket, which says this instead of an answer of its own.
    fn connect_proxy(&self, says: &'static str) {
        let listener = UnixListener::bind(self.path("proxy.sock")).unwrap();
        let tasks = self.tasks.clone();
        self.tasks.spawn_cancellable("proxy", async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tasks.spawn_cancellable("proxied", serve_connect(Box::new(stream), says));
            }
        });
    }

    fn counted(&self, line: &str) -> bool {
        self.registry.text().contains(line)
    }
}

/// A server that gives back what it is sent, and closes when it is told `bye`.
async fn echo(tasks: &TaskGroup) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let own = tasks.clone();
    tasks.spawn_cancellable("echo", async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            own.spawn_cancellable("echoing", async move {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    if &buffer[..length] == b"bye" || stream.write_all(&buffer[..length]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// Carries bytes both ways.
async fn carry(mut one: Connection, port: u16) {
    let mut other = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    drop(tokio::io::copy_bidirectional(&mut one, &mut other).await);
}

async fn serve_connect(mut stream: Connection, says: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
    assert_eq!(head, format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    if says == "nothing" {
        return std::future::pending().await;
    }
    drop(stream.write_all(says.as_bytes()).await);
    // The name is of the cluster: only the proxy knows what it means.
    if let Some(("node-1.cluster", port)) = target.split_once(':').filter(|_| says.contains(" 200 ")) {
        carry(stream, port.parse().unwrap()).await;
    }
}

/// Says something, large enough to fill every buffer, and reads it back.
async fn converses(stream: &mut Connection) {
    let said: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let mut heard = vec![0; said.len()];
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (wrote, read) = tokio::join!(writer.write_all(&said), reader.read_exact(&mut heard));
    assert!(wrote.is_ok() && read.is_ok());
    assert!(said == heard);
}

async fn refusal(connecting: impl Future<Output = std::io::Result<Connection>>) -> String {
    tokio::time::timeout(Duration::from_secs(60), connecting).await.unwrap().err().unwrap().to_string()
}

#[tokio::test]
async fn connect_at_a_socket_leads_through() {
    let fixture = Fixture::new();
    let connector = fixture.over_socket("HTTPConnect");
    assert!(!connector.is_direct());
    let port = echo(&fixture.tasks).await;
    let nobody = refusal(connector.connect("node-1.cluster", port)).await;
    assert!(nobody.starts_with("dial ") && nobody.contains("proxy.sock: "), "{nobody}");
    assert!(fixture.counted("failure_count{protocol=\"http_connect\",stage=\"connect\",transport=\"uds\"} 1"));
    fixture.connect_proxy("HTTP/1.1 200 OK\r\nVia: test\r\n\r\n");
    converses(&mut connector.connect("node-1.cluster", port).await.unwrap()).await;
    assert!(fixture.counted("dial_start_total{protocol=\"http_connect\",transport=\"uds\"} 2"));
    assert!(fixture.counted("dial_duration_seconds_count{protocol=\"http_connect\",transport=\"uds\"} 1"));
}

#[tokio::test]
async fn connect_proxies_that_lie_are_named() {
    for (says, expected) in [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "while dialing node-1.cluster:1, code 403: 403 Forbidden"),
        ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "code 302: 302 Found"),
        ("SSH-2.0-x\r\n\r\n", "failed: malformed HTTP response \"SSH-2.0-x\""),
        ("HTTP/1.1 200", "reading HTTP response from CONNECT to node-1.cluster:1 via proxy "),
    ] {
        let fixture = Fixture::new();
        fixture.connect_proxy(says);
        let error = refusal(fixture.over_socket("HTTPConnect").connect("node-1.cluster", 1)).await;
        assert!(error.contains(expected), "{error}");
        assert!(fixture.counted("failure_count{protocol=\"http_connect\",stage=\"proxy\",transport=\"uds\"} 1"));
    }
    // An endless answer ends.
    let fixture = Fixture::new();
    let endless: &'static str = Box::leak("X".repeat(100_000).into_boxed_str());
    fixture.connect_proxy(endless);
    let error = refusal(fixture.over_socket("HTTPConnect").connect("node-1.cluster", 1)).await;
    assert!(error.ends_with("answer too long"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_connect_proxy_that_says_nothing_has_its_time() {
    let fixture = Fixture::new();
    fixture.connect_proxy("nothing");
    let error = refusal(fixture.over_socket("HTTPConnect").connect("node-1.cluster", 1)).await;
    assert!(error.ends_with("i/o timeout"), "{error}");
}

/// An authority, and what it signed for a name.
struct Pki {
    authority: String,
    certificate: String,
    key: String,
}

impl Pki {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        Self { authority: issuer.pem(), certificate, key: key.serialize_pem() }
    }
}

#[tokio::test]
async fn connect_over_tls_shows_and_asks_for_certificates() {
    let (fixture, pki, stranger) = (Fixture::new(), Pki::new("proxy.example"), Pki::new("proxy.example"));
    let certs = ServingCerts::from_pem(pki.certificate.as_bytes(), pki.key.as_bytes()).unwrap();
    let server = ServerTls::new(certs, TlsOptions::default()).unwrap();
    server.request_client_certs(&[&CaBundle::from_pem("ca", pki.authority.as_bytes()).unwrap()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn_cancellable("proxy", async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = TlsAcceptor::from(server.config()).accept(stream).await else { continue };
            assert!(stream.get_ref().1.peer_certificates().is_some(), "the server shows who it is");
            tasks.spawn_cancellable("proxied", serve_connect(Box::new(stream), "HTTP/1.1 200 OK\r\n\r\n"));
        }
    });
    let (certificate, key) = (fixture.file("tls.crt", &pki.certificate), fixture.file("tls.key", &pki.key));
    let connector = |authority: &str, name: &str| {
        let ca = fixture.file("ca.crt", authority);
        fixture.cluster(&format!(
            "{{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: \"https://{address}\", tlsConfig: \
             {{caBundle: {ca}, clientCert: {certificate}, clientKey: {key}, tlsServerName: {name}}}}}}}}}"
        ))
    };
    let port = echo(&fixture.tasks).await;
    let good = connector(&pki.authority, "proxy.example");
    converses(&mut good.connect("node-1.cluster", port).await.unwrap()).await;
    assert!(fixture.counted("dial_start_total{protocol=\"http_connect\",transport=\"tcp\"} 1"));
    for (authority, name) in [(&pki.authority, "other.example"), (&stranger.authority, "proxy.example")] {
        let error = refusal(connector(authority, name).connect("node-1.cluster", port)).await;
        assert!(error.contains("invalid peer certificate"), "{error}");
    }
}

/// What a Konnectivity proxy does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proxying {
    /// What it is asked.
    Well,
    /// It refuses to dial.
    Refuses,
    /// It answers somebody else's dial, and then none.
    Mistakes,
    /// It answers no dial.
    Hangs,
    /// It fails in the middle of a connection.
    Breaks,
    /// Its answers end in the middle of a connection, in order and without a word.
    Leaves,
    /// It says that a connection is over because of a failure.
    ClosesFor(&'static str),
    /// It says nothing when it is told that a connection is over.
    NeverCloses,
}

struct Konnectivity {
    does: Proxying,
    tasks: TaskGroup,
    /// Told of connections that were closed in order.
    closed: mpsc::Sender<()>,
}

fn packet(kind: PacketType, payload: Payload) -> Packet {
    Packet { r#type: kind.into(), payload: Some(payload) }
}

fn data(connect_id: i64, bytes: &[u8]) -> Packet {
    packet(PacketType::Data, Payload::Data(Data { connect_id, error: String::new(), data: bytes.to_vec() }))
}

#[tonic::async_trait]
impl ProxyService for Konnectivity {
    type ProxyStream = ReceiverStream<Result<Packet, Status>>;

    async fn proxy(&self, request: Request<Streaming<Packet>>) -> Result<Response<Self::ProxyStream>, Status> {
        let (send, receive) = mpsc::channel(1);
        let serving = proxied(self.does, request.into_inner(), send, self.closed.clone());
        self.tasks.spawn_cancellable("konnectivity", async move {
            let _ended = serving.await;
        });
        Ok(Response::new(ReceiverStream::new(receive)))
    }
}

async fn proxied(
    does: Proxying,
    mut packets: Streaming<Packet>,
    send: mpsc::Sender<Result<Packet, Status>>,
    closed: mpsc::Sender<()>,
) -> Option<()> {
    const ID: i64 = 7;
    let Some(Payload::DialRequest(dial)) = packets.message().await.ok()??.payload else { panic!("a dial") };
    assert_eq!(dial.protocol, "tcp");
    let answer = |error: &str, random| {
        let answer = DialResponse { error: error.to_owned(), connect_id: ID, random };
        Ok(packet(PacketType::DialRsp, Payload::DialResponse(answer)))
    };
    match does {
        Proxying::Refuses => return send.send(answer("no route to host", dial.random)).await.ok(),
        Proxying::Mistakes => {
            send.send(Ok(data(ID, b"too early"))).await.ok()?;
            return send.send(answer("", dial.random.wrapping_add(1))).await.ok();
        }
        Proxying::Hangs => return std::future::pending().await,
        _ => send.send(answer("", dial.random)).await.ok()?,
    }
    send.send(Ok(data(ID + 1, b"of somebody else"))).await.ok()?;
    let (host, port) = dial.address.split_once(':')?;
    assert_eq!(host, "node-1.cluster");
    let stream = TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let back = async {
        let mut buffer = vec![0; 100_000];
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            send.send(Ok(data(ID, &buffer[..length]))).await.ok()?;
            match does {
                Proxying::Breaks => return send.send(Err(Status::unavailable("the agent is gone"))).await.ok(),
                Proxying::Leaves => return Some(()),
                Proxying::ClosesFor(_) => break,
                _ => {}
            }
        }
        let error = if let Proxying::ClosesFor(why) = does { why } else { "" };
        let over = CloseResponse { error: error.to_owned(), connect_id: ID };
        send.send(Ok(packet(PacketType::CloseRsp, Payload::CloseResponse(over)))).await.ok()
    };
    let forth = async {
        while let Ok(Some(packet)) = packets.message().await {
            match packet.payload {
                Some(Payload::Data(data)) => writer.write_all(&data.data).await.unwrap(),
                Some(Payload::CloseRequest(over)) => {
                    assert_eq!(over.connect_id, ID);
                    closed.send(()).await.unwrap();
                    if does == Proxying::NeverCloses {
                        std::future::pending::<()>().await;
                    }
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::select! {
        _ended = back => {}
        () = forth => {}
    }
    Some(())
}

fn konnectivity(fixture: &Fixture, does: Proxying) -> mpsc::Receiver<()> {
    let (closed, told) = mpsc::channel(8);
    let listener = UnixListener::bind(fixture.path("proxy.sock")).unwrap();
    let own = Konnectivity { does, tasks: fixture.tasks.clone(), closed };
    let serving = Server::builder()
        .add_service(ProxyServiceServer::new(own))
        .serve_with_incoming(UnixListenerStream::new(listener));
    fixture.tasks.spawn_cancellable("konnectivity-server", async move { serving.await.unwrap() });
    told
}

#[tokio::test]
async fn konnectivity_leads_through() {
    let fixture = Fixture::new();
    let connector = fixture.over_socket("GRPC");
    let port = echo(&fixture.tasks).await;
    let nobody = refusal(connector.connect("node-1.cluster", port)).await;
    assert!(nobody.starts_with("dial unix ") && nobody.contains("proxy.sock: "), "{nobody}");
    let mut closed = konnectivity(&fixture, Proxying::Well);
    let mut stream = connector.connect("node-1.cluster", port).await.unwrap();
    converses(&mut stream).await;
    drop(stream);
    closed.recv().await.unwrap();
    // The other side closes.
    let mut stream = connector.connect("node-1.cluster", port).await.unwrap();
    stream.write_all(b"bye").await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "an end, and no failure");
    assert!(fixture.counted("dial_start_total{protocol=\"grpc\",transport=\"uds\"} 3"));
    assert!(fixture.counted("failure_count{protocol=\"grpc\",stage=\"connect\",transport=\"uds\"} 1"));
    assert!(fixture.counted("dial_duration_seconds_count{protocol=\"grpc\",transport=\"uds\"} 2"));
}

#[tokio::test]
async fn konnectivity_proxies_that_fail_are_named() {
    for (does, expected) in [(Proxying::Refuses, "no route to host"), (Proxying::Mistakes, "tunnel closed")] {
        let fixture = Fixture::new();
        let _closed = konnectivity(&fixture, does);
        assert_eq!(refusal(fixture.over_socket("GRPC").connect("node-1.cluster", 1)).await, expected);
        assert!(fixture.counted("failure_count{protocol=\"grpc\",stage=\"proxy\",transport=\"uds\"} 1"));
    }
}

#[tokio::test]
async fn what_was_read_before_a_failure_is_not_taken_for_all() {
    for (does, expected) in [
        (Proxying::Breaks, "the agent is gone"),
        (Proxying::Leaves, "tunnel closed"),
        (Proxying::ClosesFor("connection reset by peer"), "connection reset by peer"),
    ] {
        let fixture = Fixture::new();
        let _closed = konnectivity(&fixture, does);
        let port = echo(&fixture.tasks).await;
        let mut stream = fixture.over_socket("GRPC").connect("node-1.cluster", port).await.unwrap();
        stream.write_all(b"words").await.unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(stream.read(&mut heard).await.unwrap_err().to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn konnectivity_proxies_that_hang_have_their_time() {
    let fixture = Fixture::new();
    let _closed = konnectivity(&fixture, Proxying::Hangs);
    assert_eq!(refusal(fixture.over_socket("GRPC").connect("node-1.cluster", 1)).await, "dial timeout, backstop");
}

#[tokio::test]
async fn a_tunnel_whose_end_nobody_confirms_ends_all_the_same() {
    let fixture = Fixture::new();
    let mut closed = konnectivity(&fixture, Proxying::NeverCloses);
    let port = echo(&fixture.tasks).await;
    let tunnels = TaskGroup::new("tunnels");
    let own =
        crate::konnectivity::Konnectivity::new(UnixSocket::at(fixture.path("proxy.sock")), &tunnels, &Rng::seeded(1));
    let stream = crate::metrics::Through::through(&own, format!("node-1.cluster:{port}")).await.unwrap();
    drop(stream);
    closed.recv().await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    for _ in 0..200 {
        if own.running() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the tunnel's task runs on");
}
