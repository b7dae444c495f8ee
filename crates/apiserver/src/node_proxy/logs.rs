//! `log`: what a container has written.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::{GroupKind, GroupResource};
use api_machinery::status::{ApiError, PlainResponse};
use api_types::core_v1::Pod;
use async_trait::async_trait;
use bytes::BytesMut;
use component_base::Gates;
use component_base::serving::{Body, Response, empty};
use futures_util::TryStreamExt as _;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use streaming::{Accepted, accept_log_stream, is_websocket, send_log};
use tokio_util::io::StreamReader;

use super::access::read;
use super::kubelet::{Kubelets, Use, Verify};
use super::{container, forward, target, upgrade};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates::SPLIT_LOG_STREAMS;
use crate::request::Query;
use crate::routes::Endpoint;

/// How much of a node agent's error is shown.
const ERROR_BYTES: usize = 50_000;

/// The subresource.
pub(super) struct Logs {
    pub(super) kubelets: Arc<Kubelets>,
}

#[async_trait]
impl Endpoint for Logs {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        if request.method() != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
        let (info, query) = (Arc::clone(request.info()), request.query());
        let streams = Streams::by(cx.lifecycle.gates());
        check(query, &info.name, streams)?;
        let pod: Pod = read(cx, "pods", &info.namespace, &info.name).await?;
        let container = container::choose(&pod, &query.text("container"))?;
        if pod.spec.node_name.is_empty() {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        }
        let skips = query.flag("insecureSkipTLSVerifyBackend");
        cx.metrics.pod_logs.with(&[if skips { "skip_tls_allowed" } else { "enforce_tls" }]).inc();
        let verify = if skips { Verify::No } else { Verify::AsConfigured };
        let backend = self.kubelets.of_node(cx, &pod.spec.node_name, Use::Pods, verify).await?;
        let path = format!("/containerLogs/{}/{}/{container}", info.namespace, info.name);
        let target = target::target(&path, &parameters(query, streams));
        let onward = http::Request::get(&target).header(HOST, &backend.authority).body(empty());
        let onward = onward.map_err(ApiError::internal)?;
        let url = format!("https://{}{target}", backend.authority);
        let failed = |error: std::io::Error| ApiError::internal(format_args!("Get {url:?}: {error}"));
        let dialled = backend.dial().await;
        if dialled.as_ref().is_err_and(is_tls) {
            cx.metrics.log_tls_failures.with(&[]).inc();
        }
        let io = dialled.map_err(failed)?;
        let log = answer(forward::send(io, onward, cx.tasks()).await.map_err(failed)?, &url, &info.name).await?;
        Ok(if is_websocket(request.headers()) { over_websocket(cx, request, log) } else { log })
    }
}

