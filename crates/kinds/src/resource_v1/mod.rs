//! The kinds of resource.k8s.io/v1, and of v1beta2, which has the same form.

mod admin_access;
mod capacity_validation;
mod claim_fields;
mod claim_validation;
mod device_class;
mod device_validation;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod selector;
mod slice_fields;
mod slice_validation;
mod status_validation;
#[cfg(test)]
mod tests;
mod values;

use feature_gates::MinorVersion;

use crate::resource_v1alpha3::{DEVICE_TAINT_RULE, DeviceTaintRuleRules};
use crate::rules::{Rules, Typed};
use crate::versions::SameForm;

pub(crate) use device_class::DeviceClassRules;
pub(crate) use device_validation::validate_taint;
pub(crate) use resource_claim::ResourceClaimRules;
pub(crate) use resource_claim_template::ResourceClaimTemplateRules;
pub(crate) use resource_slice::{ResourceSliceRules, date_taint};
pub(crate) use values::{driver, label, pool};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<DeviceClassRules>::new(),
    &Typed::<ResourceClaimRules>::new(),
    &Typed::<ResourceClaimTemplateRules>::new(),
    &Typed::<ResourceSliceRules>::new(),
];

/// The same under an older name.
pub(crate) static V1BETA2: &[&dyn Rules] = {
    const BROUGHT: MinorVersion = MinorVersion::one(33);
    static CLASS: SameForm = SameForm::of::<DeviceClassRules>("v1beta2").introduced(BROUGHT);
    static CLAIM: SameForm = SameForm::of::<ResourceClaimRules>("v1beta2").introduced(BROUGHT);
    static TEMPLATE: SameForm = SameForm::of::<ResourceClaimTemplateRules>("v1beta2").introduced(BROUGHT);
    static SLICE: SameForm = SameForm::of::<ResourceSliceRules>("v1beta2").introduced(BROUGHT);
    &[
        &Typed::<DeviceClassRules>::under(&CLASS),
        &Typed::<DeviceTaintRuleRules>::under(&DEVICE_TAINT_RULE),
        &Typed::<ResourceClaimRules>::under(&CLAIM),
        &Typed::<ResourceClaimTemplateRules>::under(&TEMPLATE),
        &Typed::<ResourceSliceRules>::under(&SLICE),
    ]
};
