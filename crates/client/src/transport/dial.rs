//! Opening a connection: TCP, an HTTP proxy in between where one is set, and TLS.

use std::sync::Arc;
use std::time::Duration;

use base::{Connection, SharedConnector, host_and_port};
use component_base::http_tunnel::{TunnelError, tunnel};
use component_base::tls::{ClientTls, TlsError};
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::TransportError;

/// How long TCP may take, as upstream's dialer.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long TLS may take, as upstream's transport.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that is ready for HTTP.
pub(crate) struct Dialed {
    pub(crate) stream: Connection,
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
    connector: SharedConnector,
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
        connector: SharedConnector,
    ) -> Result<Self, TlsError> {
        let tls = match tls {
            Some(tls) => {
                let connector = TlsConnector::from(tls.config()?);
                Some(Tls { connector, name: tls.name_for(host)? })
            }
            None => None,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, tls, connect_to: None, proxy, connector })
    }

    /// The same, with connections that go elsewhere than the name says.
    pub(crate) fn connecting_to(self, connect_to: Option<(String, u16)>) -> Self {
        Self { connect_to, ..self }
    }

    /// Host and port, for messages.
    pub(crate) fn address(&self) -> String {
        host_and_port(&self.host, self.port)
    }

    pub(crate) async fn dial(&self) -> Result<Dialed, TransportError> {
        let tcp = match &self.proxy {
            None => {
                let own = (self.host.as_str(), self.port);
                let (host, port) = self.connect_to.as_ref().map_or(own, |(host, port)| (host, *port));
                self.connect(host, port).await?
            }
            Some((host, port)) => {
                let tcp = self.connect(host, *port).await?;
                self.through(tcp, host_and_port(host, *port)).await?
            }
        };
        let Some(tls) = &self.tls else { return Ok(Dialed { stream: tcp, http2: false }) };
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

    async fn connect(&self, host: &str, port: u16) -> Result<Connection, TransportError> {
        let address = host_and_port(host, port);
        match timeout(DIAL_TIMEOUT, self.connector.connect(host, port)).await {
            Err(_) => Err(TransportError::Timeout(format!("dial tcp {address}"))),
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(source)) if self.connector.is_direct() => Err(TransportError::Dial { address, source }),
            Ok(Err(source)) => Err(TransportError::Elsewhere(source)),
        }
    }

    /// A tunnel through an HTTP proxy to the server.
    async fn through(&self, stream: Connection, proxy: String) -> Result<Connection, TransportError> {
        let target = self.address();
        match timeout(HANDSHAKE_TIMEOUT, tunnel(stream, &target, &target)).await {
            Err(_) => Err(TransportError::Timeout(format!("proxy {proxy}"))),
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(TunnelError::Refused { status, .. })) => Err(TransportError::Proxy { proxy, reason: status }),
            Ok(Err(error)) => Err(TransportError::Proxy { proxy, reason: error.to_string() }),
        }
    }
}

/// The dialer of a transport, shared with the dials that are under way.
pub(crate) type SharedDialer = Arc<Dialer>;
