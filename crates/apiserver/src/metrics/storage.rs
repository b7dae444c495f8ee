//! What is counted of calls to the store, with upstream's names, whichever store it is.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use storage::{Observe, Outcome};

const LABELS: &[&str] = &["operation", "group", "resource"];
const REQUESTS: Desc =
    Desc::new("etcd_requests_total", "Calls to the store, by what they do.", Stability::Alpha).labels(LABELS);
const ERRORS: Desc =
    Desc::new("etcd_request_errors_total", "Calls to the store that failed.", Stability::Alpha).labels(LABELS);
const DURATION: Desc =
    Desc::new("etcd_request_duration_seconds", "How long calls to the store take.", Stability::Alpha)
        .labels(LABELS)
        .buckets(super::SECONDS);

/// The families.
pub(crate) struct StorageMetrics {
    requests: Counters,
    errors: Counters,
    duration: Histograms,
}

impl StorageMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.counters(&REQUESTS),
            errors: metrics.counters(&ERRORS),
            duration: metrics.histograms(&DURATION),
        }
    }

    /// Hears of the calls of one resource.
    pub(crate) fn observer(self: &Arc<Self>, resource: &GroupResource) -> Arc<dyn Observe> {
        Arc::new(OfResource { families: Arc::clone(self), resource: resource.clone() })
    }
}

struct OfResource {
    families: Arc<StorageMetrics>,
    resource: GroupResource,
}

impl Observe for OfResource {
    fn done(&self, operation: &'static str, took: Duration, outcome: Outcome) {
        let values = [operation, &*self.resource.group, &*self.resource.resource];
        self.families.requests.with(&values).inc();
        self.families.duration.with(&values).observe(took.as_secs_f64());
        if outcome == Outcome::Failed {
            self.families.errors.with(&values).inc();
        }
    }
}