/// Whether it is the other side's certificate that was found wanting.
fn is_tls(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// The log as messages. It is there already, so what went wrong on the way to it was answered in plain HTTP.
fn over_websocket(cx: &Arc<ApiCx>, request: Request<Authorized>, log: Response) -> Response {
    let audited = request.audited().clone();
    let accepted = match accept_log_stream(&mut upgrade::prepared(request)) {
        Ok(accepted) => accepted,
        Err(refusal) => return upgrade::refused(refusal),
    };
    let Accepted { response, dialect, upgrade } = accepted;
    let log = StreamReader::new(log.into_body().into_data_stream().map_err(std::io::Error::other));
    cx.tasks().spawn_cancellable("log-socket", async move {
        let sent = match upgrade.io().await {
            Ok(io) => send_log(io, dialect, log).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::debug!(error, "A log over a WebSocket ended");
        }
        drop(audited);
    });
    response.map(|()| empty())
}

/// The log, or the agent's error as the API's.
async fn answer(response: Response, url: &str, name: &str) -> Result<Response, ApiError> {
    let (parts, body) = response.into_parts();
    if parts.status.is_redirection() {
        return Err(ApiError::internal(format_args!("Get {url:?}: redirects forbidden")));
    }
    if !parts.status.is_success() {
        let text = beginning(body).await;
        let text = text.trim_end().to_owned();
        return Err(match parts.status.as_u16() {
            400 => ApiError::bad_request(text),
            500 => ApiError::internal(text),
            code => PlainResponse {
                code,
                method: "",
                resource: &GroupResource { group: "".into(), resource: "pods/log".into() },
                name,
                body: &text,
                retry_after_seconds: 0,
                unexpected: false,
            }
            .into(),
        });
    }
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn beginning(mut body: Body) -> String {
    let mut out = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let room = ERROR_BYTES.saturating_sub(out.len());
        out.extend_from_slice(data.get(..room).unwrap_or(data));
        if out.len() >= ERROR_BYTES {
            break;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Which streams of a log can be asked for (KEP-3288).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// Both together, and nobody says so.
    Together,
    /// Each alone, too.
    Each,
}

/// Both streams together.
const ALL_STREAMS: &str = "All";

impl Streams {
    fn by(gates: &Gates) -> Self {
        if gates.enabled(SPLIT_LOG_STREAMS) { Self::Each } else { Self::Together }
    }
}

/// The stream that is asked for, if the request says.
fn stream(query: &Query) -> Option<&str> {
    query.first("stream").filter(|stream| !stream.is_empty())
}

/// The options that node agents know.
fn parameters(query: &Query, streams: Streams) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::new();
    for name in ["follow", "previous", "timestamps"] {
        if query.flag(name) {
            parameters.push((name, "true".to_owned()));
        }
    }
    for name in ["sinceSeconds", "sinceTime", "tailLines", "limitBytes"] {
        if let Some(value) = query.first(name).filter(|value| !value.is_empty()) {
            parameters.push((name, value.to_owned()));
        }
    }
    if streams == Streams::Each {
        parameters.push(("stream", stream(query).unwrap_or(ALL_STREAMS).to_owned()));
    }
    parameters
}

/// The rules of the options.
fn check(query: &Query, name: &str, streams: Streams) -> Result<(), ApiError> {
    let (mut errors, number) = (ErrorList::default(), |name: &str| query.integer(name));
    let tail = number("tailLines")?;
    if let Some(lines) = tail.filter(|lines| *lines < 0) {
        errors.push(Path::new("tailLines").invalid(lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = number("limitBytes")?
        && bytes < 1
    {
        errors.push(Path::new("limitBytes").invalid(bytes, "must be greater than 0"));
    }
    let (seconds, time) = (number("sinceSeconds")?, query.first("sinceTime").filter(|time| !time.is_empty()));
    match (seconds, time) {
        (Some(_), Some(_)) => {
            errors.push(Path::default().forbidden("at most one of `sinceTime` or `sinceSeconds` may be specified"));
        }
        (Some(seconds), None) if seconds < 1 => {
            errors.push(Path::new("sinceSeconds").invalid(seconds, "must be greater than 0"));
        }
        _ => {}
    }
    check_stream(query, tail.is_some(), streams, &mut errors);
    let kind = GroupKind { group: "".into(), kind: "PodLogOptions".into() };
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&kind, name, &errors)) }
}

fn check_stream(query: &Query, is_tail: bool, streams: Streams, errors: &mut ErrorList) {
    const KNOWN: [&str; 3] = ["Stdout", "Stderr", ALL_STREAMS];
    let (Some(wanted), at) = (stream(query), Path::new("stream")) else { return };
    if streams == Streams::Together {
        return errors.push(at.forbidden("may not be specified"));
    }
    if !KNOWN.contains(&wanted) {
        errors.push(at.not_supported_in_order(wanted, &KNOWN));
    }
    if is_tail && wanted != ALL_STREAMS {
        let detail = "`tailLines` and specific `stream` are mutually exclusive for now";
        errors.push(Path::default().forbidden(detail));
    }
}

#[cfg(test)]
mod tests {
    use component_base::serving::text;

    use super::*;

    #[tokio::test]
    async fn errors_of_agents_become_the_servers() {
        for (code, expected) in [
            (400, "container \"c\" in pod \"p\" is waiting"),
            (500, "Internal error occurred: container \"c\" in pod \"p\" is waiting"),
            (404, "the server could not find the requested resource ( pods/log p)"),
            (503, "the server is currently unable to handle the request ( pods/log p)"),
            (302, "Get \"https://n\": redirects forbidden"),
        ] {
            let response = text(StatusCode::from_u16(code).unwrap(), "container \"c\" in pod \"p\" is waiting");
            let error = answer(response, "https://n", "p").await.err().unwrap();
            assert!(error.message.ends_with(expected), "{code}: {}", error.message);
            assert_eq!(error.code, if code == 302 { 500 } else { code });
        }
    }

    #[test]
    fn options_have_rules() {
        let cases = [
            ("", ""),
            ("tailLines=0&limitBytes=1&sinceSeconds=1", ""),
            ("tailLines=-1", "must be greater than or equal to 0"),
            ("limitBytes=0", "must be greater than 0"),
            ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", "at most one of `sinceTime`"),
            ("stream=Stdout", "may not be specified"),
            ("tailLines=x", "strconv.ParseInt"),
        ];
        for (query, expected) in cases {
            let result = check(&Query::parse(query), "p", Streams::Together).map_err(|error| error.message);
            let text = result.err().unwrap_or_default();
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{query}: {text}");
        }
        let sent = parameters(&Query::parse("follow=true&tailLines=5&previous=false&container=c"), Streams::Together);
        assert_eq!(target::target("/l", &sent), "/l?follow=true&tailLines=5");
    }

    #[test]
    fn a_stream_can_be_asked_for_where_that_is_on() {
        for (query, expected, sent) in [
            ("", "", "stream=All"),
            ("stream=All&tailLines=1", "", "stream=All&tailLines=1"),
            ("stream=Stderr&limitBytes=1", "", "limitBytes=1&stream=Stderr"),
            ("stream=Stdout&tailLines=1", "`tailLines` and specific `stream` are mutually exclusive for now", ""),
            ("stream=out", r#"stream: Unsupported value: "out": supported values: "Stdout", "Stderr", "All""#, ""),
        ] {
            let text = check(&Query::parse(query), "p", Streams::Each).err().map(|error| error.message);
            let text = text.unwrap_or_default();
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{query}: {text}");
            if expected.is_empty() {
                let parameters = parameters(&Query::parse(query), Streams::Each);
                assert_eq!(target::target("/l", &parameters), format!("/l?{sent}"));
            }
        }
    }
}
