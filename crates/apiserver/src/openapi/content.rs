//! A document as static content: what the client has already, and the part of it that it asks for.

use std::time::SystemTime;

use bytes::Bytes;
use component_base::serving::{Response, empty, full};
use http::header::{
    ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::http_date;
use super::range::{Wanted, wanted};

/// What a client says that it has or wants.
pub(super) struct Conditions {
    tags: Option<String>,
    since: Option<SystemTime>,
    range: Option<String>,
    only_if: Option<String>,
}

impl Conditions {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        Self {
            tags: text(IF_NONE_MATCH),
            since: text(IF_MODIFIED_SINCE).as_deref().and_then(http_date::parse),
            range: text(RANGE),
            only_if: text(IF_RANGE),
        }
    }

    /// Whether the client has the document: by its tag, or else by its time.
    pub(super) fn has(&self, hash: &str, made: Option<SystemTime>) -> bool {
        match &self.tags {
            Some(tags) => has_tag(tags, &quoted(hash)),
            None => self.is_up_to_date(made),
        }
    }

    /// Whether the client has the document by its time, which is all that some documents have.
    pub(super) fn is_up_to_date(&self, made: Option<SystemTime>) -> bool {
        self.since.zip(made).is_some_and(|(since, made)| whole_seconds(made) <= whole_seconds(since))
    }

    /// Whether the client asks for a part.
    pub(super) fn wants_part(&self) -> bool {
        self.range.is_some()
    }

    /// The document or the part of it. A part is only for who has the rest of the same document, if it says so.
    pub(super) fn answer(&self, content: Bytes, media: &'static str, hash: &str, made: Option<SystemTime>) -> Response {
        let is_same = self.only_if.as_deref().is_none_or(|only_if| {
            only_if == quoted(hash) || made.is_some_and(|made| only_if == http_date::render(made))
        });
        let range = self.range.as_deref().filter(|_| is_same);
        let length = content.len();
        let (status, content, shown) = match wanted(range, length) {
            Wanted::Whole => (StatusCode::OK, content, None),
            Wanted::Part(part) => {
                let shown = format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1));
                (StatusCode::PARTIAL_CONTENT, content.slice(part), Some(shown))
            }
            Wanted::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new(), Some(format!("bytes */{length}"))),
        };
        let mut response = Response::new(full(content));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(shown) = shown {
            put(headers, CONTENT_RANGE, &shown);
        }
        response
    }
}

/// Adds what tells this document from others.
pub(super) fn mark(response: &mut Response, hash: &str, made: Option<SystemTime>) {
    let headers = response.headers_mut();
    put(headers, ETAG, &quoted(hash));
    if let Some(made) = made {
        put(headers, LAST_MODIFIED, &http_date::render(made));
    }
    headers.append(VARY, HeaderValue::from_static("Accept"));
}

/// An answer without content.
pub(super) fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

pub(super) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn quoted(hash: &str) -> String {
    format!("\"{hash}\"")
}

/// Whether a tag is among those of a header.
fn has_tag(tags: &str, etag: &str) -> bool {
    tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

fn whole_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
