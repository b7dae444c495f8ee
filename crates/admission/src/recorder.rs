//! What admission tells whoever keeps the metrics.

use std::time::Duration;

use crate::Operation;

/// One of the two passes over the plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Objects may change.
    Mutating,
    /// Requests may be refused.
    Validating,
}

impl Pass {
    /// The pass as metrics name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validate",
        }
    }
}

/// One run of a plugin, or of a whole pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// In which pass.
    pub pass: Pass,
    /// What the request does.
    pub operation: Operation,
    /// Whether it ended with a refusal.
    pub rejected: bool,
    /// How long it took.
    pub took: Duration,
}

/// What PodSecurity looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSecurityRequest<'a> {
    /// What the request does.
    pub operation: Operation,
    /// `pod`, `namespace`, or `controller` for what makes pods.
    pub resource: &'static str,
    /// The subresource.
    pub subresource: &'a str,
}

/// A level that PodSecurity held a pod against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSecurityEvaluation {
    /// Whether the pod fits.
    pub fits: bool,
    /// `enforce`, `audit` or `warn`.
    pub mode: &'static str,
    /// `privileged`, `baseline` or `restricted`.
    pub level: &'static str,
    /// The minor version of the standards; nothing for the newest.
    pub minor: Option<u32>,
}

/// What went wrong with PodSecurity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodSecurityFailure {
    /// Nothing could be looked at.
    Fatal,
    /// Labels of a namespace made no sense, and something was assumed in their place.
    Misread,
}

/// What became of a question to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// It has nothing against the request.
    Allowed,
    /// It refuses, or the server does on its account, with this code.
    Refused(u16),
    /// It could not be asked.
    Unasked {
        /// The code of what was answered instead, or one that says that nothing was.
        code: u16,
        /// Whether the request goes on.
        fails_open: bool,
    },
}

/// A question to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookRun<'a> {
    /// The name of the webhook.
    pub name: &'a str,
    /// In which pass.
    pub pass: Pass,
    /// What the request does.
    pub operation: Operation,
    /// What became of it.
    pub outcome: WebhookOutcome,
    /// How long it took.
    pub took: Duration,
}

/// What was wrong with an evaluation of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyError {
    /// Nothing.
    None,
    /// An expression does not compile.
    Compile,
    /// An expression failed.
    Invalid,
    /// It cost too much.
    OutOfBudget,
}

impl PolicyError {
    /// The error as metrics name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "no_error",
            Self::Compile => "compile_error",
            Self::Invalid => "invalid_error",
            Self::OutOfBudget => "out_of_budget",
        }
    }
}

/// One evaluation of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyCheck<'a> {
    /// The policy.
    pub policy: &'a str,
    /// The binding.
    pub binding: &'a str,
    /// What was wrong with it.
    pub error: PolicyError,
    /// How long it took.
    pub took: Duration,
}

/// Whose match conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionKind {
    /// A policy's.
    Policy,
    /// A webhook's.
    Webhook,
}

impl ConditionKind {
    /// The kind as metrics name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Webhook => "webhook",
        }
    }
}

/// Match conditions that were held against a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionRun<'a> {
    /// The policy or webhook.
    pub name: &'a str,
    /// Which of both it is.
    pub kind: ConditionKind,
    /// In which pass.
    pub pass: Pass,
    /// What the request does.
    pub operation: Operation,
}

/// Keeps the metrics of admission.
pub trait Recorder: Send + Sync {
    /// A plugin ran: the one at this place of [`ALL`](crate::ALL).
    fn plugin(&self, _place: usize, _run: &Run) {}
    /// A whole pass ended.
    fn pass(&self, _run: &Run) {}
    /// A webhook was asked.
    fn webhook(&self, _run: &WebhookRun<'_>) {}
    /// A webhook could not be asked, and the request went on.
    fn webhook_failed_open(&self, _name: &str, _pass: Pass) {}
    /// PodSecurity held a pod against a level.
    fn pod_security_evaluated(&self, _request: &PodSecurityRequest<'_>, _evaluation: &PodSecurityEvaluation) {}
    /// PodSecurity looked away.
    fn pod_security_exempted(&self, _request: &PodSecurityRequest<'_>) {}
    /// PodSecurity could not find out what holds for a namespace.
    fn pod_security_failed(&self, _request: &PodSecurityRequest<'_>, _failure: PodSecurityFailure) {}
    /// A policy that validates was evaluated, and did this: `allow`, `deny`, `warn` or `audit`.
    fn validating_policy(&self, _check: &PolicyCheck<'_>, _action: &'static str) {}
    /// A policy that changes objects was evaluated.
    fn mutating_policy(&self, _check: &PolicyCheck<'_>) {}
    /// Expressions of a policy were compiled.
    fn expressions_compiled(&self, _took: Duration) {}
    /// Expressions were evaluated.
    fn expressions_evaluated(&self, _took: Duration) {}
    /// Match conditions were evaluated.
    fn conditions_evaluated(&self, _run: &ConditionRun<'_>, _took: Duration) {}
    /// A match condition did not hold.
    fn condition_excluded(&self, _run: &ConditionRun<'_>) {}
    /// Match conditions failed.
    fn condition_failed(&self, _run: &ConditionRun<'_>) {}
}

/// Nobody keeps them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {}
