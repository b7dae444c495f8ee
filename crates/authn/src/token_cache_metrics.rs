//! What is counted of a token cache, with upstream's names.

use std::time::Duration;

use component_base::metrics::{Counters, DEFAULT_BUCKETS, Desc, Gauges, Histograms, Metrics, Stability};

const REQUESTS: Desc =
    Desc::new("authentication_token_cache_request_total", "Tokens that were asked about.", Stability::Alpha)
        .labels(&["status"]);
const REQUEST_TIME: Desc = Desc::new(
    "authentication_token_cache_request_duration_seconds",
    "How long it takes to find out about a token, remembered or not.",
    Stability::Alpha,
)
.labels(&["status"])
.buckets(DEFAULT_BUCKETS);
const FETCHES: Desc =
    Desc::new("authentication_token_cache_fetch_total", "Tokens that were looked up.", Stability::Alpha)
        .labels(&["status"]);
const ACTIVE: Desc = Desc::new(
    "authentication_token_cache_active_fetch_count",
    "Look-ups that run, and those who wait for one.",
    Stability::Alpha,
)
.labels(&["status"]);

/// The families.
#[derive(Clone)]
pub(crate) struct CacheMetrics {
    requests: Counters,
    request_time: Histograms,
    fetches: Counters,
    active: Gauges,
}

/// One more that is counted until this is dropped.
pub(crate) struct Active(Option<(Gauges, &'static str)>);

impl Active {
    /// One that runs or waits, where anybody counts.
    pub(crate) fn begin(metrics: Option<&CacheMetrics>, status: &'static str) -> Self {
        Self(metrics.map(|metrics| {
            metrics.active.with(&[status]).inc();
            (metrics.active.clone(), status)
        }))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some((active, status)) = &self.0 {
            active.with(&[status]).dec();
        }
    }
}

impl CacheMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.counters(&REQUESTS),
            request_time: metrics.histograms(&REQUEST_TIME),
            fetches: metrics.counters(&FETCHES),
            active: metrics.gauges(&ACTIVE),
        }
    }

    pub(crate) fn asked(&self, is_remembered: bool, took: Duration) {
        let status = if is_remembered { "hit" } else { "miss" };
        self.requests.with(&[status]).inc();
        self.request_time.with(&[status]).observe(took.as_secs_f64());
    }

    pub(crate) fn fetched(&self, ok: bool) {
        self.fetches.with(&[if ok { "ok" } else { "error" }]).inc();
    }
}
