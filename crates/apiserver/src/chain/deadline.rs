//! How long a request may take: what the client allows, at most what the server allows.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::json;
use api_machinery::meta::StatusDetails;
use api_machinery::status::{ApiError, reason};
use base::SharedClock;
use component_base::flags::parse_duration;
use component_base::serving::{Response, text};
use http::StatusCode;
use tokio::time::Instant;

use super::observe::Labels;
use super::refusal::Refusal;
use super::stages::{Received, Request};
use crate::cx::ApiCx;
use crate::request::{Query, RequestInfo};
use crate::respond::status_of;

const TIMEOUT_TEXT: &str = "Timeout: request did not complete within the allotted timeout";

/// Sets the deadline of a request that is not to last.
pub(super) async fn set(
    maximum: Duration,
    clock: &SharedClock,
    request: Request<Received>,
) -> Result<Request<Received>, Refusal> {
    if request.info().is_long_running() {
        return Ok(request);
    }
    let allowed = match allowed(request.query(), maximum) {
        Ok(allowed) => allowed,
        Err(error) => {
            request.audited().context().refused(error.code, error.message.clone()).await;
            return Err(error.into());
        }
    };
    let deadline = (!allowed.is_zero()).then(|| clock.monotonic() + allowed);
    Ok(request.with_deadline(deadline))
}

/// What the parameter `timeout` allows, at most `maximum`.
fn allowed(query: &Query, maximum: Duration) -> Result<Duration, ApiError> {
    let Some(value) = query.first("timeout").filter(|value| !value.is_empty()) else { return Ok(maximum) };
    let nanoseconds = parse_duration(value).map_err(|_| {
        ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {value:?}"
        ))
    })?;
    let wanted = u64::try_from(nanoseconds).map(Duration::from_nanos).unwrap_or(maximum);
    Ok(if wanted.is_zero() { maximum } else { wanted.min(maximum) })
}

/// Runs the rest until the deadline. What was begun then ends where it next waits; a write may have happened.
pub(super) async fn within(
    cx: &ApiCx,
    deadline: Option<Instant>,
    info: Arc<RequestInfo>,
    rest: impl Future<Output = Result<Response, Refusal>>,
) -> Result<Response, Refusal> {
    let Some(deadline) = deadline else { return rest.await };
    match tokio::time::timeout_at(deadline, rest).await {
        Ok(outcome) => outcome,
        Err(_) => {
            Labels::of_request(cx, &info).count_termination(&cx.metrics, "504");
            Err(timed_out().into())
        }
    }
}

/// Written directly, in no negotiated form, as upstream's timeout filter does.
fn timed_out() -> Response {
    let error =
        ApiError { code: 504, reason: reason::TIMEOUT.into(), message: TIMEOUT_TEXT.into(), ..ApiError::default() };
    let mut status = status_of(&error);
    status.details = Some(StatusDetails::default());
    text(StatusCode::GATEWAY_TIMEOUT, json::encode(&status))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn the_server_has_the_last_word() {
        let maximum = Duration::from_secs(60);
        let cases = [
            ("", 60),
            ("timeout=", 60),
            ("timeout=10s", 10),
            ("timeout=0s", 60),
            ("timeout=2h", 60),
            ("timeout=-5s", 60),
        ];
        for (query, seconds) in cases {
            assert_eq!(allowed(&Query::parse(query), maximum), Ok(Duration::from_secs(seconds)), "{query}");
        }
        let error = allowed(&Query::parse("timeout=soon"), maximum).unwrap_err();
        assert_eq!(error.message, "invalid timeout specified in the request URL - time: invalid duration \"soon\"");
    }

    #[tokio::test]
    async fn the_answer_is_upstreams() {
        let body = timed_out().into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
        assert_eq!(body, expected);
    }
}
