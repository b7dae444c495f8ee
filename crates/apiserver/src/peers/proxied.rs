//! A request that only another server can answer, passed on to it.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::{HeaderName, HeaderValue};

use super::state::{Peer, Peers};
use crate::aggregation::passed_on::{self, onward, permitted};
use crate::chain::{Authorized, Request};
use crate::config::Redirects;
use crate::cx::ApiCx;

/// Says that a request was passed on already: it is answered by whoever gets it.
pub(crate) const PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");
const UNKNOWN_ADDRESS: &str = "Error getting ip and port info of the remote server while proxying";

/// Passes a request on.
///
/// # Errors
/// 503 when the server cannot be reached.
pub(crate) async fn serve(
    peers: &Peers,
    peer: &Peer,
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
) -> Result<Response, ApiError> {
    let info = Arc::clone(request.info());
    let place = [info.group.as_str(), &info.version, &info.resource];
    let failed = |kind: &'static str, why: String| {
        peers.metrics.errors.with(&[kind, place[0], place[1], place[2]]).inc();
        ApiError::service_unavailable(why)
    };
    let Some(backend) = &peer.backend else {
        return Err(failed("endpoint_resolution", UNKNOWN_ADDRESS.to_owned()));
    };
    let mark = Some((PROXIED, HeaderValue::from_static("true")));
    let answer = if streaming::is_upgrade(request.headers()) {
        let io = backend.dial().await.map_err(|error| failed("proxy_transport", error.to_string()))?;
        passed_on::upgrade(&cx.aggregation, cx, request, backend, io, mark).await?
    } else {
        let onward = onward(&cx.aggregation, request, backend, mark)?;
        let sent = peer.connections.send(backend, onward, cx.tasks()).await;
        let answer = sent.map_err(|error| failed("proxy_transport", error.to_string()))?;
        // A server of the same cluster that leads elsewhere is none.
        permitted(Redirects::Rejected, passed_on::cleaned(answer))
    };
    peers.metrics.rerouted.with(&[answer.status().as_str(), place[0], place[1], place[2]]).inc();
    Ok(answer)
}
