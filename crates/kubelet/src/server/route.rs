//! Which path leads where.

use std::sync::Arc;

use api_machinery::json;
use api_machinery::object::Object as _;
use api_types::core_v1::Pod;
use api_types::kubelet_config_v1beta1::{API_VERSION, KIND};
use bytes::Bytes;
use component_base::health::Health;
use component_base::serving::{self, Query, Request, Response, decode_query, text};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::{Api, cadvisor, debug, logs, resource, stats, streams};

/// Paths of handlers that may be turned off as a whole.
const DEBUGGING: [&str; 7] = ["run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs"];

/// Everything.
pub(super) async fn full(api: Arc<Api>, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if let Some(response) = common(api.clone(), (&method, &uri, request.headers())).await {
        return response;
    }
    let Some(parts) = segments(uri.path()) else { return text(StatusCode::BAD_REQUEST, "invalid path") };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if api.config.enable_debugging_handlers == Some(false) {
        return match parts.as_slice() {
            [first, ..] if DEBUGGING.contains(first) => disabled("Debug endpoints are disabled."),
            ["debug", "pprof", ..] => disabled("Debug endpoints are disabled."),
            _ => not_found(),
        };
    }
    if parts.first() == Some(&"checkpoint") && !api.checkpoints {
        return not_found();
    }
    if let Some(refusal) = refused(&parts, &method) {
        return refusal;
    }
    match (parts.as_slice(), Query::parse(uri.query().unwrap_or_default())) {
        (["containerLogs", rest @ ..], query) => logs::answer(&api, rest, query).await,
        (_, None) => text(StatusCode::BAD_REQUEST, "invalid query"),
        (["exec", rest @ ..], Some(query)) => streams::exec(api, request, rest, &query).await,
        (["attach", rest @ ..], Some(query)) => streams::attach(api, request, rest, &query).await,
        (["portForward", rest @ ..], Some(query)) => streams::port_forward(api, request, rest, &query).await,
        (["run", rest @ ..], Some(query)) => debug::run(api, rest, &query).await,
        (["checkpoint", rest @ ..], Some(query)) => debug::checkpoint(api, rest, &query).await,
        (["runningpods"], _) => pod_list(api.engine.running_pods().await.iter()),
        (["configz"], _) => configz(&api),
        (["flagz" | "statusz"], _) => {
            api.zpages.answer(uri.path().trim_end_matches('/'), request.headers()).unwrap_or_else(not_found)
        }
        (["logs", rest @ ..], Some(query)) => api.node_logs.answer(rest, &query, request.headers()).await,
        (["debug", "flags", "v"], _) => debug::verbosity(&api, request).await,
        (["debug", "pprof", ..], _) => debug::profiles(&api, request).await,
        _ => not_found(),
    }
}

/// The methods of a route. What upstream has as a plain handler, such as `/metrics`, answers any.
fn methods(path: &[&str]) -> Option<&'static [Method]> {
    const GET: &[Method] = &[Method::GET];
    const POST: &[Method] = &[Method::POST];
    const GET_AND_POST: &[Method] = &[Method::GET, Method::POST];
    match path {
        ["pods" | "runningpods"] | ["containerLogs" | "logs", ..] | ["debug", "pprof", ..] => Some(GET),
        ["run" | "checkpoint", ..] => Some(POST),
        ["exec" | "attach" | "portForward", ..] | ["stats", "summary"] => Some(GET_AND_POST),
        _ => None,
    }
}

/// The answer where the path is not there for the method.
fn refused(path: &[&str], method: &Method) -> Option<Response> {
    let allowed = methods(path).filter(|allowed| !allowed.contains(method))?;
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
    let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    response.headers_mut().extend(HeaderValue::from_str(&allowed.join(", ")).map(|value| (header::ALLOW, value)));
    Some(response)
}

/// The part that needs no authentication.
pub(super) async fn read_only(api: Arc<Api>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    drop(body);
    common(api.clone(), (&parts.method, &parts.uri, &parts.headers)).await.unwrap_or_else(not_found)
}

async fn common(api: Arc<Api>, (method, uri, headers): (&Method, &Uri, &HeaderMap)) -> Option<Response> {
    let (path, query) = (uri.path(), uri.query());
    if Health::serves(path) && path.starts_with("/healthz") {
        return Some(api.health.answer(path, query).await.unwrap_or_else(not_found));
    }
    let path = path.trim_end_matches('/');
    if matches!(path, "/pods" | "/stats/summary") {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        if let Some(refusal) = refused(&parts, method) {
            return Some(refusal);
        }
    }
    Some(match path {
        "/pods" => {
            let pods = api.engine.pods();
            pod_list(pods.iter().map(AsRef::as_ref))
        }
        "/metrics" => {
            api.engine.show_metrics();
            api.engine.show_logs().await;
            let rooms = (api.claims)(api.engine.active_pods()).await;
            api.own.show_claims(&rooms, &mut api.claims_shown.lock());
            crate::certificates::show(&api.config, &api.cert_dir, &api.own, api.clock.wall());
            api.metrics.answer_to(headers)
        }
        "/metrics/slis" => api.slis.answer_to(headers),
        "/metrics/resource" => resource::answer(&api).await,
        "/metrics/probes" => api.probes.answer_to(headers),
        "/metrics/cadvisor" => cadvisor::answer(&api).await,
        "/stats/summary" => {
            let only = query.and_then(Query::parse).is_some_and(|query| query.is_on("only_cpu_and_memory"));
            stats::summary(&api, if only { stats::Extent::CpuAndMemory } else { stats::Extent::All }).await
        }
        _ => return None,
    })
}

/// The decoded elements of a path; nothing if an escape is broken.
fn segments(path: &str) -> Option<Vec<String>> {
    // A plus is itself in a path.
    let decode = |part: &str| decode_query(&part.replace('+', "%2B"));
    path.trim_matches('/').split('/').map(decode).collect()
}

pub(super) fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// What was turned off.
pub(super) fn disabled(what: &str) -> Response {
    text(StatusCode::METHOD_NOT_ALLOWED, format!("{what}\n"))
}

/// An answer in JSON.
pub(super) fn json_answer(content: impl Into<Bytes>) -> Response {
    let mut response = Response::new(serving::full(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn pod_list<'a>(pods: impl Iterator<Item = &'a Pod>) -> Response {
    let items: Vec<String> = pods.map(|pod| json::encode(pod.as_reflect())).collect();
    let text =
        format!("{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"items\":[{}]}}", items.join(","));
    json_answer(text)
}

fn configz(api: &Api) -> Response {
    let config = json::encode_typed(KIND, API_VERSION, api.config.as_ref());
    json_answer(format!("{{\"kubeletconfig\":{config}}}"))
}
