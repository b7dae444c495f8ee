//! MutatingAdmissionPolicy and what it is made of. It is kept as v1beta1, so that the release before this can read it.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::{failure_policy_type, patch_type, reinvocation_policy_type};
use super::{MatchCondition, MatchResources, ParamKind, Variable};

/// Changes what is written. It counts for what a binding names it for.
#[api(version = "v1beta1", kind = "MutatingAdmissionPolicy", resource = "mutatingadmissionpolicies")]
pub struct MutatingAdmissionPolicy {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// How the policy changes which requests.
    #[field(2)]
    pub spec: MutatingAdmissionPolicySpec,
}

/// How a policy changes which requests.
#[api]
pub struct MutatingAdmissionPolicySpec {
    /// Kind of the parameters that bindings give to the policy, if it has any.
    #[field(1)]
    pub param_kind: Option<ParamKind>,
    /// Requests that the policy is about. Deletions are none.
    #[field(2)]
    pub match_constraints: Option<MatchResources>,
    /// Expressions that others can use by name, each after those that it uses.
    #[field(3, atomic)]
    pub variables: Vec<Variable>,
    /// Changes, each made to what the one before it left; at least one.
    #[field(4, atomic)]
    pub mutations: Vec<Mutation>,
    /// What happens where the policy cannot be evaluated: Ignore, or Fail by default.
    #[field(5, go = "v1.FailurePolicyType", values = failure_policy_type::ALL, fill = "\"Fail\"")]
    pub failure_policy: Option<String>,
    /// Conditions that a request must fulfil beside, at most 64.
    #[field(6, merge_key = "name")]
    pub match_conditions: Vec<MatchCondition>,
    /// Whether it is evaluated once more where others changed the object after it: IfNeeded or Never.
    #[field(7, go = "v1.ReinvocationPolicyType", values = reinvocation_policy_type::ALL)]
    pub reinvocation_policy: String,
}

/// A change.
#[api]
pub struct Mutation {
    /// How the change is written: ApplyConfiguration or JSONPatch.
    #[field(2, always, required, go = "v1.PatchType", values = patch_type::ALL)]
    pub patch_type: String,
    /// What is merged into the object, as server-side apply would.
    #[field(3)]
    pub apply_configuration: Option<ApplyConfiguration>,
    /// Operations on the object.
    #[field(4, name = "jsonPatch")]
    pub json_patch: Option<JSONPatch>,
}

/// What is merged into an object.
#[api]
pub struct ApplyConfiguration {
    /// Expression that gives an `Object`.
    #[field(1)]
    pub expression: String,
}

/// Operations on an object.
#[api]
pub struct JSONPatch {
    /// Expression that gives a list of `JSONPatch`.
    #[field(1)]
    pub expression: String,
}
