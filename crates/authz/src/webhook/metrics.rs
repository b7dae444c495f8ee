//! What is counted of webhooks, with upstream's names.

use std::time::Duration;

use client::ClientError;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};

const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const EVALUATIONS: Desc =
    Desc::new("apiserver_authorization_webhook_evaluations_total", "Questions to webhooks.", Stability::Alpha)
        .labels(&["name", "result"]);
const DURATION: Desc =
    Desc::new("apiserver_authorization_webhook_duration_seconds", "How long questions took.", Stability::Alpha)
        .labels(&["name", "result"])
        .buckets(SECONDS);
const FAIL_OPEN: Desc = Desc::new(
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    "Questions that failed and were left to other authorizers.",
    Stability::Alpha,
)
.labels(&["name", "result"]);
const EXCLUSIONS: Desc = Desc::new(
    "apiserver_authorization_match_condition_exclusions_total",
    "Requests that an authorizer was not asked about, as a condition did not hold.",
    Stability::Alpha,
)
.labels(&["name", "type"]);
const CONDITION_ERRORS: Desc = Desc::new(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    "Requests for which the conditions of an authorizer could not be evaluated.",
    Stability::Alpha,
)
.labels(&["name", "type"]);
const CONDITION_TIME: Desc = Desc::new(
    "apiserver_authorization_match_condition_evaluation_seconds",
    "How long the conditions of an authorizer took to evaluate.",
    Stability::Alpha,
)
.labels(&["name", "type"])
.buckets(&[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]);

/// The families, shared by all webhooks.
#[derive(Clone)]
pub struct WebhookMetrics {
    evaluations: Counters,
    duration: Histograms,
    fail_open: Counters,
    pub(super) exclusions: Counters,
    pub(super) condition_errors: Counters,
    pub(super) condition_time: Histograms,
}

impl WebhookMetrics {
    /// Adds the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            evaluations: metrics.counters(&EVALUATIONS),
            duration: metrics.histograms(&DURATION),
            fail_open: metrics.counters(&FAIL_OPEN),
            exclusions: metrics.counters(&EXCLUSIONS),
            condition_errors: metrics.counters(&CONDITION_ERRORS),
            condition_time: metrics.histograms(&CONDITION_TIME),
        }
    }

    pub(super) fn asked(&self, name: &str, result: &str, took: Duration) {
        self.evaluations.with(&[name, result]).inc();
        self.duration.with(&[name, result]).observe(took.as_secs_f64());
    }

    pub(super) fn failed_open(&self, name: &str, result: &str) {
        self.fail_open.with(&[name, result]).inc();
    }
}

/// How a question ended, as a label.
pub(super) fn result(outcome: Result<(), &ClientError>) -> &'static str {
    match outcome {
        Ok(()) => "success",
        Err(error) if error.is_timeout() || error.api().is_some_and(|answer| answer.code == 504) => "timeout",
        Err(_) => "error",
    }
}
