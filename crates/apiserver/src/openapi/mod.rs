//! OpenAPI documents over HTTP: one of version 2, in JSON and protobuf, and many of version 3 with an index.

mod documents;
mod http_date;
mod resources;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::status::ApiError;
use async_trait::async_trait;
use bytes::Bytes;
use component_base::serving::{Response, empty, full};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::chain::{Authorized, Request};
use crate::custom_resources::ServedKinds;
use crate::cx::ApiCx;
use crate::negotiate::preferred;
use crate::respond;
use crate::routes::{Endpoint, Routes};
use documents::{Document, Documents, Whole};

const VERSION_2: &str = "/openapi/v2";
const VERSION_3: &str = "/openapi/v3";

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name of the protobuf form that older clients know; `@` may not occur in media types.
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// How long a document that was asked for by its hash may be kept.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Adds the paths.
pub(crate) fn install(routes: &mut Routes, served: &Arc<ServedKinds>) {
    let documents = Arc::new(Documents::new(served));
    routes.exact(VERSION_2, Arc::new(Version2 { documents: Arc::clone(&documents) }));
    let endpoint: Arc<dyn Endpoint> = Arc::new(Version3 { documents });
    routes.exact(VERSION_3, Arc::clone(&endpoint));
    routes.prefix("/openapi/v3/", endpoint);
}

struct Version2 {
    documents: Arc<Documents>,
}

#[async_trait]
impl Endpoint for Version2 {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        require_read(&request)?;
        let Some(media) = preferred(request.wish().accept(), &[JSON, OLD_PROTOBUF, PROTOBUF]) else {
            return Ok(bare(StatusCode::NOT_ACCEPTABLE));
        };
        let (documents, now, gzip) = (Arc::clone(&self.documents), cx.clock().wall(), request.wish().gzip);
        let is_known = conditions(request.headers());
        // Making documents takes a while; other requests must not wait for it.
        let made = tokio::task::spawn_blocking(move || {
            let whole = documents.whole(now);
            let content = if is_known(&whole) { None } else { Some(content(&whole, media, gzip)?) };
            Ok((whole, content))
        });
        let (whole, content) = made.await.map_err(ApiError::internal)?.map_err(|error: std::io::Error| {
            ApiError::internal(format!("cannot unpack the OpenAPI document: {error}"))
        })?;
        let mut response = match content {
            None => bare(StatusCode::NOT_MODIFIED),
            Some(content) => whole_answer(media, gzip, content),
        };
        let headers = response.headers_mut();
        put(headers, ETAG, &format!("\"{}\"", whole.hash));
        put(headers, LAST_MODIFIED, &http_date::render(whole.made));
        headers.append(VARY, HeaderValue::from_static("Accept"));
        Ok(response)
    }
}

fn content(whole: &Whole, media: &str, gzip: bool) -> std::io::Result<Bytes> {
    let form = if media == JSON { &whole.json } else { &whole.protobuf };
    if gzip { Ok(form.packed()) } else { form.plain() }
}

fn whole_answer(media: &str, gzip: bool, content: Bytes) -> Response {
    let mut response = Response::new(full(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(if media == JSON { JSON } else { PROTOBUF }));
    if gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// Whether the client says that it has the document: by its tag, or else by its time.
fn conditions(headers: &HeaderMap) -> impl Fn(&Whole) -> bool + Send + use<> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let (tags, since) = (text(IF_NONE_MATCH), text(IF_MODIFIED_SINCE).as_deref().and_then(http_date::parse));
    move |whole| match (&tags, since) {
        (Some(tags), _) => has_tag(tags, &format!("\"{}\"", whole.hash)),
        (None, Some(since)) => whole_seconds(whole.made) <= whole_seconds(since),
        (None, None) => false,
    }
}

fn whole_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

struct Version3 {
    documents: Arc<Documents>,
}

#[async_trait]
impl Endpoint for Version3 {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        require_read(&request)?;
        if preferred(request.wish().accept(), &[JSON]).is_none() {
            return Ok(bare(StatusCode::NOT_ACCEPTABLE));
        }
        let path = request.info().path.clone();
        let documents = Arc::clone(&self.documents);
        let wanted = path.clone();
        let made = tokio::task::spawn_blocking(move || match wanted.as_str() {
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

fn require_read(request: &Request<Authorized>) -> Result<(), ApiError> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads.then_some(()).ok_or_else(ApiError::method_not_allowed)
}

fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The document; one that was asked for by its hash never changes, and may be kept for a year.
fn answer(request: &Request<Authorized>, document: &Document, forever: Option<&ApiCx>) -> Response {
    let etag = format!("\"{}\"", document.hash);
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = if has_tag(known, &etag) {
        bare(StatusCode::NOT_MODIFIED)
    } else {
        respond::json(request.wish(), StatusCode::OK, document.json.clone())
    };
    let headers = response.headers_mut();
    put(headers, ETAG, &etag);
    headers.append(VARY, HeaderValue::from_static("Accept"));
    if let Some(cx) = forever {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        put(headers, EXPIRES, &http_date::render(cx.clock().wall() + YEAR));
    }
    response
}

/// Whether a tag is among those of a header.
fn has_tag(tags: &str, etag: &str) -> bool {
    tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

fn redirect(path: &str, hash: &str) -> Result<Response, ApiError> {
    let mut response = bare(StatusCode::MOVED_PERMANENTLY);
    let location = HeaderValue::from_str(&format!("{path}?hash={hash}")).map_err(ApiError::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
