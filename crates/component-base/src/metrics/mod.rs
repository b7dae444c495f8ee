//! Metrics of a process: one registry, injected, with upstream's names, stability levels and rules for hiding.
//!
//! Families are declared as [`Desc`] constants, so that a golden list can be kept of them. Label values never come from
//! clients unchecked: each family is bounded, and what exceeds the bound is counted as `unexpected`.

mod computed;
mod desc;
mod exposition;
mod family;
mod native;
mod options;
mod process;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::digest;
use feature_gates::{Feature, Gates};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::proto::{LabelPair, MetricType};
use prometheus::{HistogramOpts, Registry, TextEncoder};

pub use computed::{Sample, Samples, Value};
pub use desc::{DEFAULT_BUCKETS, Desc, MAX_SERIES, Stability, exponential, linear};
pub use family::{Counters, Family, Gauges, Histograms, Vector};
pub use native::Histogram;
pub use options::MetricsOptions;
pub use prometheus::{Counter, Gauge};

use crate::flags::Versions;
use crate::serving::{Response, text};
use crate::version;
use native::{Counts, HistogramVec};

/// The gates of metrics, which every component can switch.
pub const GATES: &[Feature] = &[native::GATE];

/// What `/metrics` is served as.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const BUILD_INFO: Desc =
    Desc::new("kubernetes_build_info", "Always 1; the labels tell which build this is.", Stability::Stable).labels(&[
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ]);
const FEATURE_ENABLED: Desc = Desc::new("kubernetes_feature_enabled", "Whether a feature gate is on.", Stability::Beta)
    .labels(&["name", "stage"]);
/// The end of a line with a value that is infinite.
const INFINITE: &str = " inf\n";
const VERSION_INFO: Desc =
    Desc::new("version_info", "Always 1; the labels tell which releases the component goes by.", Stability::Alpha)
        .labels(&["binary", "component", "emulation", "min_compat"]);
const REGISTERED: Desc =
    Desc::new("registered_metrics_total", "How many families there are, by stability.", Stability::Beta)
        .labels(&["stability_level", "deprecated_version"]);
const HIDDEN: Desc =
    Desc::new("hidden_metrics_total", "How many families are hidden because they are deprecated.", Stability::Beta);
const DISABLED: Desc = Desc::new("disabled_metrics_total", "How many families are disabled by flag.", Stability::Beta);

/// The digest of a text, as labels show it that must not tell the text: `sha256:` and hexadecimal digits.
#[must_use]
pub fn hash_label(text: &[u8]) -> String {
    format!("sha256:{}", base::hex(digest::digest(&digest::SHA256, text).as_ref()))
}

/// What a family can do for the registry.
trait Resettable: Send + Sync {
    fn reset(&self);
}

/// The native buckets of a family's metrics.
trait Natives: Send + Sync {
    /// Those of the series with these labels.
    fn counts(&self, labels: &[LabelPair]) -> Option<Counts>;
}

/// The metrics of a process (or of one of several components in a test).
pub struct Metrics {
    registry: Registry,
    options: MetricsOptions,
    resettable: Mutex<Vec<Box<dyn Resettable>>>,
    shared: Mutex<BTreeMap<&'static str, Histograms>>,
    /// The families of histograms with native buckets.
    natives: Mutex<BTreeMap<&'static str, Box<dyn Natives>>>,
    declared: Mutex<BTreeSet<&'static str>>,
    registered: Counters,
    hidden: Counters,
    disabled: Counters,
}

impl Metrics {
    /// An empty registry, but for what tells about the registry itself.
    #[must_use]
    pub fn new(options: MetricsOptions) -> Arc<Self> {
        let registry = Registry::new();
        let (registered, hidden, disabled) = (
            own_counters(&registry, &REGISTERED),
            own_counters(&registry, &HIDDEN),
            own_counters(&registry, &DISABLED),
        );
        Arc::new(Self {
            registry,
            options,
            resettable: Mutex::default(),
            shared: Mutex::default(),
            natives: Mutex::default(),
            declared: Mutex::default(),
            registered,
            hidden,
            disabled,
        })
    }

    /// A registry with the build's facts and the figures of the process, as every component shows them.
    #[must_use]
    pub fn of_process(options: MetricsOptions) -> Arc<Self> {
        let metrics = Self::new(options);
        let facts = version::facts();
        let values: Vec<&str> = facts.iter().map(|(_, value)| value.as_str()).collect();
        metrics.gauges(&BUILD_INFO).with(&values).set(1.0);
        metrics.register(&process::DESC, Box::new(process::ProcessCollector::new()));
        metrics
    }

    /// Shows a component's gates.
    pub fn show_gates(&self, gates: &Gates) {
        let family = self.gauges(&FEATURE_ENABLED);
        for (name, stage, on) in gates.iter() {
            family.with(&[name, stage.label()]).set(if on { 1.0 } else { 0.0 });
        }
    }

    /// Shows the releases that a component goes by.
    pub fn show_versions(&self, versions: Versions) {
        let [binary, emulated, oldest] =
            [version::BINARY, versions.emulated, versions.min_compatible].map(|own| own.to_string());
        self.gauges(&VERSION_INFO).with(&[&binary, "kube", &emulated, &oldest]).set(1.0);
    }

