//! Requests passed on to the server that answers for their version, and its answers back. Who they are from, whether they
//! may and what is told of them was this server's to say; what comes of them is the other's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use base::Connection;
use base::trace::{self, Kind};
use component_base::serving::{Body, Response, text};
use http::header::{HOST, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use streaming::proxy_upgrade;

use super::destination::{self, NoDestination};
use super::identity;
use super::state::Aggregation;
use super::table::Remote;
use crate::chain::observe::count_not_passed_on;
use crate::chain::{Authorized, Request};
use crate::config::Redirects;
use crate::cx::ApiCx;
use crate::node_proxy::connection::Backend;
use crate::node_proxy::proxy::{strip_connection, strip_cors};
use crate::node_proxy::upgrade::{answer, prepared};
use crate::respond::path_and_query;
use crate::routes::{Endpoint, Finder};

const UNAVAILABLE: &str = "service unavailable\n";
const REDIRECTED: &str = "the backend attempted to redirect this request, which is not permitted";
/// How long the document of a version may take.
const DOCUMENT_LIMIT: Duration = Duration::from_secs(5);

/// Finds the places of other servers.
pub(super) struct Elsewhere(pub(super) Arc<Aggregation>);

impl Finder for Elsewhere {
    fn find(&self, path: &str) -> Option<Arc<dyn Endpoint>> {
        let remote = self.0.remote_of(path)?;
        Some(Arc::new(RemoteEndpoint { aggregation: Arc::clone(&self.0), remote }))
    }
}

/// A version of another server.
struct RemoteEndpoint {
    aggregation: Arc<Aggregation>,
    remote: Arc<Remote>,
}

#[async_trait]
impl Endpoint for RemoteEndpoint {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        serve(&self.aggregation, cx, &self.remote, request).await
    }
}

/// Passes a request on.
///
/// # Errors
/// 500 when its user cannot be told of in a header, or an upgrade goes wrong.
pub(crate) async fn serve(
    aggregation: &Aggregation,
    cx: &Arc<ApiCx>,
    remote: &Remote,
    request: Request<Authorized>,
) -> Result<Response, ApiError> {
    let refuse = |code: StatusCode, why: String| {
        count_not_passed_on(&cx.metrics, request.info(), code);
        Ok(text(code, why))
    };
    if !remote.is_available {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE.to_owned());
    }
    let backend = match destination::of(cx, remote).await {
        Ok(backend) => backend,
        Err(NoDestination::Tls(error)) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        Err(error) => {
            tracing::warn!(%error, apiservice = remote.name, "No server was found behind an APIService");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE.to_owned());
        }
    };
    if streaming::is_upgrade(request.headers()) {
        return match backend.dial().await {
            Ok(io) => upgrade(aggregation, cx, request, &backend, io, None).await,
            Err(error) => Ok(broken(aggregation, &error)),
        };
    }
    let is_document = request.info().path == remote.path();
    let passed = pass_on(aggregation, cx, remote, request, &backend);
    let passed = if is_document {
        let timed_out = || Ok(unreachable(&"context deadline exceeded"));
        tokio::time::timeout(DOCUMENT_LIMIT, passed).await.unwrap_or_else(|_| timed_out())
    } else {
        passed.await
    };
    passed.map(|response| permitted(cx.config().aggregation.redirects, response))
}

/// A header that this server adds to what it passes on.
pub(crate) type Mark = Option<(HeaderName, HeaderValue)>;

/// A connection that changes its protocol: what the server refuses ends it, and a redirect is an error.
///
/// # Errors
/// When the user cannot be told of in a header, or the server breaks the protocol.
pub(crate) async fn upgrade(
    aggregation: &Aggregation,
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
    backend: &Backend,
    io: Connection,
    mark: Mark,
) -> Result<Response, ApiError> {
    let (audited, user) = (request.audited().clone(), request.user().clone());
    let target = path_and_query(request.uri()).to_owned();
    let mut request = prepared(request);
    identity::tell(request.headers_mut(), &user, aggregation.uids).map_err(ApiError::internal)?;
    if let Some((name, value)) = mark {
        request.headers_mut().insert(name, value);
    }
    answer(cx, audited, proxy_upgrade(&mut request, io, &target, &backend.authority).await)
}

