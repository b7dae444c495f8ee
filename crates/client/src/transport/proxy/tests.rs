//! Requests through proxies of each kind, which run in this process and note what they are told.

use base::{Connection, TaskGroup};
use component_base::http_proxy::ProxyEnvironment;
use component_base::logging::Redacted;
use component_base::tls::{ServerTls, ServingCerts, TlsOptions};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::tests::{Running, cx, pair, start};
use crate::client::Client;
use crate::config::{ClientConfig, Trust};
use crate::cx::ClientCx;
use crate::error::ClientError;
use crate::request::Request;

/// How a proxy behaves.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Gives tunnels.
    Connect,
    /// Answers in the server's place.
    PassOn,
    /// Wants to know who asks, and is not content.
    Refuse,
    Socks,
}

/// A proxy that leads everything to one port of this host.
struct Proxy {
    port: u16,
    told: Arc<Mutex<Vec<String>>>,
    /// Its certificate, if it speaks TLS.
    certificate: String,
}

async fn proxy(kind: Kind, encrypted: bool, server: u16, tasks: &TaskGroup) -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Not the name of the server behind it.
    let (certificate, key) = pair("127.0.0.1");
    let acceptor = encrypted.then(|| {
        let certs = ServingCerts::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        TlsAcceptor::from(ServerTls::new(certs, TlsOptions::default()).unwrap().config())
    });
    let told = Arc::<Mutex<Vec<String>>>::default();
    let heard = Arc::clone(&told);
    tasks.spawn_cancellable("proxy", async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut stream: Connection = match &acceptor {
                Some(acceptor) => Box::new(acceptor.accept(tcp).await.unwrap()),
                None => Box::new(tcp),
            };
            let own = match kind {
                Kind::Socks => socks(&mut stream).await,
                _ => http(&mut stream, kind).await,
            };
            heard.lock().push(own);
            if matches!(kind, Kind::Connect | Kind::Socks) {
                let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            }
        }
    });
    Proxy { port, told, certificate }
}

/// Reads the head of a request, and answers it.
async fn http(stream: &mut Connection, kind: Kind) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let answer: &[u8] = match kind {
        Kind::Refuse => b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        Kind::PassOn => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        _ => b"HTTP/1.1 200 Connection established\r\n\r\n",
    };
    stream.write_all(answer).await.unwrap();
    stream.flush().await.unwrap();
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let wanted = |line: &&str| line.contains(" http/1.1") || line.starts_with("proxy-authorization");
    head.lines().filter(wanted).collect::<Vec<_>>().join("|")
}

async fn socks(stream: &mut Connection) -> String {
    let mut read = async |length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await.unwrap();
        bytes
    };
    assert_eq!(read(4).await, [5, 2, 0, 2]);
    stream.write_all(&[5, 2]).await.unwrap();
    let mut texts = Vec::new();
    let version = stream.read_u8().await.unwrap();
    for _ in 0..2 {
        let length = stream.read_u8().await.unwrap();
        let mut text = vec![0; usize::from(length)];
        stream.read_exact(&mut text).await.unwrap();
        texts.push(String::from_utf8(text).unwrap());
    }
    stream.write_all(&[version, 0]).await.unwrap();
    let mut head = [0; 5];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..4], [5, 1, 0, 3]);
    let mut name = vec![0; usize::from(head[4]) + 2];
    stream.read_exact(&mut name).await.unwrap();
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    stream.flush().await.unwrap();
    texts.push(String::from_utf8_lossy(&name[..name.len() - 2]).into_owned());
    texts.join("|")
}

fn port_of(running: &Running) -> u16 {
    running.config.server.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Asks `server`, which has a certificate for `localhost`, and says whether that went well.
async fn ask(
    running: &Running,
    server: &str,
    change: impl FnOnce(&mut ClientConfig),
    cx: ClientCx,
) -> Result<(), ClientError> {
    let mut config = ClientConfig { server: server.to_owned(), ..running.config.clone() };
    config.server_name = "localhost".to_owned();
    change(&mut config);
    Client::new(config, cx).unwrap().send(Request::get("/healthz")).await.map(|_| ())
}

fn environment(cx: ClientCx, variables: &[(&str, String)]) -> ClientCx {
    let value = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone());
    cx.behind(&Arc::new(ProxyEnvironment::new(value)))
}

