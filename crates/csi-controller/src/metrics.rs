//! How long calls of the driver take, by upstream's name.

use std::time::Duration;

use component_base::metrics::{Desc, Histograms, Metrics, Stability};
use node_api::csi::CsiObserver;

const CALLS: Desc = Desc::new(
    "csi_sidecar_operations_seconds",
    "How long calls of the driver take, by its name, method and code.",
    Stability::Alpha,
)
.labels(&["driver_name", "grpc_status_code", "method_name"])
.buckets(&[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0]);

/// Notes every call.
pub(crate) struct Calls(Histograms);

impl Calls {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self(metrics.histograms(&CALLS))
    }
}

impl CsiObserver for Calls {
    fn called(&self, driver: &str, method: &'static str, code: &'static str, elapsed: Duration) {
        self.0.with(&[driver, code, method]).observe(elapsed.as_secs_f64());
    }
}
