//! What is measured and logged of every request, from its arrival until its answer is sent.

use std::sync::Arc;
use std::time::Duration;

use component_base::serving::{RemoteAddr, Response, TakenBy, hold};
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri, header};
use registry::Resource;
use tokio::time::Instant;

use super::stages::ReadBytes;
use crate::cx::ApiCx;
use crate::metrics::ApiMetrics;
use crate::request::{Query, RequestInfo};
use crate::respond::path_and_query;

/// Subresources that connect to somewhere else.
const CONNECTING: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];
const COMPONENT: &str = "apiserver";
/// What passes requests on to other servers.
const AGGREGATOR: &str = "aggregator";

/// The labels of a request. Values are empty where the server does not know the resource, so that clients cannot make
/// series up.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    verb: &'static str,
    info: Arc<RequestInfo>,
    is_known: bool,
    is_known_subresource: bool,
    scope: &'static str,
}

impl Labels {
    /// The labels of a request whose route is not known yet.
    pub(super) fn of_request(cx: &ApiCx, info: &Arc<RequestInfo>) -> Self {
        let known = cx.registry.resource(&info.group, &info.version, &info.resource);
        let is_subresource = |resource: &Resource| {
            resource.info().subresources.iter().any(|subresource| subresource.name == info.subresource)
        };
        Self {
            verb: "",
            info: Arc::clone(info),
            is_known: known.is_some(),
            is_known_subresource: known.is_some_and(|resource| is_subresource(&resource)),
            scope: scope(info),
        }
    }

    fn new(cx: &ApiCx, parts: &Parts, info: &Arc<RequestInfo>, query: &Query) -> Self {
        let labels = Self::of_request(cx, info);
        Self { verb: verb(parts, info, query, labels.scope), ..labels }
    }

    /// Verb, group, version, resource, subresource, scope and component.
    fn values(&self) -> [&str; 7] {
        let info = &*self.info;
        let own = |value| if self.is_known { value } else { "" };
        let subresource = if self.is_known_subresource { &*info.subresource } else { "" };
        [self.verb, own(&info.group), own(&info.version), own(&info.resource), subresource, self.scope, COMPONENT]
    }

