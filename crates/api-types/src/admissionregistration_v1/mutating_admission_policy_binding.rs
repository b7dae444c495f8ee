//! MutatingAdmissionPolicyBinding and what it is made of. It is kept as v1beta1, as its policy is.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{MatchResources, ParamRef};

/// Makes a policy count, for some requests and with some parameters.
#[api(version = "v1beta1", kind = "MutatingAdmissionPolicyBinding", resource = "mutatingadmissionpolicybindings")]
pub struct MutatingAdmissionPolicyBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which policy counts, and for what.
    #[field(2)]
    pub spec: MutatingAdmissionPolicyBindingSpec,
}

/// Which policy counts, and for what.
#[api]
pub struct MutatingAdmissionPolicyBindingSpec {
    /// Name of the policy. A binding without a policy of that name does nothing.
    #[field(1)]
    pub policy_name: String,
    /// Parameters of the policy, where it has any.
    #[field(2)]
    pub param_ref: Option<ParamRef>,
    /// Requests that it counts for, among those that the policy is about; all by default.
    #[field(3)]
    pub match_resources: Option<MatchResources>,
}
