//! Asking for a seat for a request, and what is answered where there is none.

use std::sync::Arc;

use component_base::serving::{Response, text};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::observe::Labels;
use super::stages::{Authenticated, Request};
use crate::cx::ApiCx;
use crate::limits::{Admitted, Full, Seats, Wanted};
use crate::request::RequestInfo;

const REFUSAL: &str = "Too many requests, please try again later.";

/// Asks for a seat.
pub(super) async fn take(seats: &dyn Seats, request: &Request<Authenticated>) -> Admitted {
    let (user, info) = (request.sender(), request.info());
    seats.take(&Wanted { user, info, query: request.query(), deadline: request.deadline() }).await
}

/// What is answered where there is none.
pub(super) fn refusal(cx: &ApiCx, info: &Arc<RequestInfo>, full: Full) -> Response {
    Labels::of_request(cx, info).count_termination(&cx.metrics, "429");
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, REFUSAL);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(full.retry_after));
    response
}
