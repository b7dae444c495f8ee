//! The trace that a request belongs to: whose it is, and the span that the request is in it (KEP-647).

use std::sync::Arc;
use std::time::SystemTime;

use api_types::authentication_v1::UserInfo;
use base::trace::{AttributeValue, Kind, Scope, Span, SpanContext, TRACESTATE};
use component_base::serving::{Response, hold};
use http::HeaderMap;
use tracing_otlp::Parent;

use super::audit_id;
use super::refusal::Refusal;
use super::stages::{Authenticated, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;
use crate::respond::path_and_query;

/// Whose traces go on here, and who so decides what is recorded.
const TRUSTED: [&str; 2] = ["system:masters", "system:monitoring"];
/// How much of a client's audit ID is told.
const AUDIT_ID_LETTERS: usize = 64;

/// Finds out to which trace a request belongs, and its span there; nothing where nobody traces it. `begun` is when it was begun
/// to find out who sent it, where traces are recorded here.
pub(super) fn begin(cx: &ApiCx, request: &Request<Authenticated>, begun: Option<SystemTime>) -> Option<(Scope, Span)> {
    let told = SpanContext::extract(request.headers());
    let Some(tracer) = &cx.tracer else {
        return Some((Scope::passed_on(told?, state(request.headers())), Span::none()));
    };
    let is_trusted = is_trusted(request.sender());
    let parent = match told {
        Some(told) if is_trusted => Parent::Trusted(told),
        Some(told) => Parent::Public(told),
        None => Parent::None,
    };
    let state = if is_trusted { state(request.headers()) } else { None };
    let (context, mut span) = tracer.root(parent, "");
    if span.is_recorded() {
        span.rename(name(request.method().as_str(), request.info()));
        span.set("http.target", path_and_query(request.uri()).to_owned());
        span.set("http.method", request.method().as_str().to_owned());
        span.set("audit-id", audit_id_of(request.headers()));
        if let Some(begun) = begun {
            span = span.since(begun);
        }
    }
    let scope = Scope::of(&span, state.clone()).unwrap_or_else(|| Scope::passed_on(context, state));
    if let Some(begun) = begun {
        drop(scope.child("authentication", Kind::Internal).since(begun));
    }
    Some((scope, span))
}

/// What came of the request; its span ends with the answer.
pub(super) fn end(mut span: Span, outcome: Result<Response, Refusal>) -> Result<Response, Refusal> {
    if !span.is_recorded() {
        return outcome;
    }
    let code = match &outcome {
        Ok(response) => response.status().as_u16(),
        Err(refusal) => refusal.code(),
    };
    span.set("http.status_code", i64::from(code));
    if code >= 500 {
        span.fail("");
    }
    outcome.map(|response| hold(response, span))
}

fn is_trusted(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| TRUSTED.contains(&group.as_str()))
}

fn state(headers: &HeaderMap) -> Option<http::HeaderValue> {
    headers.get(TRACESTATE).cloned()
}

fn audit_id_of(headers: &HeaderMap) -> String {
    let id = headers.get(audit_id::HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    id.chars().take(AUDIT_ID_LETTERS).collect()
}

/// What a request is called: its method, and its path without what is different from object to object.
fn name(method: &str, info: &RequestInfo) -> String {
    if !info.is_resource {
        return method.to_owned();
    }
    let mut name = format!("{method} /{}", info.api_prefix);
    let mut add = |part: &str| {
        name.push('/');
        name.push_str(part);
    };
    if !info.group.is_empty() {
        add(&info.group);
    }
    add(&info.version);
    if !info.namespace.is_empty() && info.resource != "namespaces" {
        add("namespaces/{:namespace}");
    }
    add(&info.resource);
    if !info.name.is_empty() {
        add("{:name}");
    }
    if !info.subresource.is_empty() {
        add(&info.subresource);
    }
    name
}

/// The span of a handler, named by what it does; spans that follow are below it.
pub(crate) fn handling<S>(name: &'static str, request: &Request<S>) -> base::trace::Entered {
    let mut span = base::trace::child(name);
    if span.is_recorded() {
        let info: &Arc<RequestInfo> = request.info();
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut set = |name, text: &str| span.set(name, AttributeValue::from(text.to_owned()));
        set("accept", header(http::header::ACCEPT));
        set("audit-id", &audit_id_of(request.headers()));
        set("client", &request.remote_address().map(|address| address.ip().to_string()).unwrap_or_default());
        set("api-group", &info.group);
        set("api-version", &info.version);
        set("name", &info.name);
        set("namespace", &info.namespace);
        set("resource", &info.resource);
        set("subresource", &info.subresource);
        set("url", path_and_query(request.uri()));
        set("user-agent", request.user_agent());
        set("verb", &info.verb);
    }
    span.entered()
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    #[test]
    fn requests_are_named_without_their_objects() {
        for (line, expected) in [
            ("GET /api/v1/pods", "GET /api/v1/pods"),
            ("GET /api/v1/namespaces/n/pods/p", "GET /api/v1/namespaces/{:namespace}/pods/{:name}"),
            ("POST /api/v1/namespaces", "POST /api/v1/namespaces"),
            ("GET /api/v1/namespaces/n", "GET /api/v1/namespaces/{:name}"),
            (
                "PATCH /apis/apps/v1/namespaces/n/deployments/d/status",
                "PATCH /apis/apps/v1/namespaces/{:namespace}/deployments/{:name}/status",
            ),
            ("GET /healthz", "GET"),
            ("GET /apis", "GET"),
        ] {
            let (method, path) = line.split_once(' ').unwrap();
            let method: Method = method.parse().unwrap();
            let info = RequestInfo::new(&method, path, &Query::default()).unwrap();
            assert_eq!(name(method.as_str(), &info), expected);
        }
    }
}
