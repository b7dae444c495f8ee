//! Whether there is room for a request. Who has none yet may wait for it.

use std::any::Any;

use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use component_base::serving::text;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::observe::Labels;
use super::{Authenticated, Refusal, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;

const REFUSAL: &str = "Too many requests, please try again later.";

/// A request's place, which is free again when this is dropped.
pub(crate) struct Seat {
    _guard: Box<dyn Any + Send>,
}

impl Seat {
    /// Held by a guard.
    pub(crate) fn held_by(guard: impl Any + Send) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

/// There is no room, and waiting is no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// Gives seats to requests.
#[async_trait]
pub(crate) trait Seats: Send + Sync {
    /// A seat for what `user` asks for, once there is one; whoever stops waiting takes none.
    async fn take(&self, user: &UserInfo, info: &RequestInfo) -> Result<Seat, Full>;
}

/// Takes a seat, or refuses the request.
pub(super) async fn take(cx: &ApiCx, request: &Request<Authenticated>) -> Result<Seat, Refusal> {
    cx.seats.take(request.sender(), request.info()).await.map_err(|Full| {
        Labels::of_request(request.info()).count_termination(cx, "429");
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, REFUSAL);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
        response.into()
    })
}
