//! What encryption tells of itself, with upstream's names.

use std::time::{Duration, SystemTime};

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

const IN_FORCE: Desc = Desc::new(
    "apiserver_encryption_config_controller_last_config_info",
    "The hash of the configuration that is in force.",
    Stability::Alpha,
)
.labels(&["apiserver_id_hash", "hash"]);
/// 5 microseconds to 41 milliseconds, doubling.
const GENERATION_SECONDS: &[f64] =
    &[5e-6, 1e-5, 2e-5, 4e-5, 8e-5, 0.00016, 0.00032, 0.00064, 0.00128, 0.00256, 0.00512, 0.01024, 0.02048, 0.04096];
const GENERATION: Desc = Desc::new(
    "apiserver_storage_data_key_generation_duration_seconds",
    "How long making a data key took.",
    Stability::Alpha,
)
.buckets(GENERATION_SECONDS);
const GENERATION_FAILURES: Desc = Desc::new(
    "apiserver_storage_data_key_generation_failures_total",
    "Data keys that could not be made.",
    Stability::Alpha,
);
const CACHE_MISSES: Desc = Desc::new(
    "apiserver_storage_envelope_transformation_cache_misses_total",
    "Values whose data key had to be decrypted by a plug-in.",
    Stability::Alpha,
);
/// 0.1 milliseconds to 52 seconds, doubling.
const CALL_SECONDS: &[f64] = &[
    0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048, 0.4096, 0.8192,
    1.6384, 3.2768, 6.5536, 13.1072, 26.2144, 52.4288,
];
const CALLS: Desc = Desc::new(
    "apiserver_envelope_encryption_kms_operations_latency_seconds",
    "How long calls of KMS plug-ins took.",
    Stability::Alpha,
)
.labels(&["provider_name", "method_name", "grpc_status_code"])
.buckets(CALL_SECONDS);
const SOURCES: Desc = Desc::new(
    "apiserver_envelope_encryption_dek_source_cache_size",
    "Decrypted data keys and seeds that are kept.",
    Stability::Alpha,
)
.labels(&["provider_name"]);
const KEY_IDS: Desc = Desc::new(
    "apiserver_envelope_encryption_key_id_hash_total",
    "Values that were encrypted or decrypted, by the key of the plug-in.",
    Stability::Alpha,
)
.labels(&["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"]);
const KEY_ID_LAST: Desc = Desc::new(
    "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
    "When a key of the plug-in was last used.",
    Stability::Alpha,
)
.labels(&["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"]);
const KEY_ID_TOLD: Desc = Desc::new(
    "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
    "When the plug-in last named a key as its own.",
    Stability::Alpha,
)
.labels(&["provider_name", "key_id_hash", "apiserver_id_hash"]);
const INVALID_KEY_IDS: Desc = Desc::new(
    "apiserver_envelope_encryption_invalid_key_id_from_status_total",
    "Names of keys by plug-ins that cannot be used.",
    Stability::Alpha,
)
.labels(&["provider_name", "error"]);

const V1_FILLED: Desc = Desc::new(
    "apiserver_envelope_encryption_dek_cache_fill_percent",
    "How much of the room for data keys of version 1 is taken.",
    Stability::Alpha,
);
const V1_ARRIVALS: Desc = Desc::new(
    "apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds",
    "How long after one another values of plug-ins of version 1 came.",
    Stability::Alpha,
)
.labels(&["transformation_type"])
.buckets(&[60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0, 15_360.0, 30_720.0]);

/// Which way a value goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    FromStorage,
    ToStorage,
}

impl Way {
    fn label(self) -> &'static str {
        match self {
            Self::FromStorage => "from_storage",
            Self::ToStorage => "to_storage",
        }
    }
}

