//! What is counted of requests to the kubelet's API.

use component_base::serving::Request;
use http::Method;
use tokio::time::Instant;

use crate::metrics::KubeletMetrics;

/// First elements of paths that are shown; all others are `other`.
const PATHS: [&str; 18] = [
    "attach",
    "checkpoint",
    "configz",
    "containerLogs",
    "debug",
    "exec",
    "flagz",
    "healthz",
    "logs",
    "metrics",
    "pods",
    "portForward",
    "pprof",
    "run",
    "runningpods",
    "spec",
    "stats",
    "statusz",
];
const METRICS: [&str; 4] = ["cadvisor", "probes", "resource", "slis"];
/// Requests that last as long as somebody looks.
const LONG_RUNNING: [&str; 3] = ["attach", "exec", "debug"];

/// Which of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerType {
    ReadOnly,
    ReadWrite,
}

impl ServerType {
    fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readonly",
            Self::ReadWrite => "readwrite",
        }
    }
}

/// The labels of a request: long_running, method, path, server_type.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Labels([String; 4]);

impl Labels {
    fn new(method: &Method, path: &str, server: ServerType) -> Self {
        let shown = place(path).unwrap_or_else(|| "other".to_owned());
        let first = path.trim_matches('/').split('/').next().unwrap_or_default();
        let method = match *method {
            Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::HEAD => method.as_str(),
            _ => "other",
        };
        Self([LONG_RUNNING.contains(&first).to_string(), method.to_owned(), shown, server.name().to_owned()])
    }

    fn values(&self) -> [&str; 4] {
        self.0.each_ref().map(String::as_str)
    }
}

/// The part of a path that is shown; nothing where it is none of ours.
pub(super) fn place(path: &str) -> Option<String> {
    let mut parts = path.trim_matches('/').split('/');
    let first = parts.next().filter(|first| PATHS.contains(first))?;
    Some(match (first, parts.next()) {
        ("metrics", Some(second)) if METRICS.contains(&second) => format!("metrics/{second}"),
        _ => first.to_owned(),
    })
}

/// A request that is being answered; counted as done when dropped.
pub(super) struct Metered<'a> {
    metrics: &'a KubeletMetrics,
    labels: Labels,
    began: Instant,
}

impl<'a> Metered<'a> {
    pub(super) fn start(metrics: &'a KubeletMetrics, server: ServerType, request: &Request) -> Self {
        let labels = Labels::new(request.method(), request.uri().path(), server);
        metrics.http_requests.with(&labels.values()).inc();
        metrics.http_inflight.with(&labels.values()).inc();
        Self { metrics, labels, began: Instant::now() }
    }
}

impl Drop for Metered<'_> {
    fn drop(&mut self) {
        let values = self.labels.values();
        self.metrics.http_duration.with(&values).observe(self.began.elapsed().as_secs_f64());
        self.metrics.http_inflight.with(&values).dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_few() {
        for (method, path, expected) in [
            (Method::GET, "/metrics/cadvisor", ["false", "GET", "metrics/cadvisor", "readwrite"]),
            (Method::GET, "/metrics/other", ["false", "GET", "metrics", "readwrite"]),
            (Method::POST, "/exec/ns/pod/c", ["true", "POST", "exec", "readwrite"]),
            (Method::TRACE, "/../etc", ["false", "other", "other", "readwrite"]),
        ] {
            assert_eq!(Labels::new(&method, path, ServerType::ReadWrite).values(), expected);
        }
    }
}
