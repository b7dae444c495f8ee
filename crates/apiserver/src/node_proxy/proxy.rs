//! `proxy`: any request passed on to a pod, a Service or a node.

use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::{Response, empty};
use http::header::{CONNECTION, HOST, LOCATION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use streaming::proxy_upgrade;

use super::access::admit_connect;
use super::connection::Backend;
use super::kubelet::Kubelets;
use super::page_body::Pages;
use super::proxy_id::ProxyId;
use super::{forward, proxy_target, upgrade};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;
use crate::routes::Endpoint;

/// Headers that are about one connection only.
const HOP_BY_HOP: [&str; 6] =
    ["keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"];
/// What a backend says of other origins is not about this server.
const CORS: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];

/// The subresource.
pub(super) struct Proxy {
    pub(super) kubelets: Arc<Kubelets>,
    pub(super) pages: Arc<Pages>,
}

#[async_trait]
impl Endpoint for Proxy {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let info = Arc::clone(request.info());
        admit_connect(cx, &request).await?;
        let raw = request.uri().path().to_owned();
        let own = ProxyPath::of(&raw, &info);
        let backend = self.backend(cx, &info).await?;
        if own.rest.is_empty() && matches!(*request.method(), Method::GET | Method::HEAD) {
            return redirect_to_root(&raw, request.uri());
        }
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = if own.rest.is_empty() { "/" } else { own.rest };
        let target = format!("{path}{query}");
        if streaming::is_upgrade(request.headers()) {
            let io = backend.dial().await.map_err(|error| unavailable(&error))?;
            let audited = request.audited().clone();
            let mut request = upgrade::prepared(request);
            return upgrade::answer(cx, audited, proxy_upgrade(&mut request, io, &target, &backend.authority).await);
        }
        let response = pass_on(cx, request, &backend, &target, own.prefix).await?;
        let (authority, prefix) = (backend.authority.clone(), own.prefix.to_owned());
        self.pages.with_links(response, move |link| rewritten(link, &authority, &prefix))
    }
}

impl Proxy {
    async fn backend(&self, cx: &ApiCx, info: &RequestInfo) -> Result<Backend, ApiError> {
        let kind = info.resource.trim_end_matches('s');
        let id = ProxyId::parse(&info.name);
        let id = id.ok_or_else(|| ApiError::bad_request(format!("invalid {kind} request {:?}", info.name)))?;
        match info.resource.as_str() {
            "pods" => proxy_target::of_pod(cx, &info.namespace, &id).await,
            "services" => proxy_target::of_service(cx, &info.namespace, &id).await,
            _ => proxy_target::of_node(cx, &self.kubelets, &id).await,
        }
    }
}

/// A path cut behind `proxy`.
struct ProxyPath<'a> {
    /// Up to and with `proxy`.
    prefix: &'a str,
    /// The backend's path, with its slash; empty where there is none.
    rest: &'a str,
}

impl<'a> ProxyPath<'a> {
    /// The path as sent, since decoding it would change what the backend gets.
    fn of(raw: &'a str, info: &RequestInfo) -> Self {
        // "", api, v1, [namespaces, ns,] resource, id, proxy
        let segments = if info.namespace.is_empty() { 6 } else { 8 };
        let end = raw.match_indices('/').map(|(at, _)| at).nth(segments - 1).unwrap_or(raw.len());
        let (prefix, rest) = raw.split_at_checked(end).unwrap_or((raw, ""));
        Self { prefix, rest }
    }
}

