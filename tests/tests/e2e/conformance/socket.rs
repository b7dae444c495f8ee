//! WebSockets to the API server, as clients open them that nobody wrote for Kubernetes.

use client::{CertSource, ClientConfig, Trust};
use component_base::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTrust};
use futures_util::StreamExt as _;
use http::Uri;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::ClientRequestBuilder;

/// All messages that a server sends until it is done; the error says why it did not open the socket.
pub(crate) async fn talk(config: &ClientConfig, path: &str, protocol: &str) -> Result<Vec<Vec<u8>>, String> {
    let server: Uri = config.server.parse().expect("the server is a URL");
    let (host, port) = (server.host().unwrap_or_default(), server.port_u16().unwrap_or(443));
    let tls = tls(config);
    let connector = tokio_rustls::TlsConnector::from(tls.config().expect("the certificates are good"));
    let name = tls.name_for(host).expect("the server has a name");
    let tcp = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    let stream = connector.connect(name, tcp).await.map_err(|error| error.to_string())?;
    let uri: Uri = format!("wss://{host}:{port}{path}").parse().expect("a URL");
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(protocol);
    let (socket, answer) = match tokio_tungstenite::client_async(request, stream).await {
        Ok(opened) => opened,
        Err(error) => return Err(format!("{path}: {error:?}")),
    };
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
    Ok(bytes.collect().await)
}

/// What came on one channel of a remote command.
pub(crate) fn channel(messages: &[Vec<u8>], number: u8) -> String {
    let all = messages.iter().filter(|message| message.first() == Some(&number));
    let bytes: Vec<u8> = all.flat_map(|message| message.iter().skip(1).copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The certificates of a client's configuration; HTTP/1.1, which alone can be upgraded so.
fn tls(config: &ClientConfig) -> ClientTls {
    let bundle = match &config.trust {
        Trust::Pem(pem) => CaBundle::from_pem("the kubeconfig", pem).expect("certificates").into_shared(),
        Trust::File(path) => CaFile::load(path).expect("certificates").bundle(),
        _ => panic!("the kubeconfig names whom it trusts"),
    };
    let identity = match &config.identity {
        CertSource::Pem { cert, key } => ClientIdentity::from_pem(cert, key).expect("a certificate"),
        CertSource::Files { cert, key } => ClientIdentity::load(cert, key).expect("a certificate"),
        _ => panic!("the kubeconfig has a certificate"),
    };
    ClientTls { identity, alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(ServerTrust::Bundle(bundle)) }
}
