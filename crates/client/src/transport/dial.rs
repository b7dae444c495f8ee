//! Opening a connection: TCP, an HTTP proxy in between where one is set, and TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use component_base::tls::{ClientTls, TlsError};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::TransportError;

/// How long TCP may take, as upstream's dialer.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long TLS may take, as upstream's transport.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A proxy's answer to CONNECT is a status line and a few headers.
const PROXY_ANSWER_LIMIT: usize = 8 * 1024;

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is ready for HTTP.
pub(crate) struct Dialed {
    pub(crate) stream: Box<dyn Stream>,
    /// Whether both sides agreed on HTTP/2.
    pub(crate) http2: bool,
}

/// Where connections go and how.
pub(crate) struct Dialer {
    host: String,
    port: u16,
    tls: Option<Tls>,
    /// Where connections go instead.
    connect_to: Option<(String, u16)>,
    proxy: Option<(String, u16)>,
}

struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Dialer {
    /// A dialer to `host`; without `tls` it speaks plain HTTP/1.1.
    pub(crate) fn new(
        host: &str,
        port: u16,
        tls: Option<&ClientTls>,
        proxy: Option<(String, u16)>,
    ) -> Result<Self, TlsError> {
        let tls = match tls {
            Some(tls) => {
                let connector = TlsConnector::from(tls.config()?);
                Some(Tls { connector, name: tls.name_for(host)? })
            }
            None => None,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, tls, connect_to: None, proxy })
    }

    /// The same, with connections that go elsewhere than the name says.
    pub(crate) fn connecting_to(self, connect_to: Option<(String, u16)>) -> Self {
        Self { connect_to, ..self }
    }

    /// Host and port, for messages.
    pub(crate) fn address(&self) -> String {
        join_host_port(&self.host, self.port)
    }

    pub(crate) async fn dial(&self) -> Result<Dialed, TransportError> {
        let tcp = match &self.proxy {
            None => {
                let own = (self.host.as_str(), self.port);
                let (host, port) = self.connect_to.as_ref().map_or(own, |(host, port)| (host, *port));
                connect(host, port).await?
            }
            Some((host, port)) => {
                let tcp = connect(host, *port).await?;
                tunnel(tcp, &join_host_port(host, *port), &self.address()).await?
            }
        };
        let Some(tls) = &self.tls else { return Ok(Dialed { stream: Box::new(tcp), http2: false }) };
        let address = self.address();
        let handshake = timeout(HANDSHAKE_TIMEOUT, tls.connector.connect(tls.name.clone(), tcp)).await;
        let stream = match handshake {
            Err(_) => return Err(TransportError::Timeout(format!("net/http: TLS handshake timeout: {address}"))),
            Ok(Err(source)) => return Err(TransportError::Handshake { address, source }),
            Ok(Ok(stream)) => stream,
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Dialed { stream: Box::new(stream), http2 })
    }
}

fn join_host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, TransportError> {
    let address = join_host_port(host, port);
    match timeout(DIAL_TIMEOUT, TcpStream::connect((host, port))).await {
        Err(_) => Err(TransportError::Timeout(format!("dial tcp {address}"))),
        Ok(Err(source)) => Err(TransportError::Dial { address, source }),
        Ok(Ok(stream)) => {
            // Small requests must not wait for an acknowledgement; failure only costs latency.
            drop(stream.set_nodelay(true));
            Ok(stream)
        }
    }
}

/// Asks an HTTP proxy for a tunnel to `target`.
async fn tunnel(mut stream: TcpStream, proxy: &str, target: &str) -> Result<TcpStream, TransportError> {
    let refused = |reason: String| TransportError::Proxy { proxy: proxy.to_owned(), reason };
    let exchange = async {
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= PROXY_ANSWER_LIMIT {
                return Err(io::Error::other("answer too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = match timeout(HANDSHAKE_TIMEOUT, exchange).await {
        Err(_) => return Err(TransportError::Timeout(format!("proxy {proxy}"))),
        Ok(Err(error)) => return Err(refused(error.to_string())),
        Ok(Ok(answer)) => answer,
    };
    let status = answer.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") { Ok(stream) } else { Err(refused(status.to_owned())) }
}

/// The dialer of a transport, shared with the dials that are under way.
pub(crate) type SharedDialer = Arc<Dialer>;
