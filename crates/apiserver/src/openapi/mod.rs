//! OpenAPI documents over HTTP, in JSON and protobuf: one of version 2, and many of version 3 with an index.

mod content;
pub(crate) mod document;
mod documents;
mod http_date;
mod range;
mod resources;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use api_machinery::value::Value;
use async_trait::async_trait;
use component_base::Gates;
use component_base::serving::Response;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, EXPIRES, LAST_MODIFIED, LOCATION, VARY};
use http::{HeaderValue, Method, StatusCode};
use schema::openapi::{Choices, version3_protobuf};

use crate::aggregation::passed_on;
use crate::aggregation::state::Aggregation;
use crate::chain::{Authorized, Request};
use crate::custom_resources::ServedKinds;
use crate::cx::ApiCx;
use crate::gates::OPENAPI_ENUMS;
use crate::negotiate::preferred;
use crate::routes::{Endpoint, Routes};
use content::{Conditions, bare, mark, put};
use document::Document;
use documents::{Documents, WholeForm};

const VERSION_2: &str = "/openapi/v2";
const VERSION_3: &str = "/openapi/v3";
const BELOW_VERSION_3: &str = "/openapi/v3/";

const JSON: &str = "application/json";
const PROTOBUF_2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_3: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// The names of the protobuf forms that older clients know; `@` may not occur in media types.
const OLD_PROTOBUF_2: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const OLD_PROTOBUF_3: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

/// How long a document that was asked for by its hash may be kept.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Adds the paths.
pub(crate) fn install(routes: &mut Routes, served: &Arc<ServedKinds>, aggregation: &Arc<Aggregation>, gates: &Gates) {
    let choices = if gates.enabled(OPENAPI_ENUMS) { Choices::Told } else { Choices::Untold };
    let documents = Arc::new(Documents::new(served, aggregation, choices));
    let aggregation = Arc::clone(aggregation);
    routes.exact(VERSION_2, Arc::new(Version2 { documents: Arc::clone(&documents) }));
    let endpoint: Arc<dyn Endpoint> = Arc::new(Version3 { documents, aggregation });
    routes.exact(VERSION_3, Arc::clone(&endpoint));
    routes.prefix(BELOW_VERSION_3, endpoint);
}

struct Version2 {
    documents: Arc<Documents>,
}

#[async_trait]
impl Endpoint for Version2 {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        require_read(&request)?;
        let Some(media) = preferred(request.preferences().accept(), &[JSON, OLD_PROTOBUF_2, PROTOBUF_2]) else {
            let mut refusal = bare(StatusCode::NOT_ACCEPTABLE);
            vary_by_form(&mut refusal);
            refusal.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
            return Ok(refusal);
        };
        let conditions = Conditions::of(request.headers());
        let (documents, now) = (Arc::clone(&self.documents), cx.clock().wall());
        // Parts are those of the document itself.
        let gzip = request.preferences().gzip && !conditions.wants_part();
        // Making documents takes a while; other requests must not wait for it.
        let made = tokio::task::spawn_blocking(move || {
            let form = if media == JSON { WholeForm::Json } else { WholeForm::Protobuf };
            let whole = documents.whole(form, now)?;
            if conditions.has(&whole.hash, Some(whole.made)) {
                return Ok((bare(StatusCode::NOT_MODIFIED), whole));
            }
            let content = if gzip { whole.content.packed() } else { whole.content.plain()? };
            let media = if media == JSON { JSON } else { PROTOBUF_2 };
            Ok((conditions.answer(content, media, &whole.hash, Some(whole.made)), whole))
        });
        let (mut response, whole) = made.await.map_err(ApiError::internal)?.map_err(|error: std::io::Error| {
            ApiError::internal(format!("cannot unpack the OpenAPI document: {error}"))
        })?;
        if gzip && response.status() == StatusCode::OK {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        vary_by_form(&mut response);
        mark(&mut response, &whole.hash, Some(whole.made));
        Ok(response)
    }
}

