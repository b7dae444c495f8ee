//! ValidatingAdmissionPolicyBinding and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::validation_action;
use super::{MatchResources, ParamRef};

/// Makes a policy count, for some requests and with some parameters.
#[api(kind = "ValidatingAdmissionPolicyBinding", resource = "validatingadmissionpolicybindings")]
pub struct ValidatingAdmissionPolicyBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which policy counts, for what, and with what consequences.
    #[field(2, required)]
    pub spec: ValidatingAdmissionPolicyBindingSpec,
}

/// Which policy counts, for what, and with what consequences.
#[api]
pub struct ValidatingAdmissionPolicyBindingSpec {
    /// Name of the policy. A binding without a policy of that name does nothing.
    #[field(1, required)]
    pub policy_name: String,
    /// Parameters of the policy, where it has any.
    #[field(2)]
    pub param_ref: Option<ParamRef>,
    /// Requests that it counts for, among those that the policy is about; all by default.
    #[field(3)]
    pub match_resources: Option<MatchResources>,
    /// What happens to requests that do not hold: Deny, Warn, Audit, and not Deny and Warn together.
    #[field(4, set, required, go = "v1.ValidationAction", values = validation_action::ALL)]
    pub validation_actions: Vec<String>,
}
