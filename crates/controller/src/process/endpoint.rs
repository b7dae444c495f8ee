//! A manager's own HTTPS endpoint: health, metrics, configuration, the log's verbosity.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::Value;
use component_base::debugging::Debugging;
use component_base::health::Health;
use component_base::metrics::Metrics;
use component_base::serving::{Handler, Request, Response, full, text};
use component_base::zpages::Zpages;
use http::{HeaderValue, Method, StatusCode, header};

use super::access::Access;
use crate::DebugPages;

/// The longest time a request may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// Answers requests.
pub(super) struct Endpoint {
    pub(super) access: Arc<Access>,
    pub(super) health: Arc<Health>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) slis: Arc<Metrics>,
    pub(super) config: Value,
    pub(super) zpages: Zpages,
    /// `/debug`, with `--profiling`.
    pub(super) debugging: Option<Debugging>,
    /// Whether `/livez` and `/readyz` exist.
    pub(super) probes: bool,
    pub(super) page: Option<super::Page>,
    pub(super) debug_pages: DebugPages,
}

#[async_trait::async_trait]
impl Handler for Endpoint {
    async fn handle(&self, request: Request) -> Response {
        let answer = tokio::time::timeout(DEADLINE, self.answer(request)).await;
        let mut response = answer.unwrap_or_else(|_| text(StatusCode::GATEWAY_TIMEOUT, "request timed out\n"));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        response
    }
}

impl Endpoint {
    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        if let Some(refusal) = self.access.refuse(&parts).await {
            return refusal;
        }
        let (path, query) = (parts.uri.path(), parts.uri.query());
        match (path, &parts.method) {
            // The two newer endpoints do not exist in managers of controllers, as upstream.
            _ if is_health(path, "/healthz")
                || (self.probes && (is_health(path, "/livez") || is_health(path, "/readyz"))) =>
            {
                self.health.answer(path, query).await.unwrap_or_else(not_found)
            }
            _ if self.page.as_ref().is_some_and(|page| page.path == path) => {
                self.page.as_ref().map_or_else(not_found, |page| (page.answer)())
            }
            ("/metrics", _) => self.metrics.answer_to(&parts.headers),
            ("/metrics/slis", &Method::DELETE) => {
                self.slis.reset();
                text(StatusCode::OK, "metrics reset\n")
            }
            ("/metrics/slis", _) => self.slis.answer_to(&parts.headers),
            ("/configz", _) => typed(self.config.to_string(), "application/json"),
            (_, method) => match (&self.debugging, self.debug_pages.answer(path, query)) {
                (_, Some(page)) => typed(page.body, page.content_type),
                (Some(debugging), _) if Debugging::serves(path) => debugging.answer(path, method, body).await,
                _ => self.zpages.answer(path, &parts.headers).unwrap_or_else(not_found),
            },
        }
    }
}

fn is_health(path: &str, endpoint: &str) -> bool {
    path.strip_prefix(endpoint).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// What is no HTML, and not to be taken for it.
fn typed(body: String, content_type: &'static str) -> Response {
    let mut response = Response::new(full(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
