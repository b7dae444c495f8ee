//! What a client needs to reach its server: address, trust, credentials, limits. Made from a kubeconfig file, from
//! what a pod finds in its container, or by hand.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use component_base::logging::Redacted;
use component_base::tls::{ClientIdentity, TlsError};
use component_base::version::user_agent;
use http::Uri;

use crate::exec::ExecPlugin;

/// Requests per second of a client that does not say otherwise, as upstream's library.
pub const DEFAULT_QPS: f64 = 5.0;
/// Burst of a client that does not say otherwise, as upstream's library.
pub const DEFAULT_BURST: u32 = 10;

/// The largest answer that is read unless a client says otherwise. A list of a large cluster is paged well below.
const DEFAULT_MAX_ANSWER_BYTES: usize = 1 << 30;

/// Whose certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// The machine's authorities.
    #[default]
    System,
    /// This bundle, in PEM form.
    Pem(Vec<u8>),
    /// The bundle in this file, which is followed.
    File(PathBuf),
    /// Anybody's (`insecure-skip-tls-verify`).
    Insecure,
}

/// The client certificate.
#[derive(Debug, Clone, Default)]
pub enum CertSource {
    /// None.
    #[default]
    None,
    /// A pair in PEM form.
    Pem {
        /// The chain, leaf first.
        cert: Vec<u8>,
        /// The private key.
        key: Vec<u8>,
    },
    /// A pair of files, which are followed.
    Files {
        /// The chain, leaf first.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// A pair that somebody else replaces, as the kubelet's certificate rotation does.
    Shared(Arc<ClientIdentity>),
}

/// What goes into the `Authorization` header.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// A bearer token.
    Token(String),
    /// A bearer token in a file that is read again every minute.
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What is sent until the file could be read; empty for nothing.
        first: String,
    },
    /// A name and a password.
    Basic {
        /// The user's name.
        username: String,
        /// The password.
        password: String,
    },
    /// What a program says, unless there is a client certificate.
    Plugin(Arc<ExecPlugin>),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(REDACTED)",
            Self::TokenFile { .. } => "TokenFile",
            Self::Basic { .. } => "Basic(REDACTED)",
            Self::Plugin(_) => "Plugin",
        })
    }
}

/// Whom to act as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// The user; empty for no impersonation.
    pub user: String,
    /// The user's uid.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The encoding that built-in kinds are exchanged in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContentType {
    /// Protobuf, with JSON for what has no protobuf form.
    #[default]
    Protobuf,
    /// JSON.
    Json,
}

/// Everything about a client but its process.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server: a URL, or a host with or without a port. A path in it is put in front of every request's.
    pub server: String,
    /// Whose certificates are trusted.
    pub trust: Trust,
    /// The name to verify instead of the host's; empty for the host's.
    pub server_name: String,
    /// The client certificate.
    pub identity: CertSource,
    /// What goes into the `Authorization` header.
    pub credentials: Credentials,
    /// Whom to act as.
    pub impersonate: Impersonation,
    /// Where connections go instead of to the server's own address, which requests and certificates still name.
    pub connect_to: Option<(String, u16)>,
    /// The proxy to go through, as a URL of scheme `http`, `https` or `socks5`, perhaps with a name and a password; empty for
    /// what the environment of the process says.
    pub proxy_url: Redacted<String>,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Requests per second; negative for no limit.
    pub qps: f64,
    /// How many requests may go at once above `qps`.
    pub burst: u32,
    /// The longest a request may take, retries included; nothing for the library's default.
    pub timeout: Option<Duration>,
    /// The largest answer that is read.
    pub max_answer_bytes: usize,
    /// The encoding of built-in kinds.
    pub content: ContentType,
    /// The namespace that the configuration points at, `default` where it says nothing.
    pub namespace: String,
}

