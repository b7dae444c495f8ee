//! The refusal of new requests once the shutdown has begun.

use api_machinery::status::ApiError;
use component_base::serving::text;
use http::header::{CONNECTION, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use super::refusal::Refusal;
use super::stages::{Received, Request};
use crate::cx::ApiCx;
use crate::limits::Runs;
use crate::respond;

/// Whether a request is answered whatever the stage: probes, metrics, and other API servers.
fn is_exempt(request: &Request<Received>) -> bool {
    let path = &request.info().path;
    let probes = ["/readyz", "/livez", "/healthz", "/metrics"];
    probes.iter().any(|probe| path.starts_with(probe)) || request.user_agent().starts_with("kube-apiserver/")
}

/// Lets a request in.
pub(super) fn enter(cx: &ApiCx, request: &Request<Received>) -> Result<Runs, Refusal> {
    let events = cx.lifecycle.events();
    let exempt = is_exempt(request);
    if cx.config.shutdown.send_retry_after && events.not_accepting_new_request.has_happened() && !exempt {
        let text_ = "The apiserver is shutting down, please try again later.";
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, text_);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(5));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Err(response.into());
    }
    let is_watch = request.info().verb == "watch";
    if request.info().is_long_running() || exempt {
        let ending = is_watch && cx.watches.are_ending();
        return if ending { Err(shutting_down(request)) } else { Ok(Runs::UNCOUNTED) };
    }
    cx.running.enter().ok_or_else(|| shutting_down(request))
}

fn shutting_down(request: &Request<Received>) -> Refusal {
    let mut response =
        respond::error(request.preferences(), &ApiError::service_unavailable("apiserver is shutting down"));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.into()
}
