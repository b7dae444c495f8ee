//! What is counted.

use component_base::metrics::{Counters, Desc, Metrics, Stability};
use prometheus::Counter;

const EVENTS: Desc =
    Desc::new("apiserver_audit_event_total", "Events that were made and handed to the backends.", Stability::Alpha);
const LEVELS: Desc =
    Desc::new("apiserver_audit_level_total", "Requests, by how much is told of them.", Stability::Alpha)
        .labels(&["level"]);
const ERRORS: Desc =
    Desc::new("apiserver_audit_error_total", "Events that were not told.", Stability::Alpha).labels(&["plugin"]);
const REJECTED: Desc = Desc::new(
    "apiserver_audit_requests_rejected_total",
    "Requests that were refused as they could not be told of.",
    Stability::Alpha,
);

/// The counters of the audit log.
#[derive(Clone)]
pub struct AuditMetrics {
    pub(crate) events: Counter,
    pub(crate) levels: Counters,
    pub(crate) errors: Counters,
    pub(crate) rejected: Counter,
}

impl AuditMetrics {
    /// The families, registered.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            events: metrics.counters(&EVENTS).with(&[]),
            levels: metrics.counters(&LEVELS),
            errors: metrics.counters(&ERRORS),
            rejected: metrics.counters(&REJECTED).with(&[]),
        }
    }

    /// So many events did not arrive.
    pub(crate) fn lost(&self, plugin: &str, events: usize) {
        #[expect(clippy::cast_precision_loss, reason = "at most as many as are kept in memory")]
        self.errors.with(&[plugin]).inc_by(events as f64);
    }
}
