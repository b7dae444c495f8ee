//! Why a server does not start.

use std::path::{Path, PathBuf};

use component_base::health::Installed;
use component_base::reload::ReloadError;
use component_base::serving::ServeError;
use component_base::tls::TlsError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file could not be read.
    #[error("open {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file holds no key.
    #[error("{path}: {source}")]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pki::KeyError,
    },
    /// A bundle of authorities is bad.
    #[error("{0}")]
    Bundle(#[from] pki::BundleError),
    /// The token file is bad.
    #[error("{0}")]
    TokenFile(#[from] authn::TokenFileError),
    /// The kubeconfig file of a webhook plugin is bad.
    #[error("{0}")]
    AdmissionWebhooks(String),
    /// Certificates or TLS options are bad.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The server could not listen.
    #[error("{0}")]
    Serve(#[from] ServeError),
    /// The socket of the debug handlers could not be made.
    #[error("{0}")]
    DebugSocket(#[from] component_base::debugging::DebugSocketError),
    /// Requests cannot be passed on to other servers of the cluster.
    #[error("{0}")]
    Peers(#[from] crate::peers::PeersError),
    /// Traces lead nowhere.
    #[error("{0}")]
    Tracing(#[from] tracing_otlp::EndpointError),
    /// The store could not be opened.
    #[error("{0}")]
    Storage(#[from] storage::StorageError),
    /// What the store's values pass is not configured well.
    #[error("{0}")]
    Encryption(#[from] encryption::config::ConfigError),
    /// Connections cannot be made as configured.
    #[error("{0}")]
    Egress(#[from] egress::EgressError),
    /// The file of mode ABAC cannot be used.
    #[error("{0}")]
    Abac(#[from] authz::abac::PolicyError),
    /// A configuration file that is followed cannot be used.
    #[error("load {path}: {source}")]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReloadError,
    },
    /// Whoever is to sign the tokens of service accounts does not.
    #[error("{0}")]
    ExternalSigner(String),
    /// A service that the server asks cannot be reached as configured.
    #[error("{what}: {why}")]
    Webhook {
        /// Which.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The policy of the audit log cannot be used.
    #[error("{0}")]
    Audit(#[from] audit::PolicyError),
    /// The server cannot make a client of itself.
    #[error("{0}")]
    Loopback(#[from] client::ConfigError),
    /// A health check came too late.
    #[error("{0}")]
    Health(#[from] Installed),
    /// A piece of start-up work failed for good.
    #[error("{0}")]
    Hook(String),
}

impl BuildError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn key(path: &Path, source: pki::KeyError) -> Self {
        Self::Key { path: path.to_owned(), source }
    }
}
