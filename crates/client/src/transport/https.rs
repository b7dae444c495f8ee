//! The transport of real clusters: HTTPS with HTTP/2 where the server has it, over few long-lived connections.

use std::sync::Arc;

use base::{Direct, SharedConnector, TaskGroup};
use bytes::Bytes;
use component_base::reload::{RELOAD_INTERVAL, Reload};
use component_base::tls::{CaBundle, CaFile, ClientIdentity, ClientTls, ServerTrust};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri, Version, header};
use http_body_util::Full;

use super::dial::Dialer;
use super::pool::Pool;
use super::{Body, Transport, TransportError, connection};
use crate::client::ClientCx;
use crate::config::{CertSource, ClientConfig, ConfigError, Trust};
use crate::features::Features;

/// How often a request is sent again when it is certain that it was not sent, on a new connection each time.
const MAX_UNSENT: usize = 3;

/// A transport to one server.
pub struct HttpsTransport {
    server: String,
    scheme: Scheme,
    authority: Authority,
    pool: Arc<Pool>,
}

impl HttpsTransport {
    /// A transport as `config` asks for; its connections and its reloader live in `tasks`.
    ///
    /// # Errors
    /// When the server is not a URL, or a certificate, a key or a CA bundle cannot be used.
    pub fn new(config: &ClientConfig, tasks: &TaskGroup) -> Result<Arc<Self>, ConfigError> {
        Self::through(config, Direct::shared(), tasks)
    }

    /// The same over connections that another opens.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn through(
        config: &ClientConfig,
        connector: SharedConnector,
        tasks: &TaskGroup,
    ) -> Result<Arc<Self>, ConfigError> {
        Self::build(config, connector, Features::default(), tasks)
    }

    /// The same as a process has it: over its connections, by its gates.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of(config: &ClientConfig, cx: &ClientCx) -> Result<Arc<Self>, ConfigError> {
        Self::build(config, Arc::clone(&cx.connector), cx.features, &cx.tasks)
    }

    fn build(
        config: &ClientConfig,
        connector: SharedConnector,
        features: Features,
        tasks: &TaskGroup,
    ) -> Result<Arc<Self>, ConfigError> {
        let endpoint = config.endpoint()?;
        let mut watched: Vec<Arc<dyn Reload>> = Vec::new();
        let tls = if endpoint.secure { Some(client_tls(config, features, &mut watched)?) } else { None };
        let proxy = config.proxy_address()?;
        let dialer = Dialer::new(&endpoint.host, endpoint.port, tls.as_ref(), proxy, connector);
        let dialer = dialer.map_err(ConfigError::Tls)?;
        let dialer = dialer.connecting_to(config.connect_to.clone());
        let invalid = |error: http::uri::InvalidUri| ConfigError::Server(config.server.clone(), error.to_string());
        let authority = dialer.address().parse().map_err(invalid)?;
        let pool = Arc::new(Pool::new(dialer, tasks.clone()));
        if let Some(tls) = tls {
            watch_files(tasks, watched, tls.identity, &pool);
        }
        let scheme = if endpoint.secure { Scheme::HTTPS } else { Scheme::HTTP };
        Ok(Arc::new(Self { server: format!("{scheme}://{authority}"), scheme, authority, pool }))
    }

    /// Ends all connections; later requests open new ones.
    pub fn reset(&self) {
        self.pool.reset();
    }

    /// HTTP/2 wants the full URI; HTTP/1.1 wants the path and a `Host` header.
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
            (uri.scheme, uri.authority) = (None, None);
            parts.version = Version::HTTP_11;
            let host = HeaderValue::from_str(self.authority.as_str());
            parts.headers.insert(header::HOST, host.map_err(|error| TransportError::Invalid(error.to_string()))?);
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

/// Follows the files, and closes the connections when the client's own certificate has changed, whoever changed it.
fn watch_files(tasks: &TaskGroup, watched: Vec<Arc<dyn Reload>>, identity: Arc<ClientIdentity>, pool: &Arc<Pool>) {
    let pool = Arc::downgrade(pool);
    let mut chain = identity.chain();
    tasks.spawn_cancellable("client-certificate-reloader", async move {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let Some(pool) = pool.upgrade() else { return };
            for file in &watched {
                if let Err(error) = file.reload() {
                    tracing::error!(%error, file = %file.describe(), "Reading again failed, keeping the former content");
                }
            }
            if identity.chain() != chain {
                chain = identity.chain();
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
