//! The id by which a request is known in logs and audit: the client's, or a new one.

use base::SharedRng;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of requests and responses.
pub(super) const HEADER: HeaderName = HeaderName::from_static("audit-id");

/// The request's id, set where it was absent.
pub(super) fn adopt_or_make(headers: &mut HeaderMap, rng: &SharedRng) -> HeaderValue {
    if let Some(own) = headers.get(HEADER).filter(|value| !value.is_empty()) {
        return own.clone();
    }
    let made =
        HeaderValue::from_str(&rng.uuid()).unwrap_or(HeaderValue::from_static("00000000-0000-4000-8000-000000000000"));
    headers.insert(HEADER, made.clone());
    made
}
