//! The transport of real clusters: HTTPS with HTTP/2 where the server has it, over few long-lived connections.

use std::sync::Arc;

use base::TaskGroup;
use bytes::Bytes;
use component_base::reload::{RELOAD_INTERVAL, Reload};
use component_base::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTrust, TlsError};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri, Version, header};
use http_body_util::Full;

use super::dial::{Dialer, Tls};
use super::pool::Pool;
use super::proxy::{self, Forwarded, Proxy, ProxyScheme};
use super::{Body, Transport, TransportError, connection};
use crate::config::{CertSource, ClientConfig, ConfigError, Trust};
use crate::cx::ClientCx;
use crate::exec::Authenticator;
use crate::features::Features;

/// How often a request is sent again when it is certain that it was not sent, on a new connection each time.
const MAX_UNSENT: usize = 3;

/// A transport to one server.
pub struct HttpsTransport {
    server: String,
    scheme: Scheme,
    authority: Authority,
    pool: Arc<Pool>,
    /// How requests go that a proxy passes on.
    forwarded: Option<Forwarded>,
    /// Held so that all clients of this transport ask the plugin whose certificate it shows.
    _plugin: Option<Arc<Authenticator>>,
}

impl HttpsTransport {
    /// A transport as `config` asks for, over the process's connections and by its gates; its connections and its reloader
    /// live in the process's tasks.
    ///
    /// # Errors
    /// When the server or the proxy is not a URL, or a certificate, a key or a CA bundle cannot be used.
    pub fn of(config: &ClientConfig, cx: &ClientCx) -> Result<Arc<Self>, ConfigError> {
        let endpoint = config.endpoint()?;
        let proxy = proxy::choose(config, &endpoint, cx.proxies())?;
        let is_encrypted = |proxy: &proxy::ProxyUrl| proxy.scheme == ProxyScheme::Https;
        let plugin = cx.authenticator(config);
        let mut watched: Vec<Arc<dyn Reload>> = Vec::new();
        let mut tls = None;
        if endpoint.secure || proxy.as_ref().is_some_and(is_encrypted) {
            let mut own = client_tls(config, cx.features, &mut watched)?;
            if let Some(plugin) = &plugin {
                own.identity = Arc::clone(plugin.identity());
            }
            tls = Some(own);
        }
        let forwarded = proxy::forwarded(&endpoint, proxy.as_ref());
        let to_server = tls.as_ref().filter(|_| endpoint.secure);
        let connector = Arc::clone(&cx.connector);
        let dialer = Dialer::new(&endpoint.host, endpoint.port, to_server, connector).map_err(ConfigError::Tls)?;
        let proxy = proxy.map(|url| Ok(Proxy { tls: proxy_tls(&url, tls.as_ref())?, url })).transpose();
        let proxy = proxy.map_err(ConfigError::Tls)?;
        let dialer = dialer.connecting_to(config.connect_to.clone()).through(proxy, forwarded.is_some());
        let invalid = |error: http::uri::InvalidUri| ConfigError::Server(config.server.clone(), error.to_string());
        let authority = dialer.address().parse().map_err(invalid)?;
        let pool = Arc::new(Pool::new(dialer, cx.tasks.clone()));
        if let Some(plugin) = &plugin {
            plugin.follow(&pool);
        }
        if let Some(tls) = tls {
            // A plugin has connections closed by itself.
            watch_files(&cx.tasks, watched, plugin.is_none().then_some(tls.identity), &pool);
        }
        let scheme = if endpoint.secure { Scheme::HTTPS } else { Scheme::HTTP };
        let server = format!("{scheme}://{authority}");
        Ok(Arc::new(Self { server, scheme, authority, pool, forwarded, _plugin: plugin }))
    }

    /// Ends all connections; later requests open new ones.
    pub fn reset(&self) {
        self.pool.reset();
    }

    /// HTTP/2 wants the full URI; HTTP/1.1 wants the path and a `Host` header, and the full URI, too, where a proxy passes the
    /// request on.
    fn address(
        &self,
        request: http::Request<Full<Bytes>>,
        sender: &connection::Sender,
    ) -> Result<http::Request<Full<Bytes>>, TransportError> {
        let (mut parts, body) = request.into_parts();
        let mut uri = parts.uri.into_parts();
        if matches!(sender, connection::Sender::Many(_)) {
            uri.scheme = Some(self.scheme.clone());
            uri.authority = Some(self.authority.clone());
            parts.version = Version::HTTP_2;
            parts.headers.remove(header::HOST);
        } else {
            (uri.scheme, uri.authority) = match &self.forwarded {
                Some(_) => (Some(self.scheme.clone()), Some(self.authority.clone())),
                None => (None, None),
            };
            parts.version = Version::HTTP_11;
            let host = HeaderValue::from_str(self.authority.as_str());
            parts.headers.insert(header::HOST, host.map_err(|error| TransportError::Invalid(error.to_string()))?);
            if let Some(authorization) = self.forwarded.as_ref().and_then(|own| own.authorization.clone()) {
                parts.headers.insert(header::PROXY_AUTHORIZATION, authorization);
            }
        }
        parts.uri = Uri::from_parts(uri).map_err(|error| TransportError::Invalid(error.to_string()))?;
        Ok(http::Request::from_parts(parts, body))
    }
}

