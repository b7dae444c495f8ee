//! A request that only another server can answer, passed on to it.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::endpoint::backend;
use super::state::{Peer, Peers};
use crate::aggregation::passed_on::{self, onward, permitted, unreachable};
use crate::chain::{Authorized, Request};
use crate::config::Redirects;
use crate::cx::ApiCx;
use crate::node_proxy::connection::Backend;

const PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");
const YES: HeaderValue = HeaderValue::from_static("true");
const UNKNOWN_ADDRESS: &str = "Error getting ip and port info of the remote server while proxying";

/// Whether a request was passed on already: then it is answered by whoever gets it.
pub(crate) fn is_proxied(headers: &HeaderMap) -> bool {
    headers.get(PROXIED) == Some(&YES)
}

/// Passes a request on to the first of some servers that says where it is.
///
/// # Errors
/// 503 when none of them does.
pub(crate) async fn serve(
    peers: &Peers,
    fitting: Vec<(String, Arc<Peer>)>,
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
) -> Result<Response, ApiError> {
    let info = Arc::clone(request.info());
    for (id, peer) in fitting {
        match backend(cx, peers, &id).await {
            Ok(backend) => {
                let answer = pass_on(peers, &peer, &backend, cx, request).await?;
                peers.metrics.note_rerouted(answer.status(), &info);
                return Ok(answer);
            }
            Err(error) => tracing::warn!(%error, peer = id, "It is not known where another API server is"),
        }
    }
    peers.metrics.note_error("endpoint_resolution", &info);
    Err(ApiError::service_unavailable(UNKNOWN_ADDRESS))
}

/// A server that cannot be reached is told of in plain text, and one of the same cluster that leads elsewhere is none.
async fn pass_on(
    peers: &Peers,
    peer: &Peer,
    backend: &Backend,
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
) -> Result<Response, ApiError> {
    let (info, mark) = (Arc::clone(request.info()), Some((PROXIED, YES)));
    let failed = |error: &std::io::Error| {
        tracing::warn!(%error, peer = backend.authority, "Another API server could not be reached");
        peers.metrics.note_error("proxy_transport", &info);
        unreachable(error)
    };
    if streaming::is_upgrade(request.headers()) {
        return match backend.dial().await {
            Ok(io) => passed_on::upgrade(&cx.aggregation, cx, request, backend, io, mark).await,
            Err(error) => Ok(failed(&error)),
        };
    }
    let onward = onward(&cx.aggregation, request, backend, mark)?;
    Ok(match peer.connections.send(backend, onward, cx.tasks()).await {
        Ok(answer) => permitted(Redirects::Rejected, passed_on::cleaned(answer)),
        Err(error) => failed(&error),
    })
}
