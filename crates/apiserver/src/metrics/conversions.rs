//! What is counted of conversions, with upstream's names.

use std::time::Duration;

use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};

/// From a millisecond on, doubling.
const SECONDS: &[f64] =
    &[0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const REQUESTS: Desc = Desc::new(
    "apiserver_conversion_webhook_request_total",
    "Questions to conversion webhooks, by what came of them.",
    Stability::Alpha,
)
.labels(&["result", "failure_type"]);
const DURATION: Desc = Desc::new(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "How long conversions of custom objects by webhooks took.",
    Stability::Alpha,
)
.labels(&["crd_name", "from_version", "to_version", "succeeded"])
.buckets(SECONDS);

const ASKING_SECONDS: &[f64] = &[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
const ASKING: Desc = Desc::new(
    "apiserver_conversion_webhook_duration_seconds",
    "How long conversion webhooks took to answer, by what came of it.",
    Stability::Alpha,
)
.labels(&["result", "failure_type"])
.buckets(ASKING_SECONDS);

/// Why a question had no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Call,
    MalformedResponse,
    PartialResponse,
    InvalidObject,
}

impl Failure {
    const fn name(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::MalformedResponse => "conversion_webhook_malformed_response_failure",
            Self::PartialResponse => "conversion_webhook_partial_response_failure",
            Self::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// The families.
#[derive(Clone)]
pub(crate) struct ConversionMetrics {
    requests: Counters,
    duration: Histograms,
    asking: Histograms,
}

impl ConversionMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.counters(&REQUESTS),
            duration: metrics.histograms(&DURATION),
            asking: metrics.histograms(&ASKING),
        }
    }

    pub(crate) fn succeeded(&self) {
        self.requests.with(&["success", ""]).inc();
    }

    pub(crate) fn failed(&self, why: Failure) {
        self.requests.with(&["failure", why.name()]).inc();
    }

    /// A webhook was asked.
    pub(crate) fn answered(&self, failure: Option<Failure>, took: Duration) {
        let labels = failure.map_or(["success", ""], |why| ["failure", why.name()]);
        self.asking.with(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn took(&self, definition: &str, (from, to): (&str, &str), succeeded: bool, took: Duration) {
        let version = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let succeeded = if succeeded { "true" } else { "false" };
        let labels = [definition, &version(from), &version(to), succeeded];
        self.duration.with(&labels).observe(took.as_secs_f64());
    }
}