/// Relative links of the backend's pages need the slash.
fn redirect_to_root(raw: &str, uri: &Uri) -> Result<Response, ApiError> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::from_str(&format!("{raw}/{query}")).map_err(ApiError::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

async fn pass_on(
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
    backend: &Backend,
    target: &str,
    prefix: &str,
) -> Result<Response, ApiError> {
    let original = request.uri().path().to_owned();
    let (mut parts, body) = upgrade::prepared(request).into_parts();
    let host = parts.headers.get(HOST).cloned();
    strip_connection(&mut parts.headers);
    let text = |text: &str| HeaderValue::from_str(text).map_err(ApiError::internal);
    parts.headers.insert(HeaderName::from_static("x-forwarded-uri"), text(&original)?);
    parts.headers.insert(HeaderName::from_static("x-forwarded-proto"), HeaderValue::from_static("https"));
    if let Some(host) = host {
        parts.headers.insert(HeaderName::from_static("x-forwarded-host"), host);
    }
    parts.headers.insert(HOST, text(&backend.authority)?);
    let mut onward = http::Request::new(body);
    *onward.method_mut() = parts.method;
    *onward.uri_mut() = target.parse().map_err(ApiError::internal)?;
    *onward.headers_mut() = parts.headers;
    let io = backend.dial().await.map_err(|error| unavailable(&error))?;
    let mut response = forward::send(io, onward, cx.tasks()).await.map_err(|error| unavailable(&error))?;
    let headers = response.headers_mut();
    strip_connection(headers);
    strip_cors(headers);
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    if let Some(location) = location.and_then(|location| rewritten(location, &backend.authority, prefix))
        && let Ok(location) = HeaderValue::from_str(&location)
    {
        headers.insert(LOCATION, location);
    }
    Ok(response)
}

/// Takes away what is about one connection only, and what `Connection` says is.
pub(crate) fn strip_connection(headers: &mut HeaderMap) {
    let listed = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let names: Vec<HeaderName> =
        listed.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(*name)));
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
}

/// Takes away what a backend says of other origins.
pub(crate) fn strip_cors(headers: &mut HeaderMap) {
    CORS.iter().for_each(|name| drop(headers.remove(*name)));
}

/// A redirect or a link within the backend, as the client can follow it: below the proxy's own path.
fn rewritten(location: &str, authority: &str, prefix: &str) -> Option<String> {
    let path = ["http://", "https://"].iter().find_map(|scheme| location.strip_prefix(scheme));
    match path {
        Some(rest) => rest.strip_prefix(authority).map(|path| format!("{prefix}{path}")),
        // A backend that knows where it is reached writes such links itself.
        None if location.starts_with(prefix) => None,
        None if location.starts_with('/') && !location.starts_with("//") => Some(format!("{prefix}{location}")),
        None => None,
    }
}

fn unavailable(error: &std::io::Error) -> ApiError {
    ApiError::service_unavailable(format!("error trying to reach service: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    #[test]
    fn paths_are_cut_behind_the_proxy() {
        let cases = [
            ("/api/v1/namespaces/n/pods/p:80/proxy/a%2Fb/", "/api/v1/namespaces/n/pods/p:80/proxy", "/a%2Fb/"),
            ("/api/v1/namespaces/n/services/s/proxy", "/api/v1/namespaces/n/services/s/proxy", ""),
            ("/api/v1/nodes/x/proxy/proxy/x", "/api/v1/nodes/x/proxy", "/proxy/x"),
        ];
        for (path, prefix, rest) in cases {
            let info = RequestInfo::new(&Method::GET, path, &Query::default()).unwrap();
            let own = ProxyPath::of(path, &info);
            assert_eq!((own.prefix, own.rest), (prefix, rest));
        }
    }

    #[test]
    fn headers_of_one_connection_stay_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "close, X-Own"), ("x-own", "1"), ("keep-alive", "5"), ("x-kept", "1")] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        strip_connection(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-kept"]);
    }

    #[test]
    fn redirects_stay_below_the_proxy() {
        let cases = [
            ("/x", Some("/p/x")),
            ("http://10.0.0.1:80/x", Some("/p/x")),
            ("http://elsewhere/x", None),
            ("//elsewhere/x", None),
            ("x", None),
            ("/p/x", None),
        ];
        for (location, expected) in cases {
            assert_eq!(rewritten(location, "10.0.0.1:80", "/p").as_deref(), expected, "{location}");
        }
    }
}
