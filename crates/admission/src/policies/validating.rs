//! ValidatingAdmissionPolicy: what is refused, warned of and noted.

use admission_cel::{AUDIT_ANNOTATIONS, Budget, Compiled, Composition, Facts, Scene, VALIDATIONS, Wanted, evaluate};
use api_machinery::object::Object;
use api_types::admissionregistration_v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use cel::Value;

use super::bound::{BindingParts, Policy, PolicyKind, PolicyParts};
use crate::recorder::PolicyError;

/// So many bytes may a message have that an expression makes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The expressions of a policy.
pub(crate) struct Validations {
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
}

struct Validation {
    rule: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

impl PolicyKind for ValidatingAdmissionPolicy {
    type Binding = ValidatingAdmissionPolicyBinding;
    type Compiled = Validations;
    const PATCHES: bool = false;

    fn parts(&self) -> PolicyParts<'_> {
        PolicyParts {
            failure_policy: self.spec.failure_policy.as_ref(),
            param_kind: self.spec.param_kind.as_ref(),
            constraints: self.spec.match_constraints.as_ref(),
            conditions: &self.spec.match_conditions,
            variables: &self.spec.variables,
        }
    }

    fn binding(binding: &ValidatingAdmissionPolicyBinding) -> BindingParts<'_> {
        let spec = &binding.spec;
        BindingParts {
            policy: &spec.policy_name,
            param_ref: spec.param_ref.as_ref(),
            resources: spec.match_resources.as_ref(),
        }
    }

    fn compile(&self, composition: &Composition) -> Validations {
        let (env, messages) = (composition.environment(), composition.without_authorizer());
        let validation = |own: &api_types::admissionregistration_v1::Validation| Validation {
            rule: Compiled::new(env, &own.expression, Wanted::Bool),
            message: own.message.trim().to_owned(),
            message_expression: (!own.message_expression.is_empty())
                .then(|| Compiled::new(messages, &own.message_expression, Wanted::Text)),
            reason: own.reason.clone().unwrap_or_default(),
        };
        let annotations = self.spec.audit_annotations.iter();
        Validations {
            validations: self.spec.validations.iter().map(validation).collect(),
            annotations: annotations
                .map(|own| (own.key.clone(), Compiled::new(env, &own.value_expression, Wanted::TextOrNull)))
                .collect(),
        }
    }
}

/// What a policy says of a request, with one binding and one parameter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// Failures: each refuses, warns or is noted, as the binding wants.
    pub(crate) failures: Vec<Failure>,
    /// Failures of annotations, which refuse whatever the binding wants.
    pub(crate) refusals: Vec<Failure>,
    /// What failed, but does not count.
    pub(crate) ignored: Vec<PolicyError>,
    /// Notes for the audit log.
    pub(crate) annotations: Vec<(String, String)>,
}

/// Why a request does not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The validation's place among those of the policy.
    pub(crate) index: usize,
    pub(crate) message: String,
    /// Empty for `Invalid`.
    pub(crate) reason: String,
    pub(crate) error: PolicyError,
}

impl Failure {
    fn of(index: usize, message: String, error: PolicyError) -> Self {
        Self { index, message, reason: String::new(), error }
    }
}

/// Evaluates a policy whose conditions hold.
pub(crate) fn judge(
    policy: &Policy<ValidatingAdmissionPolicy>,
    facts: &Facts<'_>,
    params: Option<&dyn Object>,
) -> Judgement {
    let scene = || Scene::new(facts, params.map_or(Value::Null, Value::of_object), Some(&policy.composition));
    let mut judgement = Judgement::default();
    validate(policy, &scene(), &mut judgement);
    if !policy.compiled.annotations.is_empty() {
        // They may name the authorizer, but it has no value for them.
        annotate(policy, &scene().without_authorizer(), &mut judgement);
    }
    judgement
}

/// What a policy says whose conditions nobody knows.
pub(crate) fn unknown(policy: &Policy<ValidatingAdmissionPolicy>, message: String) -> Judgement {
    let mut judgement = Judgement::default();
    fail(policy, &mut judgement, 0, message, PolicyError::Invalid);
    judgement
}

