//! Opening connections to where it was found that they may lead, and TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::{Connection, SharedConnector, host_and_port};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long TCP may take, as upstream's dialer.
const DIAL_LIMIT: Duration = Duration::from_secs(30);
/// How long TLS may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Where a connection goes.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) way: Way,
    /// `host:port` for the `Host` header and messages.
    pub(crate) authority: String,
    /// TLS and the name to verify; nothing for plain HTTP.
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// The way to a port of a host, which was checked.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// Who connects.
    pub(crate) connector: SharedConnector,
    /// What is tried in turn: addresses, or a name where whoever connects knows what it means.
    pub(crate) places: Vec<(String, u16)>,
}

impl Backend {
    /// Opens a connection.
    ///
    /// # Errors
    /// The last address's error.
    pub(crate) async fn dial(&self) -> io::Result<Connection> {
        let tcp = self.way.connect().await?;
        let Some((config, name)) = &self.tls else { return Ok(tcp) };
        let connector = TlsConnector::from(Arc::clone(config));
        let handshake = timeout(HANDSHAKE_LIMIT, connector.connect(name.clone(), tcp)).await;
        let stream = handshake.map_err(|_| io::Error::other("net/http: TLS handshake timeout"))??;
        Ok(Box::new(stream))
    }
}

impl Way {
    async fn connect(&self) -> io::Result<Connection> {
        let mut last = io::Error::other("no addresses for hostname");
        for (host, port) in &self.places {
            let address = || host_and_port(host, *port);
            match timeout(DIAL_LIMIT, self.connector.connect(host, *port)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) if self.connector.is_direct() => {
                    last = io::Error::new(error.kind(), format!("dial tcp {}: {error}", address()));
                }
                // Whoever connects says what it could not do.
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::other(format!("dial tcp {}: i/o timeout", address())),
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    use base::Direct;

    use super::*;

    /// A name that is asked for again could have another answer by then (CVE-2020-8562).
    #[tokio::test]
    async fn what_was_checked_is_dialled_whatever_its_name() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let leading_to = |places, name: &str, port| Backend {
            way: Way { connector: Direct::shared(), places },
            authority: host_and_port(name, port),
            tls: None,
        };
        for name in ["nowhere.invalid", "localhost", "192.0.2.1"] {
            let backend = leading_to(vec![(address.ip().to_string(), address.port())], name, 1);
            let (dialled, accepted) = tokio::join!(backend.dial(), listener.accept());
            assert!(dialled.is_ok() && accepted.is_ok(), "{name}");
        }
        let unchecked = leading_to(Vec::new(), "localhost", address.port());
        assert!(unchecked.dial().await.is_err(), "without an address that was checked nothing is dialled");
    }
}