/// The document of version 2 can be had compressed, whether it is or not.
fn vary_by_form(response: &mut Response) {
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

struct Version3 {
    documents: Arc<Documents>,
    aggregation: Arc<Aggregation>,
}

#[async_trait]
impl Endpoint for Version3 {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let path = request.info().path.clone();
        let (documents, now) = (Arc::clone(&self.documents), cx.clock().wall());
        let Some(key) = path.strip_prefix(BELOW_VERSION_3).map(|key| key.trim_end_matches('/').to_owned()) else {
            let index = tokio::task::spawn_blocking(move || documents.index(now));
            return Ok(index_answer(&request, index.await.map_err(ApiError::internal)?));
        };
        let others = &self.aggregation;
        let remote = others.remote_of(&format!("/{key}"));
        let document = match remote.as_deref().map(|remote| (remote, others.converted(remote))) {
            Some((remote, None)) => return passed_on::serve(others, cx, remote, request).await,
            Some((_, converted)) => converted,
            None => {
                let made = tokio::task::spawn_blocking(move || documents.part(&key, now));
                made.await.map_err(ApiError::internal)?
            }
        };
        let Some(document) = document else { return Ok(bare(StatusCode::NOT_FOUND)) };
        let Some(media) = preferred(request.preferences().accept(), &[JSON, PROTOBUF_3, OLD_PROTOBUF_3]) else {
            let mut response = bare(StatusCode::NOT_ACCEPTABLE);
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            return Ok(response);
        };
        match request.query().first("hash") {
            Some(hash) if hash != document.hash => redirect(&path, &document, media),
            Some(_) => answer(&request, document, media, Some(cx)).await,
            None => answer(&request, document, media, None).await,
        }
    }
}

/// The index has one form, whatever the client takes and whatever the method is, and goes by its time alone.
fn index_answer(request: &Request<Authorized>, index: Document) -> Response {
    let conditions = Conditions::of(request.headers());
    let made = Some(index.made);
    let mut response = if conditions.is_up_to_date(made) {
        bare(StatusCode::NOT_MODIFIED)
    } else {
        conditions.answer(index.json, "text/plain; charset=utf-8", &index.hash, made)
    };
    put(response.headers_mut(), LAST_MODIFIED, &http_date::render(index.made));
    response
}

fn require_read(request: &Request<Authorized>) -> Result<(), ApiError> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads.then_some(()).ok_or_else(ApiError::method_not_allowed)
}

/// The document; one that was asked for by its hash never changes, and may be kept for a year.
async fn answer(
    request: &Request<Authorized>,
    document: Document,
    media: &str,
    forever: Option<&ApiCx>,
) -> Result<Response, ApiError> {
    let conditions = Conditions::of(request.headers());
    let Document { json, hash, made } = document;
    let made = Some(made);
    let mut response = if conditions.has(&hash, made) {
        bare(StatusCode::NOT_MODIFIED)
    } else if media == JSON {
        conditions.answer(json, JSON, &hash, made)
    } else {
        let packed = tokio::task::spawn_blocking(move || {
            let value: Value = api_machinery::json::parse_value(&String::from_utf8_lossy(&json))?;
            Ok(version3_protobuf(&value))
        });
        let packed = packed.await.map_err(ApiError::internal)?;
        let packed = packed.map_err(|error: api_machinery::json::DecodeError| ApiError::internal(error))?;
        conditions.answer(packed.into(), PROTOBUF_3, &hash, made)
    };
    mark(&mut response, &hash, made);
    if let Some(cx) = forever {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        put(headers, EXPIRES, &http_date::render(cx.clock().wall() + YEAR));
    }
    Ok(response)
}

fn redirect(path: &str, document: &Document, media: &'static str) -> Result<Response, ApiError> {
    let mut response = bare(StatusCode::MOVED_PERMANENTLY);
    let location = format!("{path}?hash={}", document.hash);
    let location = HeaderValue::from_str(&location).map_err(ApiError::internal)?;
    mark(&mut response, &document.hash, None);
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(if media == JSON { JSON } else { PROTOBUF_3 }));
    Ok(response)
}
