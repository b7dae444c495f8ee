//! exec and logs over WebSockets that nobody wrapped: the bytes that clients see.

use client::{CertSource, ClientConfig, Trust};
use component_base::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTrust};
use futures_util::StreamExt as _;
use http::Uri;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::ClientRequestBuilder;

use super::check::Check;
use super::live::Place;
use super::object::{IDLE, pod, shell};

pub(crate) fn checks() -> Vec<Check> {
    const ITEMS: &[&str] = &[
        "Pods should support remote command execution over websockets",
        "Pods should support retrieving logs from the container over websockets",
    ];
    vec![Check::new("websockets", ITEMS, async |place: Place| {
        let script = format!("echo container is alive; {IDLE}");
        place.ready(&pod("socket", &[shell("main", &script)], json!({}))).await;
        place.log_until("socket", "main", |log| !log.is_empty()).await;
        exec(&place).await;
        log(&place).await;
    })]
}

async fn exec(place: &Place) {
    let path = "pods/socket/exec?command=echo&command=remote+execution+test&stdout=1&stderr=1&container=main";
    let messages = talk(place, path, "channel.k8s.io").await;
    let of = |channel: u8| {
        let all = messages.iter().filter(|message| message.first() == Some(&channel));
        let bytes: Vec<u8> = all.flat_map(|message| message.iter().skip(1).copied()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!([of(1), of(2)], ["remote execution test\n", ""], "{messages:?}");
    // This protocol has no word for success.
    assert!(messages.iter().all(|message| message.len() == 1 || message.first() == Some(&1)), "{messages:?}");
    let messages = talk(place, path, "v4.channel.k8s.io").await;
    let status = messages.iter().find(|message| message.first() == Some(&3)).expect("the end is told");
    assert!(String::from_utf8_lossy(status).contains("\"status\":\"Success\""), "{messages:?}");
}

async fn log(place: &Place) {
    let messages = talk(place, "pods/socket/log?container=main", "binary.k8s.io").await;
    let text: Vec<u8> = messages.concat();
    assert_eq!(String::from_utf8_lossy(&text), "container is alive\n");
}

/// All messages that a server sends until it is done.
async fn talk(place: &Place, path: &str, protocol: &str) -> Vec<Vec<u8>> {
    let config = place.client.config();
    let server: Uri = config.server.parse().expect("the server is a URL");
    let (host, port) = (server.host().unwrap_or_default(), server.port_u16().unwrap_or(443));
    let tls = tls(config);
    let connector = tokio_rustls::TlsConnector::from(tls.config().expect("the certificates are good"));
    let name = tls.name_for(host).expect("the server has a name");
    let tcp = TcpStream::connect((host, port)).await.expect("the server listens");
    let stream = connector.connect(name, tcp).await.expect("the server speaks TLS");
    let uri: Uri = format!("wss://{host}:{port}{}", place.path(path)).parse().expect("a URL");
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(protocol);
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await.expect("the server upgrades");
    assert_eq!(answer.headers().get("sec-websocket-protocol").and_then(|chosen| chosen.to_str().ok()), Some(protocol));
    let messages = socket.take_while(|message| {
        let goes_on = message.as_ref().is_ok_and(|message| !message.is_close());
        async move { goes_on }
    });
    let bytes = messages.filter_map(|message| async {
        match message {
            Ok(Message::Binary(bytes)) => Some(bytes.to_vec()),
            Ok(Message::Text(text)) => Some(text.as_bytes().to_vec()),
            _ => None,
        }
    });
    bytes.collect().await
}

/// The certificates of a client's configuration; HTTP/1.1, which alone can be upgraded so.
fn tls(config: &ClientConfig) -> ClientTls {
    let trust = match &config.trust {
        Trust::Pem(pem) => {
            ServerTrust::Bundle(CaBundle::from_pem("the kubeconfig", pem).expect("certificates").into_shared())
        }
        Trust::File(path) => ServerTrust::Bundle(CaFile::load(path).expect("certificates").bundle()),
        _ => panic!("the kubeconfig names whom it trusts"),
    };
    let identity = match &config.identity {
        CertSource::Pem { cert, key } => ClientIdentity::from_pem(cert, key).expect("a certificate"),
        CertSource::Files { cert, key } => ClientIdentity::load(cert, key).expect("a certificate"),
        _ => panic!("the kubeconfig has a certificate"),
    };
    ClientTls { identity, alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(trust) }
}
