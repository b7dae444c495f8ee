//! Opening a connection: TCP, a proxy in between where one is set, and TLS.

use std::sync::Arc;
use std::time::Duration;

use base::{Connection, SharedConnector, host_and_port};
use component_base::tls::{ClientTls, TlsError};
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::TransportError;
use super::proxy::Proxy;

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
    proxy: Option<Proxy>,
    /// Whether the proxy passes requests on, so that the connection ends there.
    passes_on: bool,
    connector: SharedConnector,
}

/// How one server is spoken to in TLS.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Speaks to `host`, or to whatever name `tls` says instead.
    pub(super) fn new(tls: &ClientTls, host: &str) -> Result<Self, TlsError> {
        Ok(Self { connector: TlsConnector::from(tls.config()?), name: tls.name_for(host)? })
    }

    /// Opens TLS on a connection to `address`, which is for messages.
    pub(super) async fn handshake(
        &self,
        stream: Connection,
        address: &str,
    ) -> Result<TlsStream<Connection>, TransportError> {
        match timeout(HANDSHAKE_TIMEOUT, self.connector.connect(self.name.clone(), stream)).await {
            Err(_) => Err(TransportError::Timeout(format!("net/http: TLS handshake timeout: {address}"))),
            Ok(Err(source)) => Err(TransportError::Handshake { address: address.to_owned(), source }),
            Ok(Ok(stream)) => Ok(stream),
        }
    }
}

impl Dialer {
    /// A dialer to `host`; without `tls` it speaks plain HTTP/1.1.
    pub(super) fn new(
        host: &str,
        port: u16,
        tls: Option<&ClientTls>,
        connector: SharedConnector,
    ) -> Result<Self, TlsError> {
        let tls = tls.map(|tls| Tls::new(tls, host)).transpose()?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, tls, connect_to: None, proxy: None, passes_on: false, connector })
    }

    /// The same, with connections that go elsewhere than the name says.
    pub(super) fn connecting_to(self, connect_to: Option<(String, u16)>) -> Self {
        Self { connect_to, ..self }
    }

    /// The same through a proxy, which knows the server by its name alone.
    pub(super) fn through(self, proxy: Option<Proxy>, passes_on: bool) -> Self {
        Self { proxy, passes_on, ..self }
    }

    /// Host and port, for messages.
    pub(crate) fn address(&self) -> String {
        host_and_port(&self.host, self.port)
    }

    pub(crate) async fn dial(&self) -> Result<Dialed, TransportError> {
        let stream = match &self.proxy {
            None => {
                let own = (self.host.as_str(), self.port);
                let (host, port) = self.connect_to.as_ref().map_or(own, |(host, port)| (host, *port));
                self.connect(host, port).await?
            }
            Some(proxy) => {
                let stream = self.connect(&proxy.url.host, proxy.url.port).await?;
                proxy.lead(stream, &self.host, self.port, self.passes_on).await?
            }
        };
        let Some(tls) = &self.tls else { return Ok(Dialed { stream, http2: false }) };
        let stream = tls.handshake(stream, &self.address()).await?;
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
}

/// The dialer of a transport, shared with the dials that are under way.
pub(crate) type SharedDialer = Arc<Dialer>;