#[tokio::test]
async fn tunnels_lead_through_each_kind_of_proxy() {
    let running = start(true);
    for (name, kind, encrypted, scheme, expected) in [
        ("http", Kind::Connect, false, "http://", "connect api.test:6443 http/1.1"),
        (
            "http with a password",
            Kind::Connect,
            false,
            "http://me:p%40ss@",
            "connect api.test:6443 http/1.1|proxy-authorization: basic bwu6cebzcw==",
        ),
        ("https", Kind::Connect, true, "https://", "connect api.test:6443 http/1.1"),
        ("socks5", Kind::Socks, false, "socks5://me:p%40ss@", "me|p@ss|api.test"),
    ] {
        let proxy = proxy(kind, encrypted, port_of(&running), &running.tasks).await;
        let before = running.front.seen.lock().len();
        let change = |config: &mut ClientConfig| {
            config.proxy_url = Redacted::new(format!("{scheme}127.0.0.1:{}", proxy.port));
            if let Trust::Pem(pem) = &mut config.trust {
                pem.extend(proxy.certificate.bytes());
            }
        };
        let outcome = ask(&running, "https://api.test:6443", change, cx(&running.tasks)).await;
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
        assert_eq!(*proxy.told.lock(), [expected], "{name}");
        let seen = running.front.seen.lock();
        assert_eq!(
            seen[before..].iter().map(|seen| seen.version).collect::<Vec<_>>(),
            [http::Version::HTTP_2],
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_a_stranger_is_told() {
    let running = start(true);
    let refusing = proxy(Kind::Refuse, false, 1, &running.tasks).await;
    let stranger = proxy(Kind::Connect, true, 1, &running.tasks).await;
    for (url, expected) in [
        (format!("http://me:secret@localhost:{}", refusing.port), "407 Proxy Authentication Required"),
        (format!("https://me:secret@127.0.0.1:{}", stranger.port), "tls: 127.0.0.1:"),
    ] {
        let change = |config: &mut ClientConfig| config.proxy_url = Redacted::new(url.clone());
        let error = ask(&running, "https://api.test", change, cx(&running.tasks)).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
    assert!(running.front.seen.lock().is_empty());
}

#[tokio::test]
async fn the_environment_names_proxies_where_the_configuration_does_not() {
    let running = start(true);
    let port = port_of(&running);
    let own = proxy(Kind::Connect, false, port, &running.tasks).await;
    let named = proxy(Kind::Connect, false, port, &running.tasks).await;
    let cx = environment(
        cx(&running.tasks),
        &[("https_proxy", format!("localhost:{}", named.port)), ("NO_PROXY", "near.test".to_owned())],
    );
    let own_url = format!("http://localhost:{}", own.port);
    let direct = format!("https://localhost:{port}");
    for (name, server, own_proxy, told) in [
        ("of the environment", "https://api.test", false, (0, 1)),
        ("of the configuration", "https://api.test", true, (1, 0)),
        ("of the configuration, whatever is exempt", "https://near.test", true, (1, 0)),
        ("none for this host", &direct, false, (0, 0)),
    ] {
        let change = |config: &mut ClientConfig| {
            config.proxy_url = Redacted::new(if own_proxy { own_url.clone() } else { String::new() });
        };
        let outcome = ask(&running, server, change, cx.clone()).await;
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
        let heard = |proxy: &Proxy| std::mem::take(&mut *proxy.told.lock()).len();
        assert_eq!((heard(&own), heard(&named)), told, "{name}");
    }
    // Where connections go instead is of no interest to a proxy, which knows the server by its name.
    let elsewhere = |config: &mut ClientConfig| config.connect_to = Some(("127.0.0.1".to_owned(), 1));
    ask(&running, "https://hook.ns.svc:8443", elsewhere, cx.clone()).await.unwrap();
    assert_eq!(*named.told.lock(), ["connect hook.ns.svc:8443 http/1.1"]);
    let exempt = |config: &mut ClientConfig| config.connect_to = Some(("127.0.0.1".to_owned(), port));
    ask(&running, "https://near.test", exempt, cx).await.unwrap();
    assert_eq!(named.told.lock().len(), 1);
}

#[tokio::test]
async fn requests_in_the_clear_are_passed_on() {
    let running = start(false);
    let passing = proxy(Kind::PassOn, false, 1, &running.tasks).await;
    let cx = environment(cx(&running.tasks), &[("HTTP_PROXY", format!("http://me:pw@localhost:{}", passing.port))]);
    ask(&running, "http://api.test:8080/prefix", |_| {}, cx).await.unwrap();
    let expected = "get http://api.test:8080/prefix/healthz http/1.1|proxy-authorization: basic bwu6chc=";
    assert_eq!(*passing.told.lock(), [expected]);
    assert!(running.front.seen.lock().is_empty());
}

#[tokio::test]
async fn what_is_no_proxy_is_an_error_where_it_would_be_used() {
    let tasks = TaskGroup::new("test");
    let cx = environment(cx(&tasks), &[("HTTPS_PROXY", "ftp://me:secret@proxy".to_owned())]);
    let of =
        |server: &str| Client::new(ClientConfig::for_server(server), cx.clone()).err().map(|error| error.to_string());
    let expected = "invalid proxy in the environment: unsupported scheme \"ftp\", must be http, https, or socks5";
    assert_eq!(of("https://api.test").as_deref(), Some(expected));
    assert_eq!(of("https://localhost"), None);
    let mut config = ClientConfig::for_server("https://api.test");
    config.proxy_url = Redacted::new("gopher://me:secret@proxy".to_owned());
    assert!(!format!("{config:?}").contains("secret"));
    let error = Client::new(config, cx).err().unwrap().to_string();
    assert_eq!(error, "invalid proxy-url: unsupported scheme \"gopher\", must be http, https, or socks5");
}
