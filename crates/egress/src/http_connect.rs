//! Proxies that are asked for tunnels by HTTP's CONNECT, over TLS or at a socket of this host.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use api_types::apiserver_config_v1::EgressTls;
use base::{Connection, Connector as _, Direct, TaskGroup};
use component_base::http_tunnel::{TunnelError, tunnel};
use component_base::reload::{Reload, spawn_reloader};
use component_base::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTrust, TlsError};
use grpc::UnixSocket;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::metrics::{Failed, Through};

/// How long reaching the proxy may take, TLS included, and then its answer.
const LIMIT: Duration = Duration::from_secs(30);
/// The `Host` header of all requests, as upstream's.
const HOST: &str = "127.0.0.1";

/// Connects through a proxy.
#[derive(Debug)]
pub(crate) struct HttpConnect(pub(crate) Proxy);

/// Where a proxy is.
pub(crate) enum Proxy {
    /// At a port, over TLS.
    Tls { host: String, port: u16, tls: ClientTls, name: ServerName<'static> },
    /// At a socket of this host.
    Socket(UnixSocket),
}

impl Proxy {
    /// One at a port. The certificates are followed.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(crate) fn over_tls(host: &str, port: u16, files: &EgressTls, tasks: &TaskGroup) -> Result<Self, TlsError> {
        let mut followed: Vec<Arc<dyn Reload>> = Vec::new();
        let trust = if files.ca_bundle.is_empty() {
            ServerTrust::Bundle(CaBundle::system().into_shared())
        } else {
            let file = CaFile::load(&files.ca_bundle)?;
            let bundle = file.bundle();
            followed.push(file);
            ServerTrust::Bundle(bundle)
        };
        let identity = if files.client_cert.is_empty() {
            ClientIdentity::none()
        } else {
            let identity = ClientIdentity::load(&files.client_cert, &files.client_key)?;
            followed.push(Arc::clone(&identity) as _);
            identity
        };
        spawn_reloader(tasks, followed);
        let server_name = Some(files.tls_server_name.clone()).filter(|name| !name.is_empty());
        // What goes through the tunnel is agreed on within it.
        let tls = ClientTls { identity, server_name, alpn: Vec::new(), ..ClientTls::new(trust) };
        let name = tls.name_for(host)?;
        Ok(Self::Tls { host: host.to_owned(), port, tls, name })
    }

    async fn connect(&self) -> io::Result<Connection> {
        match self {
            Self::Socket(socket) => Ok(Box::new(socket.connect().await?)),
            Self::Tls { host, port, tls, name } => {
                let tcp = Direct.connect(host, *port).await?;
                let connector = TlsConnector::from(tls.config().map_err(io::Error::other)?);
                Ok(Box::new(connector.connect(name.clone(), tcp).await?))
            }
        }
    }
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(socket) => write!(formatter, "{socket}"),
            Self::Tls { host, port, .. } => formatter.write_str(&base::host_and_port(host, *port)),
        }
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Proxy({self})")
    }
}

impl Through for HttpConnect {
    async fn through(&self, address: String) -> Result<Connection, Failed> {
        let proxy = &self.0;
        let dial = |why: &dyn std::fmt::Display| format!("dial {proxy}: {why}");
        let stream = match timeout(LIMIT, proxy.connect()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Failed::connecting(io::Error::new(error.kind(), dial(&error)))),
            Err(_) => return Err(Failed::connecting(io::Error::other(dial(&"i/o timeout")))),
        };
        let unread = |why: &dyn std::fmt::Display| {
            Failed::proxying(format!("reading HTTP response from CONNECT to {address} via proxy {proxy} failed: {why}"))
        };
        match timeout(LIMIT, tunnel(stream, &address, HOST, None)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(TunnelError::Refused { code, status })) => Err(Failed::proxying(format!(
                "proxy error from {proxy} while dialing {address}, code {code}: {status}"
            ))),
            Ok(Err(error)) => Err(unread(&error)),
            Err(_) => Err(unread(&"i/o timeout")),
        }
    }
}
