//! Requests out of web pages of other sites: the browser is told whether the site may see the answer.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use component_base::serving::{Response, empty};
use regex::Regex;

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
);

/// The site, where it is one that may.
pub(super) fn allowed_origin(allowed: &[Regex], headers: &HeaderMap) -> Option<HeaderValue> {
    if allowed.is_empty() {
        return None;
    }
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    allowed.iter().any(|pattern| pattern.is_match(text)).then(|| origin.clone())
}

/// The answer to a browser that asks before it asks.
pub(super) fn preflight(origin: Option<&HeaderValue>, method: &Method) -> Option<Response> {
    let asked = origin.is_some() && method == Method::OPTIONS;
    asked.then(|| {
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    })
}

/// Lets the site see the answer.
pub(super) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Date"));
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
}