async fn pass_on(
    aggregation: &Aggregation,
    cx: &Arc<ApiCx>,
    remote: &Remote,
    request: Request<Authorized>,
    backend: &Backend,
) -> Result<Response, ApiError> {
    let mut onward = onward(aggregation, request, backend, None)?;
    let span = trace::child_of_kind("HTTP", Kind::Client);
    trace::inject(&span, onward.headers_mut());
    match remote.connections.send(backend, onward, cx.tasks()).await {
        Ok(response) => Ok(cleaned(response)),
        Err(error) => Ok(broken(aggregation, &error)),
    }
}

/// A request as the other server gets it: on the same path, from the same user, on this server's connection.
///
/// # Errors
/// When the user cannot be told of in a header.
pub(crate) fn onward(
    aggregation: &Aggregation,
    request: Request<Authorized>,
    backend: &Backend,
    mark: Mark,
) -> Result<http::Request<Body>, ApiError> {
    let user = request.user().clone();
    let (path, target) = (request.uri().path().to_owned(), path_and_query(request.uri()).to_owned());
    let (mut parts, body) = prepared(request).into_parts();
    let host = parts.headers.remove(HOST).or_else(|| {
        let authority = parts.uri.authority().map(|own| HeaderValue::from_str(own.as_str()));
        authority.and_then(Result::ok)
    });
    let value = |text: &str| HeaderValue::from_str(text).map_err(ApiError::internal);
    let headers = &mut parts.headers;
    strip_connection(headers);
    identity::tell(headers, &user, aggregation.uids).map_err(ApiError::internal)?;
    headers.insert(HeaderName::from_static("x-forwarded-uri"), value(&path)?);
    headers.insert(HeaderName::from_static("x-forwarded-proto"), HeaderValue::from_static("https"));
    if let Some(host) = host {
        headers.insert(HeaderName::from_static("x-forwarded-host"), host);
    }
    headers.insert(HOST, value(&backend.authority)?);
    if let Some((name, value)) = mark {
        headers.insert(name, value);
    }
    let mut onward = http::Request::new(body);
    *onward.method_mut() = parts.method;
    *onward.uri_mut() = target.parse().map_err(ApiError::internal)?;
    *onward.headers_mut() = parts.headers;
    Ok(onward)
}

/// Another server's answer as clients get it.
pub(crate) fn cleaned(mut response: Response) -> Response {
    strip_connection(response.headers_mut());
    strip_cors(response.headers_mut());
    response
}

fn broken(aggregation: &Aggregation, error: &io::Error) -> Response {
    aggregation.metrics.note_failure(error);
    unreachable(error)
}

/// The answer where the other server has none.
pub(crate) fn unreachable(error: &dyn std::fmt::Display) -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}

/// The answer, unless it would send the client elsewhere with its credentials (CVE-2022-3172).
pub(crate) fn permitted(redirects: Redirects, response: Response) -> Response {
    let leads_away = response.status().is_redirection() && response.headers().contains_key(LOCATION);
    if leads_away && redirects == Redirects::Rejected { text(StatusCode::BAD_GATEWAY, REDIRECTED) } else { response }
}

#[cfg(test)]
mod tests {
    use component_base::serving::empty;

    use super::*;

    #[test]
    fn redirects_are_rejected_unless_they_are_asked_for() {
        let answer = |code: u16, leads: bool| {
            let response = http::Response::builder().status(code);
            let response = if leads { response.header(LOCATION, "https://elsewhere/") } else { response };
            response.body(empty()).unwrap()
        };
        for (code, leads, expected) in [
            (301, true, 502),
            (302, true, 502),
            (307, true, 502),
            (308, true, 502),
            (304, false, 304),
            (201, true, 201),
        ] {
            assert_eq!(permitted(Redirects::Rejected, answer(code, leads)).status(), expected, "{code}");
            assert_eq!(permitted(Redirects::Passed, answer(code, leads)).status(), code, "{code}");
        }
    }
}
