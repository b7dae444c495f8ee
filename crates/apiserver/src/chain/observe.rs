//! What is measured and logged of every request, from its arrival until its answer is sent.

use std::sync::Arc;
use std::time::Duration;

use component_base::serving::Response;
use http::StatusCode;
use http::request::Parts;
use tokio::time::Instant;

use super::held;
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
#[derive(Debug, Clone, Default)]
pub(super) struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
}

impl Labels {
    /// The labels of a request whose route is not known yet.
    pub(super) fn of_request(info: &RequestInfo) -> Self {
        let scope = if !info.is_resource {
            ""
        } else if !info.name.is_empty() || info.verb == "create" {
            "resource"
        } else if !info.namespace.is_empty() {
            "namespace"
        } else {
            "cluster"
        };
        let known = kinds::find(&info.group, &info.version, &info.resource);
        let own = |value: &str| if known.is_some() { value.to_owned() } else { String::new() };
        let is_subresource = |rules: &dyn kinds::rules::Rules| {
            rules.info().subresources.iter().any(|subresource| subresource.name == info.subresource)
        };
        Self {
            verb: "",
            group: own(&info.group),
            version: own(&info.version),
            resource: own(&info.resource),
            subresource: if known.is_some_and(is_subresource) { info.subresource.clone() } else { String::new() },
            scope,
        }
    }

    fn new(parts: &Parts, info: &RequestInfo, query: &Query) -> Self {
        let labels = Self::of_request(info);
        Self { verb: verb(parts, info, query, labels.scope), ..labels }
    }

    pub(super) fn count_termination(&self, metrics: &ApiMetrics, code: &str) {
        self.count(metrics, COMPONENT, code);
    }

    fn count(&self, metrics: &ApiMetrics, component: &str, code: &str) {
        let values =
            [self.verb, &self.group, &self.version, &self.resource, &self.subresource, self.scope, component, code];
        metrics.terminations.with(&values).inc();
    }
}

/// Counts a request for a version of another server that was not passed on. The resource is whatever the client says, and
/// stays unsaid.
pub(crate) fn count_not_passed_on(metrics: &ApiMetrics, info: &RequestInfo, code: StatusCode) {
    let labels = Labels { group: info.group.clone(), version: info.version.clone(), ..Labels::of_request(info) };
    labels.count(metrics, AGGREGATOR, code.as_str());
}

fn verb(parts: &Parts, info: &RequestInfo, query: &Query, scope: &str) -> &'static str {
    if CONNECTING.contains(&info.subresource.as_str()) {
        return "CONNECT";
    }
    let is_apply = || {
        let kind = parts.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
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

/// What the log says.
struct Line {
    uri: String,
    user_agent: String,
    source: String,
}

impl Observation {
    pub(super) fn begin(cx: &Arc<ApiCx>, parts: &Parts, info: &RequestInfo, query: &Query) -> Self {
        let labels = Labels::new(parts, info, query);
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
            counted: info.is_resource && !labels.resource.is_empty(),
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
            metrics.body_sizes.with(&[&labels.group, &labels.resource, verb]).observe(*bytes as f64);
        }
    }

    fn values(&self) -> [&str; 7] {
        let labels = &self.labels;
        [labels.verb, &labels.group, &labels.version, &labels.resource, &labels.subresource, labels.scope, COMPONENT]
    }

    fn long_running_gauge(&self) -> prometheus::Gauge {
        self.cx.metrics.long_running.with(&self.values())
    }

    /// Goes on until the answer is sent.
    pub(super) fn watch_over(mut self, response: Response) -> Response {
        self.code = response.status().as_u16().to_string();
        // 401 and 403 are counted by authentication and authorization.
        self.refused = matches!(self.code.as_str(), "401" | "403");
        if matches!(self.labels.verb, "GET" | "LIST")
            && self.counted
            && let Some(bytes) = http_body::Body::size_hint(response.body()).exact()
        {
            #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes")]
            self.cx.metrics.sizes.with(&self.values()).observe(bytes as f64);
        }
        held::hold(response, self)
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if self.long_running && self.counted {
            self.long_running_gauge().dec();
        }
        let elapsed = self.cx.clock().monotonic() - self.started;
        let Line { uri, user_agent, source } = &self.line;
        tracing::info!(
            v = 3,
            verb = self.labels.verb,
            URI = uri,
            latency = ?elapsed,
            userAgent = user_agent,
            srcIP = source,
            resp = self.code,
            "HTTP"
        );
        if !self.counted || self.refused || self.code.is_empty() {
            return;
        }
        let [verb, group, version, resource, subresource, scope, component] = self.values();
        let head = [verb, self.dry_run, group, version, resource, subresource, scope, component];
        if self.is_own {
            self.cx.metrics.self_requests.with(&[verb, group, resource, subresource]).inc();
        }
        self.cx.metrics.duration.with(&head).observe(elapsed.as_secs_f64());
        self.count_write(elapsed);
        if self.dry_run.is_empty() && verb != "WATCH" {
            self.cx.metrics.sli.with(&self.values()).observe(elapsed.as_secs_f64());
        }
        let [verb, dry_run, group, version, resource, subresource, scope, component] = head;
        let all = [verb, dry_run, group, version, resource, subresource, scope, component, &self.code];
        self.cx.metrics.total.with(&all).inc();
    }
}

impl Line {
    fn new(parts: &Parts) -> Self {
        let remote = parts.extensions.get::<component_base::serving::RemoteAddr>();
        let agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        Self {
            uri: path_and_query(&parts.uri).to_owned(),
            user_agent: agent.unwrap_or_default().to_owned(),
            source: remote.map(|remote| remote.0.to_string()).unwrap_or_default(),
        }
    }
}
