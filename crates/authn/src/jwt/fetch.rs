//! Documents of issuers, over HTTPS: bounded in time, in length and in redirects, without any credentials of this server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::quote::go_quote;
use base::TaskGroup;
use bytes::{Bytes, BytesMut};
use client::{ClientConfig, ConfigError, Transport, TransportError, Trust};
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;

/// How long one document may take, redirects included, as upstream.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Far above what an issuer's document or key set is long.
const MAX_BYTES: usize = 1 << 20;
/// As Go's client.
const MAX_REDIRECTS: usize = 10;
/// Servers whose connections are kept. An issuer has one, its keys or distributed claims may be elsewhere.
const MAX_SERVERS: usize = 16;

/// Which of the server's ways to others an issuer is reached by (`egressSelectorType`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Egress {
    /// None in particular.
    #[default]
    Default,
    /// As what belongs to the control plane.
    ControlPlane,
    /// As what runs in the cluster.
    Cluster,
}

impl Egress {
    /// The way that a configuration names.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "controlplane" => Self::ControlPlane,
            "cluster" => Self::Cluster,
            _ => Self::Default,
        }
    }
}

/// Makes ways to the servers of issuers.
pub trait Connector: Send + Sync {
    /// A way to the server at `origin` (`https://host:port`), whose connections live in `tasks`.
    ///
    /// # Errors
    /// When there is none.
    fn connect(
        &self,
        origin: &str,
        trust: &Trust,
        egress: Egress,
        tasks: &TaskGroup,
    ) -> Result<Arc<dyn Transport>, ConfigError>;
}

/// Why there is no document. The texts hold addresses, never what was sent or answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("Get {}: unsupported protocol scheme, only https is asked", go_quote(.0))]
    Scheme(String),
    #[error("parse {}: {}", go_quote(.0), .1)]
    Address(String, String),
    #[error(transparent)]
    Connect(#[from] ConfigError),
    #[error("Get {}: {source}", go_quote(url))]
    Transport { url: String, source: TransportError },
    #[error("Get {}: context deadline exceeded", go_quote(.0))]
    TimedOut(String),
    #[error("Get {}: stopped after {MAX_REDIRECTS} redirects", go_quote(.0))]
    Redirects(String),
    #[error("Get {}: answered by {}", go_quote(.0), .1)]
    Status(String, StatusCode),
    #[error("Get {}: the answer breaks off", go_quote(.0))]
    Broken(String),
    #[error("Get {}: the answer is longer than {MAX_BYTES} bytes", go_quote(.0))]
    TooLong(String),
}

/// Asks the servers of one issuer.
pub(super) struct Fetcher {
    connector: Arc<dyn Connector>,
    trust: Trust,
    egress: Egress,
    agent: HeaderValue,
    tasks: TaskGroup,
    servers: Mutex<HashMap<String, Arc<dyn Transport>>>,
}

/// An address, taken apart.
struct Target {
    origin: String,
    path: Uri,
    /// The address without a query, for messages.
    shown: String,
}

impl Target {
    fn of(uri: &Uri) -> Result<Self, FetchError> {
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let shown = without_query(&uri.to_string());
        if uri.scheme_str() != Some("https") {
            return Err(FetchError::Scheme(shown));
        }
        if authority.is_empty() || authority.contains('@') {
            return Err(FetchError::Address(shown, "no host, or a name and password before it".to_owned()));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(|error: http::uri::InvalidUri| wrong_address(&shown, &error))?;
        Ok(Self { origin: format!("https://{authority}"), path, shown })
    }
}

fn wrong_address(url: &str, error: &dyn std::fmt::Display) -> FetchError {
    FetchError::Address(url.to_owned(), error.to_string())
}

impl Fetcher {
    pub(super) fn new(connector: Arc<dyn Connector>, trust: Trust, egress: Egress, tasks: TaskGroup) -> Self {
        let agent = ClientConfig::for_server("").with_component("kube-apiserver").user_agent;
        let agent = HeaderValue::from_str(&agent).unwrap_or(HeaderValue::from_static("kube-apiserver"));
        Self { connector, trust, egress, agent, tasks, servers: Mutex::default() }
    }

    /// The document at an address; `token` is shown to its server and to no other.
    pub(super) async fn get(&self, url: &str, token: Option<&str>) -> Result<Bytes, FetchError> {
        let whole = self.follow(url, token);
        tokio::time::timeout(TIMEOUT, whole).await.unwrap_or_else(|_| Err(FetchError::TimedOut(without_query(url))))
    }

    async fn follow(&self, url: &str, token: Option<&str>) -> Result<Bytes, FetchError> {
        let shown = without_query(url);
        let mut uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| wrong_address(&shown, &error))?;
        let first = Target::of(&uri)?.origin;
        for _ in 0..=MAX_REDIRECTS {
            let target = Target::of(&uri)?;
            let token = token.filter(|_| target.origin == first);
            let response = self.ask(&target, token).await?;
            let (parts, body) = response.into_parts();
            if let Some(next) = redirect(&uri, parts.status, &parts.headers) {
                uri = next.map_err(|error| wrong_address(&target.shown, &error))?;
                continue;
            }
            if !parts.status.is_success() {
                return Err(FetchError::Status(target.shown, parts.status));
            }
            return read(body, target.shown).await;
        }
        Err(FetchError::Redirects(shown))
    }

    async fn ask(
        &self,
        target: &Target,
        token: Option<&str>,
    ) -> Result<http::Response<component_base::serving::Body>, FetchError> {
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = target.path.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(USER_AGENT, self.agent.clone());
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| FetchError::Address(target.shown.clone(), "its token is no header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let sent = self.server(&target.origin)?.send(request).await;
        sent.map_err(|source| FetchError::Transport { url: target.shown.clone(), source })
    }

    fn server(&self, origin: &str) -> Result<Arc<dyn Transport>, FetchError> {
        let mut servers = self.servers.lock();
        if let Some(known) = servers.get(origin) {
            return Ok(Arc::clone(known));
        }
        if servers.len() >= MAX_SERVERS {
            servers.clear();
        }
        let server = self.connector.connect(origin, &self.trust, self.egress, &self.tasks)?;
        servers.insert(origin.to_owned(), Arc::clone(&server));
        Ok(server)
    }
}

/// An address for messages: what follows its path, or is before its host, may be secret.
pub(super) fn without_query(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = plain.split_once("://") else { return plain.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Where an answer leads, if it leads elsewhere.
fn redirect(from: &Uri, status: StatusCode, headers: &HeaderMap) -> Option<Result<Uri, String>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let next = if location.starts_with('/') && !location.starts_with("//") {
        format!("https://{}{location}", from.authority().map_or("", |own| own.as_str()))
    } else {
        location.to_owned()
    };
    Some(next.parse().map_err(|error: http::uri::InvalidUri| error.to_string()))
}

async fn read(mut body: component_base::serving::Body, shown: String) -> Result<Bytes, FetchError> {
    let mut out = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(FetchError::Broken(shown)) };
        let Ok(data) = frame.into_data() else { continue };
        if out.len() + data.len() > MAX_BYTES {
            return Err(FetchError::TooLong(shown));
        }
        out.extend_from_slice(&data);
    }
    Ok(out.freeze())
}