    pub(super) fn count_termination(&self, metrics: &ApiMetrics, code: &str) {
        count_termination(metrics, self.values(), code);
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    if !info.is_resource {
        ""
    } else if !info.name.is_empty() || info.verb == "create" {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    }
}

fn count_termination(metrics: &ApiMetrics, labels: [&str; 7], code: &str) {
    let [verb, group, version, resource, subresource, scope, component] = labels;
    metrics.terminations.with(&[verb, group, version, resource, subresource, scope, component, code]).inc();
}

/// Counts a request for a version of another server that was not passed on. The resource is whatever the client says, and
/// stays unsaid.
pub(crate) fn count_not_passed_on(metrics: &ApiMetrics, info: &RequestInfo, code: StatusCode) {
    count_termination(metrics, ["", &info.group, &info.version, "", "", scope(info), AGGREGATOR], code.as_str());
}

fn verb(parts: &Parts, info: &RequestInfo, query: &Query, scope: &str) -> &'static str {
    if CONNECTING.contains(&info.subresource.as_str()) {
        return "CONNECT";
    }
    let is_apply = || {
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind == Some("application/apply-patch+yaml")
    };
    match parts.method.as_str() {
        "GET" | "HEAD" if query.flag("watch") || info.watch_prefix => "WATCH",
        "GET" | "HEAD" if matches!(scope, "resource" | "") => "GET",
        "GET" | "HEAD" => "LIST",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" if is_apply() => "APPLY",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// A request that is being worked on.
pub(super) struct Observation {
    cx: Arc<ApiCx>,
    labels: Labels,
    dry_run: &'static str,
    field_validation: &'static str,
    read_bytes: ReadBytes,
    /// Whether the route counts: unknown paths do not.
    counted: bool,
    refused: bool,
    long_running: bool,
    /// Whether the server asks itself.
    is_own: bool,
    started: Instant,
    line: Line,
    code: String,
}

/// What the log says, put into words only where it does.
struct Line {
    uri: Uri,
    user_agent: Option<HeaderValue>,
    source: Option<RemoteAddr>,
}

impl Observation {
    pub(super) fn begin(cx: &Arc<ApiCx>, parts: &Parts, info: &Arc<RequestInfo>, query: &Query) -> Self {
        let labels = Labels::new(cx, parts, info, query);
        let dry_run = match query.first("dryRun") {
            None => "",
            Some("All") => "All",
            Some(_) => "invalid",
        };
        let observation = Self {
            cx: Arc::clone(cx),
            dry_run,
            field_validation: match query.first("fieldValidation") {
                None | Some("") => "",
                Some("Ignore") => "Ignore",
                Some("Warn") => "Warn",
                Some("Strict") => "Strict",
                Some(_) => "invalid",
            },
            read_bytes: ReadBytes::default(),
            counted: info.is_resource && labels.is_known,
            refused: false,
            long_running: info.is_long_running(),
            is_own: cx.authentication.is_loopback(&parts.headers),
            started: cx.clock().monotonic(),
            line: Line::new(parts),
            code: String::new(),
            labels,
        };
        if observation.long_running && observation.counted {
            observation.long_running_gauge().inc();
        }
        observation
    }

    /// Where it is noted how long the body was.
    pub(super) fn read_bytes(&self) -> ReadBytes {
        Arc::clone(&self.read_bytes)
    }

    /// What is told of writes alone.
    fn count_write(&self, elapsed: Duration) {
        let (labels, metrics) = (&self.labels, &self.cx.metrics);
        let verb = match labels.verb {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" | "APPLY" => "patch",
            "DELETE" => "delete",
            _ => return,
        };
        if verb != "delete" {
            metrics.validated.with(&[self.field_validation]).observe(elapsed.as_secs_f64());
        }
        #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes")]
        if let Some(bytes) = self.read_bytes.get() {
            let [_, group, _, resource, ..] = labels.values();
            metrics.body_sizes.with(&[group, resource, verb]).observe(*bytes as f64);
        }
    }

    /// Counts it where the answer is cut off.
    fn follow(&self, response: &mut Response) {
        if let (true, Some(taken_by)) = (self.counted, response.extensions_mut().get_mut::<TakenBy>()) {
            let (cx, labels) = (Arc::clone(&self.cx), self.labels.clone());
            taken_by.tell(move || {
                let [aborted @ .., _component] = labels.values();
                cx.metrics.aborts.with(&aborted).inc();
            });
        }
    }

    fn long_running_gauge(&self) -> prometheus::Gauge {
        self.cx.metrics.long_running.with(&self.labels.values())
    }

    /// Goes on until the answer is sent.
    pub(super) fn watch_over(mut self, mut response: Response) -> Response {
        self.follow(&mut response);
        self.code = response.status().as_u16().to_string();
        // 401 and 403 are counted by authentication and authorization.
        self.refused = matches!(self.code.as_str(), "401" | "403");
        if matches!(self.labels.verb, "GET" | "LIST")
            && self.counted
            && let Some(bytes) = http_body::Body::size_hint(response.body()).exact()
        {
            #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes")]
            self.cx.metrics.sizes.with(&self.labels.values()).observe(bytes as f64);
        }
        hold(response, self)
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if self.long_running && self.counted {
            self.long_running_gauge().dec();
        }
        let elapsed = self.cx.clock().monotonic() - self.started;
        self.line.write(self.labels.verb, elapsed, &self.code);
        if !self.counted || self.refused || self.code.is_empty() {
            return;
        }
        let [verb, group, version, resource, subresource, scope, component] = self.labels.values();
        let head = [verb, self.dry_run, group, version, resource, subresource, scope, component];
        if self.is_own {
            self.cx.metrics.self_requests.with(&[verb, group, resource, subresource]).inc();
        }
        self.cx.metrics.duration.with(&head).observe(elapsed.as_secs_f64());
        self.count_write(elapsed);
        if self.dry_run.is_empty() && verb != "WATCH" {
            self.cx.metrics.sli.with(&self.labels.values()).observe(elapsed.as_secs_f64());
        }
        let [verb, dry_run, group, version, resource, subresource, scope, component] = head;
        let all = [verb, dry_run, group, version, resource, subresource, scope, component, &self.code];
        self.cx.metrics.total.with(&all).inc();
    }
}

impl Line {
    fn new(parts: &Parts) -> Self {
        Self {
            uri: parts.uri.clone(),
            user_agent: parts.headers.get(header::USER_AGENT).cloned(),
            source: parts.extensions.get::<RemoteAddr>().copied(),
        }
    }

    fn write(&self, verb: &str, elapsed: Duration, code: &str) {
        tracing::info!(
            v = 3,
            verb,
            URI = path_and_query(&self.uri),
            latency = ?elapsed,
            userAgent = self.user_agent.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default(),
            srcIP = self.source.map(|remote| tracing::field::display(remote.0)),
            resp = code,
            "HTTP"
        );
    }
}
