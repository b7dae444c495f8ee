//! MutatingAdmissionPolicyBinding of admissionregistration.k8s.io: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_types::admissionregistration_v1::MutatingAdmissionPolicyBinding;
use feature_gates::MinorVersion;

use super::policy_parts;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<MutatingAdmissionPolicyBinding>("mutatingadmissionpolicybindings", "90V5FRZZ3Zg=")),
    categories: &["api-extensions"],
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<MutatingAdmissionPolicyBinding>()
};

/// The rules of the kind.
pub(crate) struct MutatingAdmissionPolicyBindingRules;

impl TypedRules for MutatingAdmissionPolicyBindingRules {
    type Object = MutatingAdmissionPolicyBinding;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<MutatingAdmissionPolicyBinding>] = &[
        Cell::NAME,
        Cell::text("PolicyName", |object, _| object.spec.policy_name.clone().into()),
        Cell::text("ParamRef", |object, _| policy_parts::shown_ref(object.spec.param_ref.as_ref()).into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &MutatingAdmissionPolicyBinding) -> ErrorList {
        let mut errors = super::name_errors(cx, &object.metadata.name);
        errors.extend(validate(object));
        errors
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &MutatingAdmissionPolicyBinding,
        _: &MutatingAdmissionPolicyBinding,
    ) -> ErrorList {
        validate(object)
    }

    fn warnings(object: &MutatingAdmissionPolicyBinding, _: Option<&MutatingAdmissionPolicyBinding>) -> Vec<String> {
        super::name_warnings(&object.metadata.name)
    }
}

fn validate(object: &MutatingAdmissionPolicyBinding) -> ErrorList {
    let (spec, path, mut errors) = (&object.spec, Path::new("spec"), ErrorList::new());
    let (param_ref, resources) = (spec.param_ref.as_ref(), spec.match_resources.as_ref());
    policy_parts::validate_binding(&path, &spec.policy_name, param_ref, resources, &mut errors);
    policy_parts::validate_mutable(&path.child("matchResources"), resources, &mut errors);
    errors
}
