//! Paths that the server itself answers: health, version, metrics.

use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::flags::Versions;
use component_base::health::Health;
use component_base::serving::{Response, full, text};
use component_base::version;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::routing;
use crate::routes::{Endpoint, Routes};

const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];
const HEALTH_BELOW: [&str; 3] = ["/healthz/", "/livez/", "/readyz/"];
const VERSION: [&str; 2] = ["/version", "/version/"];

/// Adds the paths.
pub(super) fn install(routes: &mut Routes) {
    let own: Arc<dyn Endpoint> = Arc::new(Own);
    for path in HEALTH.into_iter().chain(VERSION).chain(["/metrics", "/metrics/slis"]) {
        routes.exact(path, Arc::clone(&own));
    }
    for prefix in HEALTH_BELOW {
        routes.prefix(prefix, Arc::clone(&own));
    }
}

struct Own;

#[async_trait]
impl Endpoint for Own {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let path = request.info().path.as_str();
        if HEALTH_BELOW.contains(&path) {
            return Ok(not_found());
        }
        if Health::serves(path) {
            return Ok(health(cx, path, &request).await);
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path {
            "/metrics" if request.method() == Method::DELETE && cx.config.debugging.profiling => {
                cx.metrics.registry.reset();
                Ok(text(StatusCode::OK, "metrics reset\n"))
            }
            "/metrics" if is_read => Ok(cx.metrics.registry.answer_to(request.headers())),
            "/metrics/slis" if is_read => Ok(cx.metrics.slis.answer_to(request.headers())),
            "/version" | "/version/" if request.method() == Method::GET => {
                let produced = routing::Produced::Only("application/json");
                routing::require_accepted(request.headers(), request.preferences().forms(), produced)?;
                Ok(version_document(cx.lifecycle.versions()))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

async fn health(cx: &ApiCx, path: &str, request: &Request<Authorized>) -> Response {
    let answer = cx.health.answer(path, request.uri().query()).await;
    let answer = answer.unwrap_or_else(not_found);
    if path == "/readyz" && answer.status() == StatusCode::OK {
        cx.lifecycle.events().has_been_ready.signal();
    }
    answer
}

/// No such path, not such an object: plain text.
fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn version_document(versions: Versions) -> Response {
    let mut response = Response::new(full(version::document(versions.emulated, versions.min_compatible)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
