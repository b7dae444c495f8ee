//! How requests reach an API server: over HTTPS, by a function call in the same process, and with faults in between.

mod connection;
mod dial;
mod fault;
mod https;
mod in_process;
mod pool;
mod proxy;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub use component_base::serving::{Body, BoxError};
pub use fault::{FaultLayer, Faults};
pub use https::HttpsTransport;
pub use in_process::{ApiHandler, InProcess, Peer};
pub(crate) use pool::Pool;

/// Carries requests to one API server.
///
/// The request's URI is path and query only; scheme and host belong to the transport. The response's body streams;
/// dropping it ends the request.
#[async_trait::async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// When no response came.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError>;

    /// The server, for messages: `https://host:port`.
    fn server(&self) -> &str;
}

/// Why a request got no response, or a response ended early.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The host could not be reached.
    #[error("dial tcp {address}: {source}")]
    Dial {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Who opens connections for the client did not get there, and says why.
    #[error("{0}")]
    Elsewhere(#[source] std::io::Error),
    /// The TLS handshake failed.
    #[error("tls: {address}: {source}")]
    Handshake {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// A step took longer than it may.
    #[error("{0}: i/o timeout")]
    Timeout(String),
    /// The connection broke before the response came; the request may or may not have been carried out.
    #[error("http: {0}")]
    Broken(#[source] BoxError),
    /// The connection ended before the request was sent; it was not carried out.
    #[error("http: connection closed before the request was sent")]
    NotSent,
    /// The proxy refused to connect.
    #[error("proxy {proxy}: {reason}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// What it said.
        reason: String,
    },
    /// A credential plugin did not say who the client is.
    #[error("getting credentials: {0}")]
    Credentials(Arc<str>),
    /// The request or the configuration cannot be used.
    #[error("{0}")]
    Invalid(String),
}

impl TransportError {
    /// Whether nobody listens at the address.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Dial { source, .. } if source.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// Whether the connection broke while it was in use, so that a read may be tried again.
    #[must_use]
    pub fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::NotSent)
    }

    /// Whether a step timed out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout(_))
            || matches!(self, Self::Dial { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
    }
}