impl ClientConfig {
    /// A configuration for a server, with the library's defaults and no credentials.
    #[must_use]
    pub fn for_server(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            trust: Trust::System,
            server_name: String::new(),
            identity: CertSource::None,
            credentials: Credentials::None,
            impersonate: Impersonation::default(),
            connect_to: None,
            proxy_url: Redacted::default(),
            user_agent: user_agent("unknown"),
            qps: DEFAULT_QPS,
            burst: DEFAULT_BURST,
            timeout: None,
            max_answer_bytes: DEFAULT_MAX_ANSWER_BYTES,
            content: ContentType::Protobuf,
            namespace: "default".to_owned(),
        }
    }

    /// The same with the agent `{component}/{version} ...`.
    #[must_use]
    pub fn with_component(mut self, component: &str) -> Self {
        self.user_agent = user_agent(component);
        self
    }

    /// The same with `/{suffix}` behind the agent, as upstream marks what part of a component asks.
    #[must_use]
    pub fn with_user_agent_suffix(mut self, suffix: &str) -> Self {
        self.user_agent = format!("{}/{suffix}", self.user_agent);
        self
    }

    /// The same with another rate limit; negative for none.
    #[must_use]
    pub fn with_rate(mut self, qps: f64, burst: u32) -> Self {
        (self.qps, self.burst) = (qps, burst);
        self
    }

    /// The same with a limit for each request.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The server's address, taken apart.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, ConfigError> {
        let invalid = |why: &str| ConfigError::Server(self.server.clone(), why.to_owned());
        let has_scheme = self.server.contains("://");
        // As upstream: without a scheme, TLS settings decide.
        let secure_default = self.trust != Trust::System || !matches!(self.identity, CertSource::None);
        let scheme = if secure_default { "https" } else { "http" };
        let text = if has_scheme { self.server.clone() } else { format!("{scheme}://{}", self.server) };
        let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| invalid(&error.to_string()))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid("the scheme must be http or https")),
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| invalid("host must be a URL or a host:port pair"))?;
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Endpoint { secure, host: host.to_owned(), port, prefix })
    }

    /// The plugin that is asked who the client is: only where no certificate says it, as upstream has it.
    pub(crate) fn plugin(&self) -> Option<&ExecPlugin> {
        match (&self.credentials, &self.identity) {
            (Credentials::Plugin(plugin), CertSource::None) => Some(plugin),
            _ => None,
        }
    }
}

/// A server's address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path in front of every request's, without a slash at its end.
    pub(crate) prefix: String,
}

/// Why there is no usable configuration; the texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("{}", unread(.path, .source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be understood.
    #[error("error loading config file \"{path}\": {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        reason: crate::kubeconfig::ParseError,
    },
    /// A file is well formed but says something impossible.
    #[error("invalid configuration: {}", joined(.0))]
    Invalid(Vec<String>),
    /// A context, cluster or user was asked for that is not there.
    #[error("{0}")]
    Missing(String),
    /// The process does not run in a pod.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// The file with the token could not be read.
    #[error("open {path}: {}", system_text(.source))]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The server is not an address.
    #[error("invalid server {0:?}: {1}")]
    Server(String, String),
    /// The configuration's proxy cannot be used.
    #[error("invalid proxy-url: {0}")]
    Proxy(String),
    /// The environment's proxy cannot be used.
    #[error("invalid proxy in the environment: {0}")]
    EnvironmentProxy(String),
    /// A credential plugin's settings cannot be used.
    #[error("{0}")]
    Plugin(String),
    /// An auth provider was asked for; there are none.
    #[error("no Auth Provider found for name {0:?}")]
    AuthProvider(String),
    /// A certificate, a key or a bundle cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Of a file that is not there the look at it is told, of any other the step that failed.
fn unread(path: &Path, error: &io::Error) -> String {
    let (file, why) = (path.display(), system_text(error));
    match error.kind() {
        io::ErrorKind::NotFound => format!("stat {file}: {why}"),
        io::ErrorKind::IsADirectory => format!("error loading config file \"{file}\": read {file}: {why}"),
        _ => format!("error loading config file \"{file}\": open {file}: {why}"),
    }
}

/// What the system said of a file, in upstream's words: without the number, and in lower case.
pub(crate) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let Some(number) = error.raw_os_error() else { return text };
    let mut text = text.trim_end_matches(&format!(" (os error {number})")).to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}

fn joined(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_urls_or_hosts() {
        let cases = [
            ("https://10.0.0.1:6443", true, "10.0.0.1", 6443, ""),
            ("https://[::1]/prefix/", true, "[::1]", 443, "/prefix"),
            ("localhost:8080", false, "localhost", 8080, ""),
        ];
        for (server, secure, host, port, prefix) in cases {
            let endpoint = ClientConfig::for_server(server).endpoint().unwrap();
            let expected = Endpoint { secure, host: host.into(), port, prefix: prefix.into() };
            assert_eq!(endpoint, expected, "{server}");
        }
        assert!(ClientConfig::for_server("ftp://x").endpoint().is_err());
        assert!(ClientConfig::for_server("").endpoint().is_err());
    }

    #[test]
    fn several_problems_are_listed_in_brackets() {
        let error = ConfigError::Invalid(vec!["a".into(), "b".into()]);
        assert_eq!(error.to_string(), "invalid configuration: [a, b]");
        assert_eq!(ConfigError::Invalid(vec!["a".into()]).to_string(), "invalid configuration: a");
    }

    #[test]
    fn tokens_are_not_printed() {
        assert!(!format!("{:?}", Credentials::Token("secret".into())).contains("secret"));
    }
}
