//! The HTTPS transport against a real server on an ephemeral port, and requests through the whole client.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_types::core_v1::Pod;
use base::{Rng, SystemClock, TaskGroup};
use component_base::serving::{
    Handler, Limits, PeerCertificates, PortSharing, RemoteAddr, Request, Response, Security, Server, ServerHandle,
    bind, text,
};
use component_base::tls::{ClientIdentity, ServerTls, ServingCerts, TlsOptions};
use http::StatusCode;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;

use super::*;
use crate::client::Client;
use crate::config::{CertSource, ClientConfig, ContentType, Credentials, Trust};
use crate::cx::ClientCx;
use crate::exec::tests::{Scripted, config as plugin_config, says};
use crate::fake::FakeServer;

/// Puts the fake server behind a socket and notes who calls.
pub(super) struct Front {
    fake: FakeServer,
    pub(super) seen: Mutex<Vec<Seen>>,
    stuck: AtomicBool,
    refuses: AtomicBool,
}

pub(super) struct Seen {
    pub(super) version: http::Version,
    port: u16,
    pub(super) certificates: usize,
    authorization: String,
    agent: String,
}

fn note(request: &Request) -> Seen {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    Seen {
        version: request.version(),
        port: request.extensions().get::<RemoteAddr>().map_or(0, |remote| remote.0.port()),
        certificates: request.extensions().get::<PeerCertificates>().map_or(0, |chain| chain.0.len()),
        authorization: header(http::header::AUTHORIZATION).unwrap_or_default(),
        agent: header(http::header::USER_AGENT).unwrap_or_default(),
    }
}

#[async_trait::async_trait]
impl Handler for Front {
    async fn handle(&self, request: Request) -> Response {
        self.seen.lock().push(note(&request));
        if self.stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.refuses.load(Ordering::SeqCst) {
            return text(StatusCode::UNAUTHORIZED, "who?");
        }
        if request.uri().path() == "/healthz" {
            return text(StatusCode::OK, "ok");
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.fake.call(http::Request::from_parts(parts, body), &Peer::default()).await
    }
}

pub(super) struct Running {
    pub(super) front: Arc<Front>,
    _handle: ServerHandle,
    pub(super) tasks: TaskGroup,
    pub(super) config: ClientConfig,
}

pub(super) fn pair(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub(super) fn start(tls: bool) -> Running {
    let (cert, key) = pair("localhost");
    let security = if tls {
        let certs = ServingCerts::from_pem(cert.as_bytes(), key.as_bytes()).unwrap();
        let tls = ServerTls::new(certs, TlsOptions::default()).unwrap();
        tls.request_client_certs(&[]).unwrap();
        Security::Tls(tls)
    } else {
        Security::Plain
    };
    let front = Arc::new(Front {
        fake: FakeServer::new(),
        seen: Mutex::default(),
        stuck: AtomicBool::default(),
        refuses: AtomicBool::default(),
    });
    let tasks = TaskGroup::new("test");
    let listener = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Exclusive).unwrap();
    let handler = Arc::<Front>::clone(&front);
    let handle = Server::new(handler, security).with_limits(Limits::default()).spawn(&tasks, listener).unwrap();
    let scheme = if tls { "https" } else { "http" };
    let mut config = ClientConfig::for_server(format!("{scheme}://localhost:{}", handle.address().port()));
    config.trust = Trust::Pem(cert.into_bytes());
    config.content = ContentType::Json;
    Running { front, _handle: handle, tasks, config: config.with_rate(-1.0, 1) }
}

pub(super) fn cx(tasks: &TaskGroup) -> ClientCx {
    ClientCx::new(SystemClock::shared(), Rng::seeded(1), tasks.clone())
}

impl Running {
    fn client(&self, change: impl FnOnce(&mut ClientConfig)) -> Client {
        let mut config = self.config.clone();
        change(&mut config);
        Client::new(config, cx(&self.tasks)).unwrap()
    }

