//! ValidatingAdmissionPolicy and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};

use super::constants::failure_policy_type;
use super::{MatchCondition, MatchResources, ParamKind, Variable};

/// Says what may be written, without changing it. It counts for what a binding names it for.
#[api(kind = "ValidatingAdmissionPolicy", resource = "validatingadmissionpolicies")]
pub struct ValidatingAdmissionPolicy {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the policy demands of which requests.
    #[field(2)]
    pub spec: ValidatingAdmissionPolicySpec,
    /// Warnings about expressions that do not fit what they are about.
    #[field(3)]
    pub status: ValidatingAdmissionPolicyStatus,
}

/// What a policy demands of which requests.
#[api]
pub struct ValidatingAdmissionPolicySpec {
    /// Kind of the parameters that bindings give to the policy, if it has any.
    #[field(1)]
    pub param_kind: Option<ParamKind>,
    /// Requests that the policy is about.
    #[field(2)]
    pub match_constraints: Option<MatchResources>,
    /// Expressions that must hold. There must be one, or an audit annotation.
    #[field(3, atomic)]
    pub validations: Vec<Validation>,
    /// What happens where the policy cannot be evaluated: Ignore, or Fail by default.
    #[field(4, go = "v1.FailurePolicyType", values = failure_policy_type::ALL, fill = "\"Fail\"")]
    pub failure_policy: Option<String>,
    /// What is noted in the audit log of requests that the policy is about.
    #[field(5, atomic)]
    pub audit_annotations: Vec<AuditAnnotation>,
    /// Conditions that a request must fulfil beside, at most 64.
    #[field(6, merge_key = "name")]
    pub match_conditions: Vec<MatchCondition>,
    /// Expressions that others can use by name, each after those that it uses.
    #[field(7, merge_key = "name")]
    pub variables: Vec<Variable>,
}

/// An expression that must hold, and what is said where it does not.
#[api]
pub struct Validation {
    /// Expression that says whether the request is allowed.
    #[field(1, always, required)]
    pub expression: String,
    /// Message where it is not; one line. A text made of the expression by default.
    #[field(2)]
    pub message: String,
    /// Reason where it is not: Forbidden, RequestEntityTooLarge, or Invalid by default.
    #[field(3, go = "v1.StatusReason")]
    pub reason: Option<String>,
    /// Expression of the message, which is used instead where it gives one line.
    #[field(4)]
    pub message_expression: String,
}

/// What is noted in the audit log.
#[api]
pub struct AuditAnnotation {
    /// Key of the note, behind the policy's name.
    #[field(1, always, required)]
    pub key: String,
    /// Expression of the text; null or an empty text leaves the note out.
    #[field(2, always, required)]
    pub value_expression: String,
}

/// What is known of a policy.
#[api]
pub struct ValidatingAdmissionPolicyStatus {
    /// Generation of the policy that the rest is about.
    #[field(1)]
    pub observed_generation: i64,
    /// What came of checking the types of expressions; not there before it was done.
    #[field(2)]
    pub type_checking: Option<TypeChecking>,
    /// Latest observed conditions of the policy.
    #[field(3, keys("type"))]
    pub conditions: Vec<Condition>,
}

/// What came of checking the types of expressions.
#[api]
pub struct TypeChecking {
    /// Warnings, by expression.
    #[field(1, atomic)]
    pub expression_warnings: Vec<ExpressionWarning>,
}

/// A warning about an expression.
#[api]
pub struct ExpressionWarning {
    /// Path of the expression in the policy.
    #[field(2, always, required)]
    pub field_ref: String,
    /// What does not fit, for each kind that the policy is about.
    #[field(3, always, required)]
    pub warning: String,
}
