//! What encryption tells of itself, with upstream's names.

use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};

/// 5 microseconds to 84 seconds, doubling.
const SECONDS: &[f64] = &[
    5e-6, 1e-5, 2e-5, 4e-5, 8e-5, 0.00016, 0.00032, 0.00064, 0.00128, 0.00256, 0.00512, 0.01024, 0.02048, 0.04096,
    0.08192, 0.16384, 0.32768, 0.65536, 1.31072, 2.62144, 5.24288, 10.48576, 20.97152, 41.94304, 83.88608,
];
const OPERATIONS: Desc =
    Desc::new("apiserver_storage_transformation_operations_total", "Values that were transformed.", Stability::Alpha)
        .labels(&["resource", "transformation_type", "transformer_prefix", "status"]);
const DURATION: Desc = Desc::new(
    "apiserver_storage_transformation_duration_seconds",
    "How long the transformation of a value took.",
    Stability::Alpha,
)
.labels(&["transformation_type", "transformer_prefix"])
.buckets(SECONDS);
const RELOADS: Desc = Desc::new(
    "apiserver_encryption_config_controller_automatic_reloads_total",
    "Times that a changed configuration was taken, or refused.",
    Stability::Alpha,
)
.labels(&["status", "apiserver_id_hash"]);
const LAST_RELOAD: Desc = Desc::new(
    "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
    "When a changed configuration was last taken, or refused.",
    Stability::Alpha,
)
.labels(&["status", "apiserver_id_hash"]);

/// The counts of a process.
#[derive(Clone)]
pub struct EncryptionMetrics {
    operations: Counters,
    duration: Histograms,
    reloads: Counters,
    last_reload: Gauges,
    server: String,
}

impl EncryptionMetrics {
    /// Adds the families; `server` is the hash of the server's identity.
    #[must_use]
    pub fn new(metrics: &Metrics, server: String) -> Self {
        Self {
            operations: metrics.counters(&OPERATIONS),
            duration: metrics.histograms(&DURATION),
            reloads: metrics.counters(&RELOADS),
            last_reload: metrics.gauges(&LAST_RELOAD),
            server,
        }
    }

    pub(crate) fn transformed(&self, resource: &str, way: &str, prefix: &str, ok: bool, took: Duration) {
        let status = if ok { "OK" } else { "Unknown" };
        self.operations.with(&[resource, way, prefix, status]).inc();
        if ok {
            self.duration.with(&[way, prefix]).observe(took.as_secs_f64());
        }
    }

    /// `now` in seconds since 1970.
    pub(crate) fn reloaded(&self, ok: bool, now: f64) {
        let status = if ok { "success" } else { "failure" };
        self.reloads.with(&[status, &self.server]).inc();
        self.last_reload.with(&[status, &self.server]).set(now);
    }
}