    /// The names of all families, be they shown or not.
    #[must_use]
    pub fn declared(&self) -> Vec<&'static str> {
        self.declared.lock().iter().copied().collect()
    }

    /// Adds a family of counters. Families are declared once; declaring one twice is a mistake in the program, shows
    /// up in the log, and leaves the second one out of `/metrics`.
    pub fn counters(&self, desc: &'static Desc) -> Counters {
        self.family(desc, prometheus::CounterVec::new(desc.opts(), desc.label_names))
    }

    /// Adds a family of gauges; see [`Self::counters`].
    pub fn gauges(&self, desc: &'static Desc) -> Gauges {
        self.family(desc, prometheus::GaugeVec::new(desc.opts(), desc.label_names))
    }

    /// Adds a family of histograms; see [`Self::counters`].
    pub fn histograms(&self, desc: &'static Desc) -> Histograms {
        let opts = HistogramOpts { common_opts: desc.opts(), buckets: desc.bucket_bounds.to_vec() };
        let classic = prometheus::HistogramVec::new(opts, desc.label_names);
        let has_natives = self.options.has_native_histograms;
        let family = self.family(desc, classic.map(|classic| HistogramVec { classic, has_natives }));
        if has_natives {
            self.natives.lock().insert(desc.name, Box::new(family.clone()));
        }
        family
    }

    /// Adds a family whose series `samples` looks up whenever they are asked for.
    pub fn computed_gauges(&self, desc: &'static Desc, samples: Samples) {
        self.register(desc, Box::new(computed::Computed::new(desc, MetricType::GAUGE, samples)));
    }

    /// As [`Self::computed_gauges`], of counters.
    pub fn computed_counters(&self, desc: &'static Desc, samples: Samples) {
        self.register(desc, Box::new(computed::Computed::new(desc, MetricType::COUNTER, samples)));
    }

    /// As [`Self::computed_gauges`], of histograms.
    pub fn computed_histograms(&self, desc: &'static Desc, samples: Samples) {
        self.register(desc, Box::new(computed::Computed::new(desc, MetricType::HISTOGRAM, samples)));
    }

    /// The family of histograms that several parts of a process have in common; the first to ask adds it.
    pub fn shared_histograms(&self, desc: &'static Desc) -> Histograms {
        self.shared.lock().entry(desc.name).or_insert_with(|| self.histograms(desc)).clone()
    }

    /// Everything, in Prometheus' text form, sorted by name.
    #[must_use]
    pub fn text(&self) -> String {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_else(|error| {
            tracing::error!(%error, "Encoding the metrics failed");
            String::new()
        });
        // The library writes an infinite value as Rust does, and not as the format has it.
        if text.contains(INFINITE) { text.replace(INFINITE, " +Inf\n") } else { text }
    }

    /// Everything, in Prometheus' protobuf form, sorted by name. Only here do histograms show their native buckets.
    #[must_use]
    pub fn protobuf(&self) -> Vec<u8> {
        // Before the native buckets, which then have all that is in here.
        let families = self.registry.gather();
        let natives = self.natives.lock();
        exposition::encode(&families, |family, metric| natives.get(family.name())?.counts(metric.get_label()))
    }

    /// The answer to `GET /metrics`, in the form that the request would rather have.
    #[must_use]
    pub fn answer_to(&self, headers: &HeaderMap) -> Response {
        if !exposition::prefers_protobuf(headers) {
            return self.answer();
        }
        let mut response = text(StatusCode::OK, self.protobuf());
        let content_type = HeaderValue::from_static(exposition::CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response
    }

    /// The answer to `GET /metrics`, as text.
    #[must_use]
    pub fn answer(&self) -> Response {
        let mut response = text(StatusCode::OK, self.text());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        response
    }

    /// Forgets all series of families with labels (`DELETE /metrics`), but for those that are kept.
    pub fn reset(&self) {
        for family in self.resettable.lock().iter() {
            family.reset();
        }
    }

    fn family<V: Vector>(&self, desc: &'static Desc, made: prometheus::Result<V>) -> Family<V> {
        let vec = made.expect("invariant: families are constants with valid names");
        let family = Family::new(desc, vec.clone(), self.options.allowed(desc));
        self.register(desc, Box::new(vec));
        if !desc.is_kept {
            self.resettable.lock().push(Box::new(family.clone()));
        }
        family
    }

    fn register(&self, desc: &'static Desc, collector: Box<dyn Collector>) {
        self.declared.lock().insert(desc.name);
        if self.options.disabled.contains(desc.name) {
            return self.disabled.with(&[]).inc();
        }
        if desc.is_hidden(self.options.show_hidden) {
            return self.hidden.with(&[]).inc();
        }
        self.registered.with(&[desc.stability.name(), desc.deprecated_since.unwrap_or_default()]).inc();
        if let Err(error) = self.registry.register(collector) {
            tracing::error!(name = desc.name, %error, "A family of metrics is registered twice");
        }
    }
}

/// A family about the registry, which no flag can hide.
fn own_counters(registry: &Registry, desc: &'static Desc) -> Counters {
    let vec = prometheus::CounterVec::new(desc.opts(), desc.label_names)
        .expect("invariant: families are constants with valid names");
    let family = Family::new(desc, vec.clone(), Vec::new());
    registry.register(Box::new(vec)).expect("invariant: the registry is new");
    family
}