    fn ports(&self) -> usize {
        self.front.seen.lock().iter().map(|seen| seen.port).collect::<BTreeSet<_>>().len()
    }
}

fn pod(name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.to_owned();
    pod.metadata.namespace = "ns".to_owned();
    pod
}

#[tokio::test]
async fn requests_share_one_http2_connection_and_show_who_asks() {
    let running = start(true);
    let (cert, key) = pair("me");
    let client = running.client(|config| {
        config.identity = CertSource::Pem { cert: cert.into_bytes(), key: key.into_bytes() };
        config.credentials = Credentials::Token("secret".into());
        config.user_agent = "tester/1".into();
    });
    let pods = client.namespaced::<Pod>("ns");
    let created = pods.create(&pod("a")).await.unwrap();
    assert!(pods.create(&pod("a")).await.unwrap_err().is_already_exists());
    let mut stale = created.clone();
    stale.metadata.resource_version = "999".into();
    assert!(pods.update(&stale).await.unwrap_err().is_conflict());
    assert!(pods.get("missing").await.unwrap_err().is_not_found());
    assert_eq!(pods.list(&ListOptions::default()).await.unwrap().items.len(), 1);
    pods.delete("a", &Default::default()).await.unwrap();
    let seen = running.front.seen.lock();
    let first = &seen[0];
    assert_eq!((first.version, first.certificates), (http::Version::HTTP_2, 1));
    assert_eq!((first.authorization.as_str(), first.agent.as_str()), ("Bearer secret", "tester/1"));
    drop(seen);
    assert_eq!(running.ports(), 1);
}

#[tokio::test]
async fn many_watches_open_more_connections_than_one() {
    let running = start(true);
    let client = running.client(|_| {});
    let mut watches = Vec::new();
    for _ in 0..connection::MAX_STREAMS + 20 {
        watches.push(client.all::<Pod>().watch(&ListOptions::default()).await.unwrap());
    }
    assert_eq!(running.ports(), 2);
    client.namespaced::<Pod>("ns").create(&pod("a")).await.unwrap();
    for watch in &mut watches {
        watch.next().await.unwrap().unwrap();
    }
    drop(watches);
    client.all::<Pod>().list(&ListOptions::default()).await.unwrap();
    assert_eq!(running.ports(), 2);
}

#[tokio::test]
async fn plain_http_reuses_connections_and_sends_no_credentials_by_itself() {
    let running = start(false);
    let client = running.client(|_| {});
    for _ in 0..3 {
        let answer = client.send(crate::request::Request::get("/healthz")).await.unwrap();
        assert_eq!(answer.body.as_ref(), b"ok");
    }
    assert_eq!(running.front.seen.lock()[0].version, http::Version::HTTP_11);
    assert_eq!(running.ports(), 1);
}

#[tokio::test]
async fn strangers_are_not_trusted_unless_asked() {
    let running = start(true);
    let stranger = running.client(|config| config.trust = Trust::Pem(pair("localhost").0.into_bytes()));
    let error = stranger.send(crate::request::Request::get("/healthz")).await.unwrap_err();
    assert!(error.to_string().contains("tls:"), "{error}");
    let insecure = running.client(|config| config.trust = Trust::Insecure);
    insecure.send(crate::request::Request::get("/healthz")).await.unwrap();
    let other_name = running.client(|config| config.server_name = "elsewhere".into());
    assert!(other_name.send(crate::request::Request::get("/healthz")).await.is_err());
}

#[tokio::test]
async fn nobody_listening_and_silence_are_told_apart() {
    let running = start(true);
    running.front.stuck.store(true, Ordering::SeqCst);
    let client = running.client(|config| config.timeout = Some(Duration::from_millis(200)));
    let error = client.send(crate::request::Request::get("/healthz")).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = running.client(|config| config.server = format!("https://127.0.0.1:{port}"));
    let error = nobody.send(crate::request::Request::get("/healthz")).await.unwrap_err();
    assert!(error.is_connection_refused(), "{error}");
}

#[tokio::test]
async fn a_new_client_certificate_closes_old_connections() {
    let running = start(true);
    let (cert, key) = pair("old");
    let identity = ClientIdentity::from_pem(cert.as_bytes(), key.as_bytes()).unwrap();
    let mut config = running.config.clone();
    config.identity = CertSource::Shared(Arc::clone(&identity));
    let transport = HttpsTransport::of(&config, &cx(&running.tasks)).unwrap();
    let client = Client::with_transport(Arc::<HttpsTransport>::clone(&transport), config, cx(&running.tasks)).unwrap();
    let mut watch = client.all::<Pod>().watch(&ListOptions::default()).await.unwrap();
    let (cert, key) = pair("new");
    identity.set(cert.as_bytes(), key.as_bytes()).unwrap();
    transport.reset();
    assert!(!matches!(watch.next().await, Some(Ok(_))), "the watch was on the old connection");
    client.send(crate::request::Request::get("/healthz")).await.unwrap();
    assert_eq!(running.ports(), 2);
}

#[tokio::test]
async fn a_plugins_certificate_is_shown_and_a_new_one_closes_connections() {
    let says = |token: &str| {
        let (cert, key) = pair("me");
        let text = |text: String| text.replace('\n', "\\n");
        says(&format!(r#""token":"{token}","clientCertificateData":"{}","clientKeyData":"{}""#, text(cert), text(key)))
    };
    let running = start(true);
    let scripted = Scripted::new([(0, says("one")), (0, says("two"))]);
    let cx = cx(&running.tasks).starting_by(scripted);
    let plugin = plugin_config("command: tool, interactiveMode: Never");
    let config = ClientConfig { credentials: plugin.credentials, ..running.config.clone() };
    let client = Client::new(config.clone(), cx.clone()).unwrap();
    let mut watch = client.all::<Pod>().watch(&ListOptions::default()).await.unwrap();
    let other = Client::new(config, cx).unwrap();
    running.front.refuses.store(true, Ordering::SeqCst);
    assert!(other.send(crate::request::Request::get("/healthz")).await.unwrap_err().is_unauthorized());
    running.front.refuses.store(false, Ordering::SeqCst);
    let end = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    assert!(end.is_ok_and(|end| !matches!(end, Some(Ok(_)))), "the watch was on a connection with the former one");
    client.send(crate::request::Request::get("/healthz")).await.unwrap();
    let seen = running.front.seen.lock();
    let shown: Vec<_> = seen.iter().map(|seen| (seen.authorization.as_str(), seen.certificates)).collect();
    assert_eq!(shown, [("Bearer one", 1), ("Bearer one", 1), ("Bearer two", 1)]);
    drop(seen);
    assert_eq!(running.ports(), 3);
}
