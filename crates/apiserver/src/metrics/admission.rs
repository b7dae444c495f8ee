//! What admission counts and times.

use std::sync::OnceLock;
use std::time::Duration;

use admission::{
    ConditionKind, ConditionRun, Operation, Pass, PodSecurityEvaluation, PodSecurityFailure, PodSecurityRequest,
    PolicyCheck, Recorder, Run, WebhookRun,
};
use component_base::metrics::{Counters, Desc, Histogram, Histograms, Metrics, Stability};
use component_base::version;

use super::admission_webhooks::{self, WebhookMetrics};

const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

const PLUGINS: Desc = Desc::new(
    "apiserver_admission_controller_admission_duration_seconds",
    "Time that admission plugins take, by what the request does and whether the plugin refused it.",
    Stability::Stable,
)
.labels(&["name", "operation", "rejected", "type"])
.buckets(SECONDS)
.kept();
const PASSES: Desc = Desc::new(
    "apiserver_admission_step_admission_duration_seconds",
    "Time that a pass over all admission plugins takes.",
    Stability::Stable,
)
.labels(&["operation", "rejected", "type"])
.buckets(SECONDS)
.kept();
const EVALUATIONS: Desc =
    Desc::new("pod_security_evaluations_total", "Pods that were held against a policy.", Stability::Alpha).labels(&[
        "decision",
        "mode",
        "policy_level",
        "policy_version",
        "request_operation",
        "resource",
        "subresource",
    ]);
const EXEMPTIONS: Desc =
    Desc::new("pod_security_exemptions_total", "Requests that are exempt from policies.", Stability::Alpha).labels(&[
        "request_operation",
        "resource",
        "subresource",
    ]);
const ERRORS: Desc =
    Desc::new("pod_security_errors_total", "Requests whose policy could not be told.", Stability::Alpha).labels(&[
        "fatal",
        "request_operation",
        "resource",
        "subresource",
    ]);

const POLICY_SECONDS: &[f64] = &[0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const VALIDATING: &[&str] = &["enforcement_action", "error_type", "policy", "policy_binding"];
const VALIDATING_CHECKS: Desc = Desc::new(
    "apiserver_validating_admission_policy_check_total",
    "Evaluations of ValidatingAdmissionPolicies that had consequences, by policy, binding and what was done.",
    Stability::Beta,
)
.labels(VALIDATING);
const VALIDATING_TIME: Desc = Desc::new(
    "apiserver_validating_admission_policy_check_duration_seconds",
    "Time that an evaluation of a ValidatingAdmissionPolicy took that had consequences.",
    Stability::Beta,
)
.labels(VALIDATING)
.buckets(POLICY_SECONDS);
const MUTATING: &[&str] = &["error_type", "policy", "policy_binding"];
const MUTATING_CHECKS: Desc = Desc::new(
    "apiserver_mutating_admission_policy_check_total",
    "Evaluations of MutatingAdmissionPolicies, by policy and binding.",
    Stability::Alpha,
)
.labels(MUTATING);
const MUTATING_TIME: Desc = Desc::new(
    "apiserver_mutating_admission_policy_check_duration_seconds",
    "Time that an evaluation of a MutatingAdmissionPolicy took.",
    Stability::Alpha,
)
.labels(MUTATING)
.buckets(POLICY_SECONDS);
const CONDITIONS: &[&str] = &["kind", "name", "operation", "type"];
const CONDITION_TIME: Desc = Desc::new(
    "apiserver_admission_match_condition_evaluation_seconds",
    "Time that the match conditions of a webhook or policy took.",
    Stability::Alpha,
)
.labels(CONDITIONS)
.buckets(&[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]);
const CONDITION_ERRORS: Desc = Desc::new(
    "apiserver_admission_match_condition_evaluation_errors_total",
    "Match conditions that failed, by the webhook or policy that has them.",
    Stability::Alpha,
)
.labels(CONDITIONS);
const CONDITION_EXCLUSIONS: Desc = Desc::new(
    "apiserver_admission_match_condition_exclusions_total",
    "Requests that match conditions kept from a webhook or policy.",
    Stability::Alpha,
)
.labels(CONDITIONS);

const COMPILATION: Desc = Desc::new(
    "apiserver_cel_compilation_duration_seconds",
    "How long the expressions of a policy took to compile.",
    Stability::Beta,
);
const EVALUATION: Desc = Desc::new(
    "apiserver_cel_evaluation_duration_seconds",
    "How long expressions of policies and conditions took to evaluate.",
    Stability::Beta,
);

/// The families. The series of plugins and passes are found once: every write has dozens of samples.
pub(crate) struct AdmissionMetrics {
    plugins: Histograms,
    /// In the order of all plugins.
    by_plugin: Vec<Series>,
    passes: Histograms,
    by_pass: Series,
    webhooks: WebhookMetrics,
    evaluations: Counters,
    exemptions: Counters,
    errors: Counters,
    validating: (Counters, Histograms),
    mutating: (Counters, Histograms),
    condition_time: Histograms,
    condition_errors: Counters,
    condition_exclusions: Counters,
    compilation: Histogram,
    evaluation: Histogram,
}

/// A series for each pass, operation and outcome.
type Series = [OnceLock<Histogram>; 16];

impl AdmissionMetrics {
    pub(crate) fn new(registry: &Metrics) -> Self {
        Self {
            plugins: registry.histograms(&PLUGINS),
            by_plugin: admission::ALL.iter().map(|_| Series::default()).collect(),
            passes: registry.histograms(&PASSES),
            by_pass: Series::default(),
            webhooks: WebhookMetrics::new(registry),
            evaluations: registry.counters(&EVALUATIONS),
            exemptions: registry.counters(&EXEMPTIONS),
            errors: registry.counters(&ERRORS),
            validating: (registry.counters(&VALIDATING_CHECKS), registry.histograms(&VALIDATING_TIME)),
            mutating: (registry.counters(&MUTATING_CHECKS), registry.histograms(&MUTATING_TIME)),
            condition_time: registry.histograms(&CONDITION_TIME),
            condition_errors: registry.counters(&CONDITION_ERRORS),
            condition_exclusions: registry.counters(&CONDITION_EXCLUSIONS),
            compilation: registry.histograms(&COMPILATION).with(&[]),
            evaluation: registry.histograms(&EVALUATION).with(&[]),
        }
    }
}

/// Which series a run counts in.
fn index(run: &Run) -> usize {
    let operation = match run.operation {
        Operation::Create => 0,
        Operation::Update => 1,
        Operation::Delete => 2,
        Operation::Connect => 3,
    };
    operation * 4 + usize::from(run.pass == Pass::Validating) * 2 + usize::from(run.rejected)
}

fn rejected(run: &Run) -> &'static str {
    if run.rejected { "true" } else { "false" }
}

