//! Requests by function call, for an API server in the same process: the loopback client and whole-system tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;

use super::{Body, Transport, TransportError};

/// Who is at the other end of a request that came by function call.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The address to record as the client's.
    pub address: SocketAddr,
    /// The certificate chain that a TLS client would have shown, leaf first; empty for none.
    pub certificates: Vec<CertificateDer<'static>>,
}

impl Default for Peer {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 0).into(), certificates: Vec::new() }
    }
}

/// Answers requests as the API server does: the whole road, authentication included.
#[async_trait::async_trait]
pub trait ApiHandler: Send + Sync + 'static {
    /// Answers one request. Dropping the future means that the client has gone.
    async fn call(&self, request: http::Request<Bytes>, peer: &Peer) -> http::Response<Body>;
}

/// A transport that calls a handler.
#[derive(Clone)]
pub struct InProcess {
    handler: Arc<dyn ApiHandler>,
    peer: Peer,
}

impl InProcess {
    /// A transport to `handler` whose requests come from `peer`.
    #[must_use]
    pub fn new(handler: Arc<dyn ApiHandler>, peer: Peer) -> Self {
        Self { handler, peer }
    }
}

#[async_trait::async_trait]
impl Transport for InProcess {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        Ok(self.handler.call(request, &self.peer).await)
    }

    fn server(&self) -> &str {
        "https://in-process"
    }
}
