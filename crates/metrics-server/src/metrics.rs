//! The server's own metrics, by upstream's names.

use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};

const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const REQUESTS: Desc = Desc::new(
    "metrics_server_kubelet_request_total",
    "Requests to kubelets, by whether they succeeded.",
    Stability::Alpha,
)
.labels(&["success"]);
const REQUEST_SECONDS: Desc = Desc::new(
    "metrics_server_kubelet_request_duration_seconds",
    "How long requests to kubelets took.",
    Stability::Alpha,
)
.labels(&["node"])
.buckets(SECONDS);
const LAST_REQUEST: Desc = Desc::new(
    "metrics_server_kubelet_last_request_time_seconds",
    "When a kubelet was asked last, since the Unix epoch.",
    Stability::Alpha,
)
.labels(&["node"]);
const ROUND_SECONDS: Desc =
    Desc::new("metrics_server_manager_tick_duration_seconds", "How long asking all kubelets took.", Stability::Alpha)
        .buckets(SECONDS);
const POINTS: Desc =
    Desc::new("metrics_server_storage_points", "Points that are kept, by what they are of.", Stability::Alpha)
        .labels(&["type"]);

pub(crate) struct Monitor {
    requests: Counters,
    request_seconds: Histograms,
    last_request: Gauges,
    round_seconds: Histograms,
    points: Gauges,
}

impl Monitor {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.counters(&REQUESTS),
            request_seconds: metrics.histograms(&REQUEST_SECONDS),
            last_request: metrics.gauges(&LAST_REQUEST),
            round_seconds: metrics.histograms(&ROUND_SECONDS),
            points: metrics.gauges(&POINTS),
        }
    }

    /// A kubelet was asked, at a time since the Unix epoch.
    pub(crate) fn asked(&self, node: &str, is_success: bool, took: Duration, at: Duration) {
        self.requests.with(&[if is_success { "true" } else { "false" }]).inc();
        self.request_seconds.with(&[node]).observe(took.as_secs_f64());
        self.last_request.with(&[node]).set(at.as_secs_f64());
    }

    /// All kubelets were asked, and so many points of nodes and of containers are kept.
    #[expect(clippy::cast_precision_loss, reason = "there are never that many")]
    pub(crate) fn round(&self, took: Duration, (nodes, containers): (usize, usize)) {
        self.round_seconds.with(&[]).observe(took.as_secs_f64());
        self.points.with(&["node"]).set(nodes as f64);
        self.points.with(&["container"]).set(containers as f64);
    }

    /// Forgets a node that is gone.
    pub(crate) fn forget(&self, node: &str) {
        self.request_seconds.remove(&[node]);
        self.last_request.remove(&[node]);
    }
}