#[async_trait::async_trait]
impl Transport for HttpsTransport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let mut request = request.map(Full::new);
        for _ in 0..MAX_UNSENT {
            let sender = self.pool.take().await?;
            let addressed = self.address(request, &sender)?;
            match connection::exchange(sender, addressed, &self.pool).await {
                Ok(response) => return Ok(response),
                Err(connection::Unsent { request: Some(again), .. }) => request = again,
                Err(connection::Unsent { error, .. }) => return Err(error),
            }
        }
        Err(TransportError::NotSent)
    }

    fn server(&self) -> &str {
        &self.server
    }
}

/// Builds the TLS side of a configuration; `watched` gets what follows files.
fn client_tls(
    config: &ClientConfig,
    features: Features,
    watched: &mut Vec<Arc<dyn Reload>>,
) -> Result<ClientTls, ConfigError> {
    let trust = match &config.trust {
        Trust::Insecure => ServerTrust::Anyone,
        Trust::System => ServerTrust::Bundle(CaBundle::system().into_shared()),
        Trust::Pem(pem) => {
            let bundle = CaBundle::from_pem("certificate-authority-data", pem).map_err(ConfigError::Tls)?;
            ServerTrust::Bundle(bundle.into_shared())
        }
        Trust::File(path) => {
            let file = CaFile::load(path).map_err(ConfigError::Tls)?;
            let bundle = file.bundle();
            if features.follows_ca {
                watched.push(file);
            }
            ServerTrust::Bundle(bundle)
        }
    };
    let identity = match &config.identity {
        CertSource::None => ClientIdentity::none(),
        CertSource::Pem { cert, key } => ClientIdentity::from_pem(cert, key).map_err(ConfigError::Tls)?,
        CertSource::Files { cert, key } => {
            let identity = ClientIdentity::load(cert, key).map_err(ConfigError::Tls)?;
            watched.push(Arc::<ClientIdentity>::clone(&identity));
            identity
        }
        CertSource::Shared(identity) => Arc::clone(identity),
    };
    let server_name = Some(config.server_name.clone()).filter(|name| !name.is_empty());
    Ok(ClientTls { identity, server_name, ..ClientTls::new(trust) })
}

/// How a proxy is spoken to that wants TLS: as upstream, whoever the client trusts may vouch for it, and the client shows it
/// the same certificate. What goes through is agreed on with the server.
fn proxy_tls(url: &proxy::ProxyUrl, tls: Option<&ClientTls>) -> Result<Option<Tls>, TlsError> {
    let Some(tls) = tls.filter(|_| url.scheme == ProxyScheme::Https) else { return Ok(None) };
    Tls::new(&ClientTls { alpn: Vec::new(), server_name: None, ..tls.clone() }, &url.host).map(Some)
}

/// Follows the files, and closes the connections when the client's own certificate has changed, whoever changed it.
fn watch_files(
    tasks: &TaskGroup,
    watched: Vec<Arc<dyn Reload>>,
    identity: Option<Arc<ClientIdentity>>,
    pool: &Arc<Pool>,
) {
    let pool = Arc::downgrade(pool);
    let chain_now = move || identity.as_ref().map(|identity| identity.chain());
    let mut chain = chain_now();
    tasks.spawn_cancellable("client-certificate-reloader", async move {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let Some(pool) = pool.upgrade() else { return };
            for file in &watched {
                if let Err(error) = file.reload() {
                    tracing::error!(%error, file = %file.describe(), "Reading again failed, keeping the former content");
                }
            }
            let now = chain_now();
            if now != chain {
                chain = now;
                tracing::info!("Client certificate changed, closing connections made with the former one");
                pool.reset();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use component_base::Gates;

    use super::*;
    use crate::features::CA_ROTATION;

    #[test]
    fn an_authority_in_a_file_is_followed_unless_that_is_off() {
        let authority = || rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.crt");
        for follows in [true, false] {
            std::fs::write(&path, authority().pem()).unwrap();
            let mut config = ClientConfig::for_server("https://localhost");
            config.trust = Trust::File(path.clone());
            let features = Features::by(&Gates::default().with(CA_ROTATION, follows));
            let mut watched = Vec::new();
            let ServerTrust::Bundle(bundle) = client_tls(&config, features, &mut watched).unwrap().trust else {
                panic!("there is a bundle")
            };
            let next = authority();
            std::fs::write(&path, next.pem()).unwrap();
            watched.iter().for_each(|file| assert!(file.reload().unwrap()));
            assert_eq!(bundle.load().contains(next.der()), follows);
        }
    }
}
