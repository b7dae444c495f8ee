//! What is counted of credential plugins, with upstream's names, labels and buckets.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use base::SharedClock;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability, Value};
use parking_lot::Mutex;

const TTL: Desc = Desc::new(
    "rest_client_exec_plugin_ttl_seconds",
    "Seconds until the first client certificate of a credential plugin expires; +Inf without any.",
    Stability::Alpha,
);
const ROTATION_AGE: Desc = Desc::new(
    "rest_client_exec_plugin_certificate_rotation_age",
    "Seconds that client certificates of credential plugins were in use before others took their place.",
    Stability::Alpha,
)
.buckets(&[
    600.0,
    1800.0,
    3600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
]);
const CALLS: Desc = Desc::new(
    "rest_client_exec_plugin_call_total",
    "Runs of credential plugins, by their exit code and how they ended.",
    Stability::Alpha,
)
.labels(&["code", "call_status"]);

/// The families, made once for a registry.
#[derive(Clone)]
pub(crate) struct PluginMetrics {
    rotation_age: Histograms,
    calls: Counters,
    expiries: Arc<Mutex<Vec<Weak<Expiry>>>>,
}

/// When a plugin's certificate ends.
pub(super) struct Expiry {
    at: Mutex<Option<SystemTime>>,
    clock: SharedClock,
}

impl Expiry {
    pub(super) fn new(clock: &SharedClock) -> Arc<Self> {
        Arc::new(Self { at: Mutex::default(), clock: Arc::clone(clock) })
    }

    pub(super) fn set(&self, at: Option<SystemTime>) {
        *self.at.lock() = at;
    }

    fn seconds_left(&self) -> Option<f64> {
        let (at, now) = ((*self.at.lock())?, self.clock.wall());
        Some(match at.duration_since(now) {
            Ok(left) => left.as_secs_f64(),
            Err(over) => -over.duration().as_secs_f64(),
        })
    }
}

impl PluginMetrics {
    /// Registers the families.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let expiries = Arc::<Mutex<Vec<Weak<Expiry>>>>::default();
        let known = Arc::clone(&expiries);
        let shortest = move || {
            let left =
                known.lock().iter().filter_map(Weak::upgrade).filter_map(|expiry| expiry.seconds_left()).collect();
            let left: Vec<f64> = left;
            vec![(Vec::new(), Value::Gauge(left.into_iter().fold(f64::INFINITY, f64::min)))]
        };
        metrics.computed_gauges(&TTL, Box::new(shortest));
        Self { rotation_age: metrics.histograms(&ROTATION_AGE), calls: metrics.counters(&CALLS), expiries }
    }

    /// A plugin's certificate counts from now on, for as long as the plugin is in use.
    pub(super) fn follow(&self, expiry: &Arc<Expiry>) {
        let mut known = self.expiries.lock();
        known.retain(|one| one.strong_count() > 0);
        known.push(Arc::downgrade(expiry));
    }

    /// A plugin ran, or could not.
    pub(super) fn called(&self, code: i32, status: &str) {
        self.calls.with(&[&code.to_string(), status]).inc();
    }

    /// A certificate was replaced at this age.
    pub(super) fn rotated(&self, age: Duration) {
        self.rotation_age.with(&[]).observe(age.as_secs_f64());
    }
}
