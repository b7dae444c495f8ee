//! The kinds of admissionregistration.k8s.io/v1. What changes objects is kept as v1beta1, which has the same form, as has
//! v1alpha1.

mod expressions;
mod match_conditions;
mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod operation_rules;
mod policy_parts;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod tests;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod webhooks;

use api_machinery::field_path::{ErrorList, Path};
use feature_gates::MinorVersion;

use crate::gates;
use crate::rules::{RuleContext, Rules, Typed};
use crate::versions::SameForm;
use mutating_admission_policy::MutatingAdmissionPolicyRules;
use mutating_admission_policy_binding::MutatingAdmissionPolicyBindingRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = {
    static POLICY: SameForm = SameForm::of::<MutatingAdmissionPolicyRules>("v1").introduced(MinorVersion::one(36));
    static BINDING: SameForm =
        SameForm::of::<MutatingAdmissionPolicyBindingRules>("v1").introduced(MinorVersion::one(36));
    &[
        &Typed::<MutatingAdmissionPolicyRules>::under(&POLICY),
        &Typed::<MutatingAdmissionPolicyBindingRules>::under(&BINDING),
        &Typed::<mutating_webhook_configuration::MutatingWebhookConfigurationRules>::new(),
        &Typed::<validating_admission_policy::ValidatingAdmissionPolicyRules>::new(),
        &Typed::<validating_admission_policy_binding::ValidatingAdmissionPolicyBindingRules>::new(),
        &Typed::<validating_webhook_configuration::ValidatingWebhookConfigurationRules>::new(),
    ]
};

/// The version in which the first of them are kept.
pub(crate) static V1BETA1: &[&dyn Rules] =
    &[&Typed::<MutatingAdmissionPolicyRules>::new(), &Typed::<MutatingAdmissionPolicyBindingRules>::new()];

/// The same under an older name.
pub(crate) static V1ALPHA1: &[&dyn Rules] = {
    static POLICY: SameForm =
        SameForm::of::<MutatingAdmissionPolicyRules>("v1alpha1").introduced(MinorVersion::one(32));
    static BINDING: SameForm =
        SameForm::of::<MutatingAdmissionPolicyBindingRules>("v1alpha1").introduced(MinorVersion::one(32));
    &[
        &Typed::<MutatingAdmissionPolicyRules>::under(&POLICY),
        &Typed::<MutatingAdmissionPolicyBindingRules>::under(&BINDING),
    ]
};

/// The end of names that files of manifests have to themselves.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// What is said of such names.
const RESERVED: &str = "names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and \
                        cannot be managed via the API";

/// Warns of a name that is kept for what comes from files.
fn name_warnings(name: &str) -> Vec<String> {
    if name.ends_with(STATIC_SUFFIX) { vec![format!("metadata.name: {RESERVED}")] } else { Vec::new() }
}

/// Refuses such a name for a new object, where there may be files.
fn name_errors(cx: &RuleContext, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.ends_with(STATIC_SUFFIX) && cx.gates.enabled(gates::MANIFEST_BASED_ADMISSION) {
        errors.push(Path::new("metadata").child("name").invalid(name, RESERVED));
    }
    errors
}
