//! The two doors of the server: a listener's and a function's. Behind both is the same road.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use client::{ApiHandler, Peer};
use component_base::serving::{Body, Handler, PeerCertificates, RemoteAddr, Request, Response, full};

use crate::chain;
use crate::cx::ApiCx;

pub(super) struct HttpHandler {
    cx: Arc<ApiCx>,
}

impl HttpHandler {
    pub(super) fn new(cx: Arc<ApiCx>) -> Self {
        Self { cx }
    }
}

#[async_trait]
impl Handler for HttpHandler {
    async fn handle(&self, request: Request) -> Response {
        chain::serve(&self.cx, request).await
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
        chain::serve(&self.cx, request).await
    }
}
