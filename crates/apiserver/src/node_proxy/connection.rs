//! Opening connections: TCP to an address that was checked, and TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long TCP may take, as upstream's dialer.
const DIAL_LIMIT: Duration = Duration::from_secs(30);
/// How long TLS may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection.
pub(crate) type Io = Box<dyn Stream>;

/// Where a connection goes.
#[derive(Clone)]
pub(crate) struct Backend {
    /// What was resolved and checked.
    pub(crate) addresses: Vec<SocketAddr>,
    /// `host:port` for the `Host` header and messages.
    pub(crate) authority: String,
    /// TLS and the name to verify; nothing for plain HTTP.
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Backend {
    /// Opens a connection.
    ///
    /// # Errors
    /// The last address's error.
    pub(crate) async fn dial(&self) -> io::Result<Io> {
        let tcp = self.connect().await?;
        let Some((config, name)) = &self.tls else { return Ok(Box::new(tcp)) };
        let connector = TlsConnector::from(Arc::clone(config));
        let handshake = timeout(HANDSHAKE_LIMIT, connector.connect(name.clone(), tcp)).await;
        let stream = handshake.map_err(|_| io::Error::other("net/http: TLS handshake timeout"))??;
        Ok(Box::new(stream))
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::other("no addresses for hostname");
        for address in &self.addresses {
            match timeout(DIAL_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Keystrokes must not wait for an acknowledgement; failure only costs latency.
                    drop(stream.set_nodelay(true));
                    return Ok(stream);
                }
                Ok(Err(error)) => last = io::Error::new(error.kind(), format!("dial tcp {address}: {error}")),
                Err(_) => last = io::Error::other(format!("dial tcp {address}: i/o timeout")),
            }
        }
        Err(last)
    }
}

/// `host:port`, with brackets where the host needs them.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is asked for again could have another answer by then (CVE-2020-8562).
    #[tokio::test]
    async fn what_was_checked_is_dialled_whatever_its_name() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for name in ["nowhere.invalid", "localhost", "192.0.2.1"] {
            let backend = Backend { addresses: vec![address], authority: authority(name, 1), tls: None };
            let (dialled, accepted) = tokio::join!(backend.dial(), listener.accept());
            assert!(dialled.is_ok() && accepted.is_ok(), "{name}");
        }
        let unchecked = Backend { addresses: Vec::new(), authority: authority("localhost", address.port()), tls: None };
        assert!(unchecked.dial().await.is_err(), "without an address that was checked nothing is dialled");
    }
}