/// A failure of the policy itself, by its failure policy.
fn fail(
    policy: &Policy<ValidatingAdmissionPolicy>,
    judgement: &mut Judgement,
    index: usize,
    message: String,
    error: PolicyError,
) {
    match policy.failure.judge(message) {
        Some(message) => judgement.failures.push(Failure::of(index, message, error)),
        None => judgement.ignored.push(error),
    }
}

fn validate<'a>(policy: &'a Policy<ValidatingAdmissionPolicy>, scene: &Scene<'a>, judgement: &mut Judgement) {
    let mut budget = Budget::of(VALIDATIONS);
    let mut refused = Vec::new();
    for (index, validation) in policy.compiled.validations.iter().enumerate() {
        match evaluate(&validation.rule, scene, &mut budget) {
            Ok(Ok(Value::Bool(true))) => {}
            Ok(Ok(_)) => refused.push((index, validation)),
            Ok(Err(error)) => fail(policy, judgement, index, error.to_string(), super::kind_of(&error)),
            Err(out) => {
                // One decision for the whole policy.
                judgement.failures.clear();
                fail(policy, judgement, 0, out.to_string(), PolicyError::OutOfBudget);
                return;
            }
        }
    }
    for (index, validation) in refused {
        match message(validation, scene, &mut budget) {
            Ok(message) => {
                let (reason, error) = (validation.reason.clone(), PolicyError::None);
                judgement.failures.push(Failure { index, message, reason, error });
            }
            Err(out) => {
                let text = format!("failed messageExpression: {out}");
                fail(policy, judgement, index, text, PolicyError::OutOfBudget);
            }
        }
    }
    judgement.failures.sort_by_key(|failure| failure.index);
}

/// What a client is told: what the expression makes of it, if that is fit to be told, or the message, or the rule.
fn message<'a>(
    validation: &'a Validation,
    scene: &Scene<'a>,
    budget: &mut Budget,
) -> Result<String, admission_cel::OutOfBudget> {
    if let Some(expression) = &validation.message_expression {
        match evaluate(expression, scene, budget)? {
            Ok(value) => {
                let text = value.as_str().unwrap_or_default();
                let trimmed = text.trim();
                if !trimmed.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !trimmed.contains(['\n', '\r']) {
                    return Ok(trimmed.to_owned());
                }
                tracing::debug!(expression = expression.source(), "A message expression made no message");
            }
            Err(error) => tracing::debug!(%error, "A message expression failed"),
        }
    }
    if validation.message.is_empty() {
        return Ok(format!("failed expression: {}", validation.rule.source()));
    }
    Ok(validation.message.clone())
}

fn annotate<'a>(policy: &'a Policy<ValidatingAdmissionPolicy>, scene: &Scene<'a>, judgement: &mut Judgement) {
    let mut budget = Budget::of(AUDIT_ANNOTATIONS);
    for (index, (key, expression)) in policy.compiled.annotations.iter().enumerate() {
        let refuse = |judgement: &mut Judgement, text: String, error| match policy.failure.judge(text) {
            Some(message) => judgement.refusals.push(Failure::of(index, message, error)),
            None => judgement.ignored.push(error),
        };
        match evaluate(expression, scene, &mut budget) {
            Ok(Ok(Value::Null)) => {}
            Ok(Ok(Value::String(text))) => {
                let text = text.as_str().trim();
                if !text.is_empty() {
                    judgement.annotations.push((key.clone(), text.to_owned()));
                }
            }
            Ok(Ok(other)) => {
                let text = format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or null.",
                    expression.source(),
                    other.type_of()
                );
                judgement.refusals.push(Failure::of(index, text, PolicyError::Invalid));
            }
            Ok(Err(error)) => refuse(judgement, error.to_string(), super::kind_of(&error)),
            Err(out) => {
                *judgement = Judgement::default();
                refuse(judgement, out.to_string(), PolicyError::OutOfBudget);
                return;
            }
        }
    }
}