/// An operation as the metrics of PodSecurity name it.
fn lower_case(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

/// The labels of match conditions.
fn of_conditions<'a>(run: &ConditionRun<'a>) -> [&'a str; 4] {
    let kind = match run.kind {
        ConditionKind::Webhook => admission_webhooks::type_of(run.pass),
        ConditionKind::Policy => run.pass.as_str(),
    };
    [run.kind.as_str(), run.name, run.operation.as_str(), kind]
}

impl Recorder for AdmissionMetrics {
    fn validating_policy(&self, check: &PolicyCheck<'_>, action: &'static str) {
        let values = [action, check.error.as_str(), check.policy, check.binding];
        self.validating.0.with(&values).inc();
        self.validating.1.with(&values).observe(check.took.as_secs_f64());
    }

    fn mutating_policy(&self, check: &PolicyCheck<'_>) {
        let values = [check.error.as_str(), check.policy, check.binding];
        self.mutating.0.with(&values).inc();
        self.mutating.1.with(&values).observe(check.took.as_secs_f64());
    }

    fn expressions_compiled(&self, took: Duration) {
        self.compilation.observe(took.as_secs_f64());
    }

    fn expressions_evaluated(&self, took: Duration) {
        self.evaluation.observe(took.as_secs_f64());
    }

    fn conditions_evaluated(&self, run: &ConditionRun<'_>, took: Duration) {
        self.condition_time.with(&of_conditions(run)).observe(took.as_secs_f64());
    }

    fn condition_excluded(&self, run: &ConditionRun<'_>) {
        self.condition_exclusions.with(&of_conditions(run)).inc();
    }

    fn condition_failed(&self, run: &ConditionRun<'_>) {
        self.condition_errors.with(&of_conditions(run)).inc();
    }

    fn plugin(&self, place: usize, run: &Run) {
        let series = self.by_plugin.get(place).and_then(|series| series.get(index(run)));
        let (Some(cell), Some(entry)) = (series, admission::ALL.get(place)) else { return };
        let find = || self.plugins.with(&[entry.name, run.operation.as_str(), rejected(run), run.pass.as_str()]);
        cell.get_or_init(find).observe(run.took.as_secs_f64());
    }

    fn pass(&self, run: &Run) {
        let Some(cell) = self.by_pass.get(index(run)) else { return };
        let find = || self.passes.with(&[run.operation.as_str(), rejected(run), run.pass.as_str()]);
        cell.get_or_init(find).observe(run.took.as_secs_f64());
    }

    fn webhook(&self, run: &WebhookRun<'_>) {
        self.webhooks.asked(run);
    }

    fn webhook_failed_open(&self, name: &str, pass: Pass) {
        self.webhooks.failed_open(name, pass);
    }

    fn pod_security_evaluated(&self, request: &PodSecurityRequest<'_>, evaluation: &PodSecurityEvaluation) {
        let version = match evaluation.minor {
            None => "latest".to_owned(),
            Some(minor) if minor > version::BINARY.minor => "future".to_owned(),
            Some(minor) => format!("v1.{minor}"),
        };
        let decision = if evaluation.fits { "allow" } else { "deny" };
        let PodSecurityEvaluation { mode, level, .. } = *evaluation;
        let PodSecurityRequest { operation, resource, subresource } = *request;
        let values = [decision, mode, level, &version, lower_case(operation), resource, subresource];
        self.evaluations.with(&values).inc();
    }

    fn pod_security_exempted(&self, request: &PodSecurityRequest<'_>) {
        self.exemptions.with(&[lower_case(request.operation), request.resource, request.subresource]).inc();
    }

    fn pod_security_failed(&self, request: &PodSecurityRequest<'_>, failure: PodSecurityFailure) {
        let is_fatal = if failure == PodSecurityFailure::Fatal { "true" } else { "false" };
        self.errors.with(&[is_fatal, lower_case(request.operation), request.resource, request.subresource]).inc();
    }
}
