//! Certificates chosen, trusted, refused and reloaded.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::reload::Reload as _;

struct Pair {
    cert: String,
    key: String,
}

fn self_signed(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    Pair { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

fn authority() -> (CertifiedIssuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let pem = issuer.pem();
    (issuer, pem)
}

fn signed(issuer: &CertifiedIssuer<'static, KeyPair>, names: &[&str]) -> Pair {
    let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    let key = KeyPair::generate().unwrap();
    Pair { cert: params.signed_by(&key, issuer).unwrap().pem(), key: key.serialize_pem() }
}

fn trust(pem: &str) -> ServerTrust {
    ServerTrust::Bundle(CaBundle::from_pem("test", pem.as_bytes()).unwrap().into_shared())
}

/// Shakes hands once; answers the client's error, or the chain that the server showed.
async fn shake(server: &ServerTls, client: &ClientTls, host: &str) -> Result<Vec<u8>, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(server.config());
    let connector = tokio_rustls::TlsConnector::from(client.config().unwrap());
    let name = client.name_for(host).unwrap();
    let accept = async {
        let (stream, _) = listener.accept().await.unwrap();
        drop(acceptor.accept(stream).await);
    };
    let connect = async {
        let stream = connector.connect(name, TcpStream::connect(address).await.unwrap()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let (_, session) = stream.get_ref();
        Ok(session.peer_certificates().unwrap()[0].to_vec())
    };
    tokio::join!(accept, connect).1
}

fn server(pair: &Pair) -> Arc<ServerTls> {
    let certs = ServingCerts::from_pem(pair.cert.as_bytes(), pair.key.as_bytes()).unwrap();
    ServerTls::new(certs, TlsOptions::default()).unwrap()
}

#[tokio::test]
async fn trust_is_gos() {
    let (issuer, ca_pem) = authority();
    let leaf = signed(&issuer, &["localhost", "127.0.0.1"]);
    let ca_leaf = self_signed(&["localhost"], |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let expired = self_signed(&["localhost"], |params| params.not_after = date_time_ymd(2001, 1, 1));
    let cases = [
        ("signed by the bundle", &leaf, trust(&ca_pem), "localhost", None),
        ("by address", &leaf, trust(&ca_pem), "127.0.0.1", None),
        ("another name", &leaf, trust(&ca_pem), "example.org", Some("not valid for name")),
        ("an authority as leaf, in the bundle", &ca_leaf, trust(&ca_leaf.cert), "localhost", None),
        ("in the bundle, another name", &ca_leaf, trust(&ca_leaf.cert), "example.org", Some("not valid for name")),
        ("in the bundle, expired", &expired, trust(&expired.cert), "localhost", Some("Expired")),
        ("unknown authority", &leaf, trust(&ca_leaf.cert), "localhost", Some("UnknownIssuer")),
        ("anything goes", &expired, ServerTrust::Anyone, "example.org", None),
    ];
    for (name, pair, trust, host, expected) in cases {
        let outcome = shake(&server(pair), &ClientTls::new(trust), host).await;
        match expected {
            None => assert!(outcome.is_ok(), "{name}: {outcome:?}"),
            Some(text) => assert!(outcome.as_ref().is_err_and(|error| error.contains(text)), "{name}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn the_server_name_can_be_overridden() {
    let pair = self_signed(&["kubernetes"], |_| {});
    let mut client = ClientTls::new(trust(&pair.cert));
    client.server_name = Some("kubernetes".to_owned());
    shake(&server(&pair), &client, "10.0.0.1").await.unwrap();
}

#[tokio::test]
async fn certificates_follow_the_name_asked_for() {
    let main = self_signed(&["main.example"], |_| {});
    let exact = self_signed(&["a.example"], |_| {});
    let wildcard = self_signed(&["x.example"], |_| {});
    let certs = ServingCerts::from_pem(main.cert.as_bytes(), main.key.as_bytes()).unwrap();
    certs.add_sni(&[], exact.cert.as_bytes(), exact.key.as_bytes()).unwrap();
    certs.add_sni(&["*.example".to_owned()], wildcard.cert.as_bytes(), wildcard.key.as_bytes()).unwrap();
    let server = ServerTls::new(certs, TlsOptions::default()).unwrap();
    for (host, pair) in [("a.example", &exact), ("b.example", &wildcard), ("other.org", &main), ("127.0.0.1", &main)] {
        let shown = shake(&server, &ClientTls::new(ServerTrust::Anyone), host).await.unwrap();
        let expected = certificates_from_pem("test", pair.cert.as_bytes()).unwrap();
        assert_eq!(shown, expected[0].to_vec(), "{host}");
    }
}

#[test]
fn files_are_read_again_and_bad_ones_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let files = CertFiles { cert: dir.path().join("tls.crt"), key: dir.path().join("tls.key") };
    let write = |pair: &Pair| {
        std::fs::write(&files.cert, &pair.cert).unwrap();
        std::fs::write(&files.key, &pair.key).unwrap();
    };
    let (first, second) = (self_signed(&["one"], |_| {}), self_signed(&["two"], |_| {}));
    write(&first);
    let certs = ServingCerts::load(Some(&files), &[]).unwrap();
    assert!(!certs.reload().unwrap());
    let before = certs.default_chain();

    std::fs::write(&files.cert, &second.cert).unwrap();
    assert!(
        matches!(certs.reload().unwrap_err().downcast_ref(), Some(TlsError::KeyPair { .. })),
        "half of a pair was taken"
    );
    assert_eq!(certs.default_chain(), before);

    write(&second);
    assert!(certs.reload().unwrap());
    assert_ne!(certs.default_chain(), before);
}

#[test]
fn ca_files_tell_their_observers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    let (one, two) = (authority().1, authority().1);
    std::fs::write(&path, &one).unwrap();
    let file = CaFile::load(&path).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel(4);
    file.on_change(move |bundle| sender.send(bundle.certificates().len()).unwrap());
    assert!(!file.reload().unwrap());
    std::fs::write(&path, "nothing").unwrap();
    assert!(file.reload().is_err());
    std::fs::write(&path, one + &two).unwrap();
    assert!(file.reload().unwrap());
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(file.bundle().load().certificates().len(), 2);
}

#[test]
fn options_are_checked_together() {
    let options = TlsOptions {
        min_version: "VersionTLS9".to_owned(),
        cipher_suites: vec!["TLS_RSA_WITH_RC4_128_SHA".to_owned()],
        curve_preferences: vec![29, 99],
        disable_http2: false,
    };
    let problems: Vec<String> = options.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "unknown tls version \"VersionTLS9\"",
            "Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported or doesn't exist",
            "tls curve preference 99 not supported or doesn't exist",
        ]
    );
    let good = TlsOptions { cipher_suites: vec![CIPHER_SUITES[4].0.to_owned()], ..TlsOptions::default() };
    assert!(good.problems().is_empty());
    // One suite for TLS 1.2 and the three for TLS 1.3, which cannot be chosen.
    assert_eq!(good.provider().unwrap().cipher_suites.len(), 4);
}

#[test]
fn sni_values_parse() {
    let cases = [
        ("a.crt,a.key", Some(vec![])),
        ("a.crt,a.key:*.foo.com,foo.com", Some(vec!["*.foo.com", "foo.com"])),
        ("a.crt", None),
        ("a.crt,a.key,b", None),
        ("a.crt,", None),
        ("a.crt,a.key:x,,y", None),
    ];
    for (text, names) in cases {
        let parsed = text.parse::<SniCert>().ok().map(|cert| cert.names);
        let expected = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parsed, expected, "{text}");
    }
}
