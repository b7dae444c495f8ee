//! One request of a client, and the whole answer to it.

use std::time::Duration;

use api_machinery::gvk::GroupResource;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";
/// The media type of CBOR.
pub(crate) const CBOR: &str = "application/cbor";
/// The media type of one CBOR item after the other, as watches are.
pub(crate) const CBOR_SEQUENCE: &str = "application/cbor-seq";
/// The media type of what is applied, in CBOR.
pub(crate) const APPLY_CBOR: &str = "application/apply-patch+cbor";
/// The media type of protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A request: the client adds credentials, agent and deadline.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) timeout: Option<Duration>,
    /// What errors without a Status say that the request was about.
    pub(crate) about: GroupResource,
    /// A watch: its first try does not wait for the rate limit, and its body is not awaited.
    pub(crate) watch: bool,
}

impl Request {
    /// A request without a body. The path starts with a slash and is escaped already.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            about: GroupResource::default(),
            watch: false,
        }
    }

    /// `GET path`, asking for JSON.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path).accept(JSON)
    }

    /// Adds a query parameter, unless the value is empty.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.query.push((name, value));
        }
        self
    }

    /// Sets the `Accept` header. A text that cannot be a header is left out.
    #[must_use]
    pub fn accept(self, media_types: &str) -> Self {
        self.header(header::ACCEPT, media_types)
    }

    /// Sets a header. A text that cannot be a header is left out.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Sets the body and its media type.
    #[must_use]
    pub fn body(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header(header::CONTENT_TYPE, media_type)
    }

    /// Whether the body is CBOR.
    pub(crate) fn is_cbor(&self) -> bool {
        [CBOR, APPLY_CBOR].contains(&media_type(&self.headers))
    }

    /// Names what the request is about, for errors that the server does not word itself.
    #[must_use]
    pub fn about(mut self, resource: GroupResource) -> Self {
        self.about = resource;
        self
    }

    /// Sets the longest that the request may take, retries included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Path and query as they go on the wire; parameters are sorted by name, as upstream's clients do.
    pub(crate) fn target(&self, prefix: &str) -> String {
        let mut pairs: Vec<_> = self.query.iter().collect();
        pairs.sort_by_key(|(name, _)| *name);
        let query: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{name}={}", escape(value, "-_.~"))).collect();
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{prefix}{}{separator}{}", self.path, query.join("&"))
    }
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct RawResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl RawResponse {
    /// The media type of the body, without parameters.
    #[must_use]
    pub fn media_type(&self) -> &str {
        media_type(&self.headers)
    }
}

pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// What a path segment may hold unescaped.
const PLAIN: &str = "-_.~:@!$&'()*+,;=";

/// A text as one segment of a path, escaped.
#[must_use]
pub fn path_segment(text: &str) -> String {
    escape(text, PLAIN)
}

/// Percent-escapes everything but letters, digits and `plain`.
pub(crate) fn escape(text: &str, plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_escaped() {
        let request = Request::get("/api/v1/pods").query("watch", "true").query("labelSelector", "a in (b,c)");
        assert_eq!(request.target("/p"), "/p/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&watch=true");
        assert_eq!(Request::get("/healthz").query("limit", "").target(""), "/healthz");
    }
}
