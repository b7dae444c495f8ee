//! OpenAPI documents over HTTP: one of version 2, and many of version 3 with an index.

mod documents;
mod resources;

use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::{Response, empty};
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::chain::{Authorized, Request};
use crate::custom_resources::ServedKinds;
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::{Endpoint, Routes};
use documents::{Document, Documents};

const VERSION_2: &str = "/openapi/v2";
const VERSION_3: &str = "/openapi/v3";

/// Adds the paths.
pub(crate) fn install(routes: &mut Routes, served: &Arc<ServedKinds>) {
    let endpoint: Arc<dyn Endpoint> = Arc::new(OpenApi { documents: Arc::new(Documents::new(served)) });
    routes.exact(VERSION_2, Arc::clone(&endpoint));
    routes.exact(VERSION_3, Arc::clone(&endpoint));
    routes.prefix("/openapi/v3/", endpoint);
}

struct OpenApi {
    documents: Arc<Documents>,
}

#[async_trait]
impl Endpoint for OpenApi {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(ApiError::method_not_allowed());
        }
        if !accepts_json(request.wish().accept()) {
            return Ok(bare(StatusCode::NOT_ACCEPTABLE));
        }
        let path = request.info().path.clone();
        let documents = Arc::clone(&self.documents);
        // Making documents takes a while; other requests must not wait for it.
        let wanted = path.clone();
        let made = tokio::task::spawn_blocking(move || match wanted.as_str() {
            VERSION_2 => Some(documents.whole()),
            VERSION_3 => Some(documents.index()),
            part => documents.part(part.strip_prefix("/openapi/v3/")?.trim_end_matches('/')),
        });
        let Some(document) = made.await.map_err(ApiError::internal)? else {
            let mut response = bare(StatusCode::OK);
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            return Ok(response);
        };
        match request.query().first("hash").filter(|_| path.starts_with("/openapi/v3/")) {
            Some(hash) if hash != document.hash => redirect(&path, &document.hash),
            Some(_) => Ok(answer(&request, &document, Some(cx))),
            None => Ok(answer(&request, &document, None)),
        }
    }
}

/// Whether a client takes JSON.
fn accepts_json(accept: &str) -> bool {
    let mut types = accept.split(',').map(|entry| entry.split(';').next().unwrap_or_default().trim());
    accept.trim().is_empty() || types.any(|name| matches!(name, "*/*" | "application/*" | "application/json"))
}

fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

/// The document; one that was asked for by its hash never changes, and may be kept for a year.
fn answer(request: &Request<Authorized>, document: &Document, forever: Option<&ApiCx>) -> Response {
    let etag = format!("\"{}\"", document.hash);
    let mut response = if is_known(request.headers(), &etag) {
        bare(StatusCode::NOT_MODIFIED)
    } else {
        respond::json(request.wish(), StatusCode::OK, document.json.clone())
    };
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    headers.append(VARY, HeaderValue::from_static("Accept"));
    if let Some(cx) = forever {
        const YEAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let expires = httpdate(cx.clock().wall() + YEAR);
        if let Ok(expires) = HeaderValue::from_str(&expires) {
            headers.insert(EXPIRES, expires);
        }
    }
    response
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

fn redirect(path: &str, hash: &str) -> Result<Response, ApiError> {
    let mut response = bare(StatusCode::MOVED_PERMANENTLY);
    let location = HeaderValue::from_str(&format!("{path}?hash={hash}")).map_err(ApiError::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// A time as HTTP headers have it.
fn httpdate(time: std::time::SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // RFC 3339 in UTC: 2026-01-31T10:20:30Z.
    let text = api_machinery::time::Time::from(time).to_string();
    let seconds = time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let pick = |names: &[&'static str], index: usize| names.get(index).copied().unwrap_or_default();
    let weekday = pick(&DAYS, usize::try_from(seconds / 86_400 % 7).unwrap_or(0));
    let month = pick(&MONTHS, part(5, 7).parse::<usize>().unwrap_or(1).saturating_sub(1));
    format!("{weekday}, {} {month} {} {} GMT", part(8, 10), part(0, 4), part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_form_of_headers() {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_792_000_000);
        assert_eq!(httpdate(time), "Wed, 14 Oct 2026 17:46:40 GMT");
    }

    #[test]
    fn json_must_be_acceptable() {
        for (accept, expected) in [("", true), ("*/*", true), ("application/json;q=1", true), ("text/html", false)] {
            assert_eq!(accepts_json(accept), expected, "{accept}");
        }
    }
}
