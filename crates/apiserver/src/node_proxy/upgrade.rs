//! Passing upgrades on: what the client gets, and the copying that goes on behind the answer.

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::{Body, Response, empty, full};
use http::header::HeaderName;
use http::{HeaderValue, Request as HttpRequest};
use streaming::{Proxied, ProxyError, Refusal};

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;

/// What metrics call a connection that is passed on as it is.
pub(super) const PASSED_ON: &str = "proxied_to_kubelet";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The request without its body, as the streaming functions take it, with the client's address noted.
pub(super) fn prepared(request: Request<Authorized>) -> HttpRequest<Body> {
    let client = request.remote_address();
    let (mut parts, body) = request.into_parts();
    if let Some(client) = client {
        let former = parts.headers.get(&FORWARDED_FOR).and_then(|value| value.to_str().ok());
        let chain = former.map_or_else(|| client.ip().to_string(), |former| format!("{former}, {}", client.ip()));
        if let Ok(chain) = HeaderValue::from_str(&chain) {
            parts.headers.insert(FORWARDED_FOR, chain);
        }
    }
    HttpRequest::from_parts(parts, body)
}

/// Answers the client and copies until one side ends.
pub(super) fn answer(cx: &Arc<ApiCx>, proxied: Result<Proxied, ProxyError>) -> Result<Response, ApiError> {
    match proxied {
        Ok(Proxied::Switched { response, copy }) => {
            cx.tasks().spawn_cancellable("upgraded-connection", async move {
                if let Err(error) = copy.await {
                    tracing::debug!(%error, "An upgraded connection ended");
                }
            });
            Ok(response.map(|()| empty()))
        }
        Ok(Proxied::Refused(response)) => Ok(response.map(full)),
        Err(ProxyError::Client(refusal)) => Ok(refused(refusal)),
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// A refusal of the client's own request.
pub(super) fn refused(refusal: Refusal) -> Response {
    refusal.into_response::<String>().map(full)
}

/// The error when a backend cannot be reached.
pub(super) fn unreachable(error: &std::io::Error) -> ApiError {
    ApiError::internal(format_args!("error dialing backend: {error}"))
}

/// # Errors
/// 400 when the request asks for no upgrade.
pub(super) fn require_upgrade(request: &Request<Authorized>) -> Result<(), ApiError> {
    if streaming::is_upgrade(request.headers()) {
        Ok(())
    } else {
        Err(ApiError::bad_request("Upgrade request required"))
    }
}
