//! What is counted and timed of admission webhooks.

use admission::{Pass, WebhookOutcome, WebhookRun};
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};

const DURATIONS: Desc = Desc::new(
    "apiserver_admission_webhook_admission_duration_seconds",
    "Time that admission webhooks take, by what the request does and whether the webhook refused it.",
    Stability::Stable,
)
.labels(&["name", "operation", "rejected", "type"])
.buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);
const REQUESTS: Desc = Desc::new(
    "apiserver_admission_webhook_request_total",
    "Questions to admission webhooks, by the code that they came to.",
    Stability::Alpha,
)
.labels(&["code", "name", "operation", "rejected", "type"]);
const REJECTIONS: Desc = Desc::new(
    "apiserver_admission_webhook_rejection_count",
    "Requests that did not pass an admission webhook, by what kept them and the code.",
    Stability::Alpha,
)
.labels(&["error_type", "name", "operation", "rejection_code", "type"]);
const FAILED_OPEN: Desc = Desc::new(
    "apiserver_admission_webhook_fail_open_count",
    "Requests that went on although an admission webhook could not be asked.",
    Stability::Alpha,
)
.labels(&["name", "type"]);

/// Codes above are counted as this, so that a webhook cannot make as many series as it likes.
const MAX_CODE: u16 = 600;

pub(super) struct WebhookMetrics {
    durations: Histograms,
    requests: Counters,
    rejections: Counters,
    failed_open: Counters,
}

/// The pass as metrics of webhooks name it.
pub(super) fn type_of(pass: Pass) -> &'static str {
    match pass {
        Pass::Mutating => "admit",
        Pass::Validating => "validating",
    }
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Metrics) -> Self {
        Self {
            durations: registry.histograms(&DURATIONS),
            requests: registry.counters(&REQUESTS),
            rejections: registry.counters(&REJECTIONS),
            failed_open: registry.counters(&FAILED_OPEN),
        }
    }

    pub(super) fn asked(&self, run: &WebhookRun<'_>) {
        let (operation, pass) = (run.operation.as_str(), type_of(run.pass));
        let (code, rejection) = match run.outcome {
            WebhookOutcome::Allowed => (200, None),
            WebhookOutcome::Refused(code) => (code, Some(("no_error", code))),
            WebhookOutcome::Unasked { code, fails_open: false } => (code, Some(("calling_webhook_error", 0))),
            WebhookOutcome::Unasked { code, fails_open: true } => (code, None),
        };
        let rejected = if rejection.is_some() { "true" } else { "false" };
        self.durations.with(&[run.name, operation, rejected, pass]).observe(run.took.as_secs_f64());
        self.requests.with(&[&code.min(MAX_CODE).to_string(), run.name, operation, rejected, pass]).inc();
        if let Some((error_type, code)) = rejection {
            self.rejections.with(&[error_type, run.name, operation, &code.min(MAX_CODE).to_string(), pass]).inc();
        }
    }

    pub(super) fn failed_open(&self, name: &str, pass: Pass) {
        self.failed_open.with(&[name, type_of(pass)]).inc();
    }
}