/// The counts of a process.
#[derive(Clone)]
pub struct EncryptionMetrics {
    operations: Counters,
    duration: Histograms,
    reloads: Counters,
    last_reload: Gauges,
    in_force: Gauges,
    generation: Histograms,
    generation_failures: Counters,
    cache_misses: Counters,
    calls: Histograms,
    sources: Gauges,
    key_ids: Counters,
    key_id_last: Gauges,
    key_id_told: Gauges,
    invalid_key_ids: Counters,
    v1_filled: Gauges,
    v1_arrivals: Histograms,
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
            in_force: metrics.gauges(&IN_FORCE),
            generation: metrics.histograms(&GENERATION),
            generation_failures: metrics.counters(&GENERATION_FAILURES),
            cache_misses: metrics.counters(&CACHE_MISSES),
            calls: metrics.histograms(&CALLS),
            sources: metrics.gauges(&SOURCES),
            key_ids: metrics.counters(&KEY_IDS),
            key_id_last: metrics.gauges(&KEY_ID_LAST),
            key_id_told: metrics.gauges(&KEY_ID_TOLD),
            invalid_key_ids: metrics.counters(&INVALID_KEY_IDS),
            v1_filled: metrics.gauges(&V1_FILLED),
            v1_arrivals: metrics.histograms(&V1_ARRIVALS),
            server,
        }
    }

    /// `failed` is the kind of error, if there was one.
    pub(crate) fn transformed(&self, resource: &str, way: Way, prefix: &str, failed: Option<&str>, took: Duration) {
        self.operations.with(&[resource, way.label(), prefix, failed.unwrap_or("OK")]).inc();
        if failed.is_none() {
            self.duration.with(&[way.label(), prefix]).observe(took.as_secs_f64());
        }
    }

    pub(crate) fn reloaded(&self, ok: bool, now: SystemTime) {
        let status = if ok { "success" } else { "failure" };
        self.reloads.with(&[status, &self.server]).inc();
        self.last_reload.with(&[status, &self.server]).set(seconds(now));
    }

    /// A configuration is used instead of the former.
    pub(crate) fn in_force(&self, hash: &str, former: Option<&str>) {
        if let Some(former) = former {
            self.in_force.remove(&[&self.server, former]);
        }
        self.in_force.with(&[&self.server, hash]).set(1.0);
    }

    pub(crate) fn key_generated(&self, ok: bool, took: Duration) {
        if ok {
            self.generation.with(&[]).observe(took.as_secs_f64());
        } else {
            self.generation_failures.with(&[]).inc();
        }
    }

    pub(crate) fn cache_missed(&self) {
        self.cache_misses.with(&[]).inc();
    }

    pub(crate) fn called(&self, provider: &str, method: &str, code: &str, took: Duration) {
        self.calls.with(&[provider, method, code]).observe(took.as_secs_f64());
    }

    #[expect(clippy::cast_precision_loss, reason = "there are not that many")]
    pub(crate) fn sources_kept(&self, provider: &str, count: usize) {
        self.sources.with(&[provider]).set(count as f64);
    }

    pub(crate) fn key_id_used(&self, way: Way, provider: &str, hash: &str, now: SystemTime) {
        let labels = [way.label(), provider, hash, &self.server];
        self.key_ids.with(&labels).inc();
        self.key_id_last.with(&labels).set(seconds(now));
    }

    pub(crate) fn key_id_told(&self, provider: &str, hash: &str, now: SystemTime) {
        self.key_id_told.with(&[provider, hash, &self.server]).set(seconds(now));
    }

    #[expect(clippy::cast_precision_loss, reason = "there are not that many")]
    pub(crate) fn v1_kept(&self, count: usize, room: usize) {
        self.v1_filled.with(&[]).set(count as f64 / room as f64);
    }

    /// `since` is the time since the former value that went this way.
    pub(crate) fn v1_arrived(&self, way: Way, since: Duration) {
        self.v1_arrivals.with(&[way.label()]).observe(since.as_secs_f64());
    }

    pub(crate) fn invalid_key_id(&self, provider: &str, error: &str) {
        self.invalid_key_ids.with(&[provider, error]).inc();
    }
}

/// Since 1970.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
