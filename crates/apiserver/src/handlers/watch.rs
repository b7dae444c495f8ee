//! Watches: streams of frames, from the moment that the client chose until its time is up.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use component_base::serving::{BoxError, Response};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::target::Target;
use super::watch_frames::Frames;
use super::watch_socket;
use super::watch_stream::Streaming;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{CBOR_SEQUENCE, Choice, MediaType, Offer};
use crate::request::sharded_list_options;

pub(super) async fn watch(
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let choice = request.preferences().choose(Offer::resource(target.is_custom()).as_stream())?;
    let mut options = sharded_list_options(request.query(), cx.lifecycle.gates())?;
    options.watch = true;
    if let Some(name) = &target.name {
        options.field_selector = named(name, &options.field_selector)?;
    }
    let deadline = cx.clock().monotonic() + duration(cx, options.timeout_seconds);
    let events = target.resource.watch(&target.request_cx(cx, &request, false), &options, Some(deadline)).await?;
    let frames = Frames::new(cx, &request, target, choice.clone())?;
    let watching = Streaming { events, frames, watched: cx.watches.enter(), deadline, ended: false };
    if streaming::is_websocket(request.headers()) {
        return Ok(watch_socket::answer(cx, request, watching, choice.media));
    }
    let body = StreamBody::new(stream::unfold(watching, |mut watching| async move {
        let chunk = watching.next_chunk().await?;
        Some((Ok::<_, BoxError>(Frame::data(chunk)), watching))
    }));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, content_type(&choice));
    Ok(response)
}

fn content_type(choice: &Choice) -> HeaderValue {
    HeaderValue::from_static(match choice.media {
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        MediaType::Cbor => CBOR_SEQUENCE,
        MediaType::Json | MediaType::Yaml => "application/json",
    })
}

/// The selector of a watch of one object by its path.
fn named(name: &str, selector: &str) -> Result<String, ApiError> {
    let own = format!("metadata.name={name}");
    if selector.is_empty() {
        return Ok(own);
    }
    let parsed = api_machinery::fields::FieldSelector::parse(selector)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    if parsed.required_value("metadata.name") == Some(name) {
        return Ok(selector.to_owned());
    }
    Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"))
}

/// How long a watch lasts: as asked, else between once and twice the configured time, so that clients do not all come
/// back at once.
fn duration(cx: &ApiCx, asked_seconds: Option<i64>) -> Duration {
    match asked_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0) {
        Some(seconds) => Duration::from_secs(seconds.min(u64::from(u32::MAX))),
        None => cx.config.requests.min_watch_timeout.mul_f64(1.0 + cx.rng().unit()),
    }
}
