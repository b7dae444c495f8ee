//! The kinds of resource.k8s.io/v1alpha3.

mod device_taint_rule;
mod resource_pool_status_request;

use feature_gates::MinorVersion;

use crate::rules::{Rules, Typed};
use crate::versions::SameForm;

pub(crate) use device_taint_rule::DeviceTaintRuleRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<DeviceTaintRuleRules>::new(),
    &Typed::<resource_pool_status_request::ResourcePoolStatusRequestRules>::new(),
];

/// `DeviceTaintRule` as v1beta2 has it.
pub(crate) static DEVICE_TAINT_RULE: SameForm =
    SameForm::of::<DeviceTaintRuleRules>("v1beta2").introduced(MinorVersion::one(36));
