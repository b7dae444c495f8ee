//! Errors made from an HTTP response that carries no Status object.

use std::borrow::Cow;

use super::{ApiError, CAUSE_UNEXPECTED_SERVER_RESPONSE, ErrorDetails, about, reason};
use crate::field_path::Cause;
use crate::gvk::GroupResource;
use crate::quote::go_quote;

/// What is known of a response whose body is no Status.
#[derive(Clone, Copy, Debug)]
pub struct PlainResponse<'a> {
    /// HTTP status code.
    pub code: u16,
    /// HTTP method, upper case.
    pub method: &'a str,
    /// The resource asked for; may be empty.
    pub resource: &'a GroupResource,
    /// The object asked for; may be empty.
    pub name: &'a str,
    /// The body as text, cut to a sane length by the caller.
    pub body: &'a str,
    /// `Retry-After` in seconds, or 0.
    pub retry_after_seconds: i32,
    /// Whether the body belongs among the causes.
    pub unexpected: bool,
}

impl From<PlainResponse<'_>> for ApiError {
    fn from(response: PlainResponse<'_>) -> Self {
        let (reason, text) = meaning(&response);
        let method = response.method.to_ascii_lowercase();
        let message = match (response.resource.is_empty(), response.name) {
            (true, _) => text.into_owned(),
            (false, "") => format!("{text} ({method} {})", response.resource),
            (false, name) => format!("{text} ({method} {} {name})", response.resource),
        };
        let cause = || Cause {
            reason: CAUSE_UNEXPECTED_SERVER_RESPONSE.into(),
            message: response.body.to_owned(),
            field: String::new(),
        };
        let details = ErrorDetails {
            causes: response.unexpected.then(cause).into_iter().collect(),
            retry_after_seconds: response.retry_after_seconds,
            ..about(response.resource, response.name)
        };
        ApiError::new(response.code, reason, message).with_details(details)
    }
}

/// Reason and text for a code, as upstream's clients word it.
fn meaning<'a>(response: &PlainResponse<'a>) -> (&'static str, Cow<'a, str>) {
    let (reason, text) = match response.code {
        400 => (reason::BAD_REQUEST, "the server rejected our request for an unknown reason"),
        401 => (reason::UNAUTHORIZED, "the server has asked for the client to provide credentials"),
        403 => (reason::FORBIDDEN, response.body),
        404 => (reason::NOT_FOUND, "the server could not find the requested resource"),
        405 => (reason::METHOD_NOT_ALLOWED, "the server does not allow this method on the requested resource"),
        406 if matches!(response.body, "" | "unknown") => {
            (reason::NOT_ACCEPTABLE, "the server was unable to respond with a content type that the client supports")
        }
        406 => (reason::NOT_ACCEPTABLE, response.body),
        409 if response.method == "POST" => (reason::ALREADY_EXISTS, "the server reported a conflict"),
        409 => (reason::CONFLICT, "the server reported a conflict"),
        415 => (reason::UNSUPPORTED_MEDIA_TYPE, response.body),
        422 => (reason::INVALID, "the server rejected our request due to an error in our request"),
        429 => {
            (reason::TOO_MANY_REQUESTS, "the server has received too many requests and has asked us to try again later")
        }
        503 => (reason::SERVICE_UNAVAILABLE, "the server is currently unable to handle the request"),
        504 => (
            reason::TIMEOUT,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => return (reason::INTERNAL_ERROR, prevented(response.body).into()),
        code => {
            return (
                "",
                format!("the server responded with the status code {code} but did not return more information").into(),
            );
        }
    };
    (reason, Cow::Borrowed(text))
}

fn prevented(body: &str) -> String {
    format!("an error on the server ({}) has prevented the request from succeeding", go_quote(body))
}

impl ApiError {
    /// 500: a handler panicked; nothing of it is shown.
    pub fn handler_panicked() -> Self {
        ApiError::new(500, reason::INTERNAL_ERROR, prevented("")).with_details(ErrorDetails::default())
    }

    /// Whether the reason is one of upstream's; others leave the verdict to the code.
    pub(super) fn has_known_reason(&self) -> bool {
        const KNOWN: [&str; 19] = [
            reason::UNAUTHORIZED,
            reason::FORBIDDEN,
            reason::NOT_FOUND,
            reason::ALREADY_EXISTS,
            reason::CONFLICT,
            reason::GONE,
            reason::EXPIRED,
            reason::INVALID,
            reason::SERVER_TIMEOUT,
            reason::TIMEOUT,
            reason::TOO_MANY_REQUESTS,
            reason::BAD_REQUEST,
            reason::METHOD_NOT_ALLOWED,
            reason::NOT_ACCEPTABLE,
            reason::REQUEST_ENTITY_TOO_LARGE,
            reason::UNSUPPORTED_MEDIA_TYPE,
            reason::INTERNAL_ERROR,
            reason::STORAGE_READ_ERROR,
            reason::SERVICE_UNAVAILABLE,
        ];
        KNOWN.contains(&self.reason.as_ref())
    }
}
