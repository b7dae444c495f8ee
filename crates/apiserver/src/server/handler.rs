//! The two doors of the server: a listener's and a function's. Behind both is the same road.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use client::{ApiHandler, Peer};
use component_base::serving::{Body, Handler, PeerCertificates, RemoteAddr, Request, Response, full};
use http::StatusCode;

use crate::chain::road::Road;

pub(super) struct HttpHandler {
    road: Road,
}

impl HttpHandler {
    pub(super) fn new(road: Road) -> Self {
        Self { road }
    }
}

#[async_trait]
impl Handler for HttpHandler {
    async fn handle(&self, request: Request) -> Response {
        self.road.serve(request).await
    }
}

#[async_trait]
impl ApiHandler for HttpHandler {
    async fn call(&self, request: http::Request<Bytes>, peer: &Peer) -> http::Response<Body> {
        let mut request = request.map(full);
        request.extensions_mut().insert(RemoteAddr(peer.address));
        if !peer.certificates.is_empty() {
            request.extensions_mut().insert(PeerCertificates(peer.certificates.clone().into()));
        }
        self.road.serve(request).await
    }
}

/// The server as its own client has it: held weakly, as the server's context holds that client, and the two would keep
/// each other, with all that is cached, beyond the server's end.
pub(super) struct Itself(Weak<HttpHandler>);

impl Itself {
    pub(super) fn new(handler: &Arc<HttpHandler>) -> Self {
        Self(Arc::downgrade(handler))
    }
}

#[async_trait]
impl ApiHandler for Itself {
    async fn call(&self, request: http::Request<Bytes>, peer: &Peer) -> http::Response<Body> {
        let Some(handler) = self.0.upgrade() else {
            let mut over = http::Response::new(full("the server has ended"));
            *over.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return over;
        };
        handler.call(request, peer).await
    }
}
