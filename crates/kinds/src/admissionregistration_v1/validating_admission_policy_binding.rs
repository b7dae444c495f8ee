//! ValidatingAdmissionPolicyBinding of admissionregistration.k8s.io/v1: its names, and its rules.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::admissionregistration_v1::ValidatingAdmissionPolicyBinding;
use api_types::admissionregistration_v1::constants::validation_action;
use feature_gates::MinorVersion;

use super::policy_parts;
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ValidatingAdmissionPolicyBinding>(
        "validatingadmissionpolicybindings",
        "v9715VZqakg=",
    )),
    categories: &["api-extensions"],
    introduced: MinorVersion::one(30),
    ..ResourceInfo::of::<ValidatingAdmissionPolicyBinding>()
};

/// The rules of the kind.
pub(crate) struct ValidatingAdmissionPolicyBindingRules;

impl TypedRules for ValidatingAdmissionPolicyBindingRules {
    type Object = ValidatingAdmissionPolicyBinding;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ValidatingAdmissionPolicyBinding>] = &[
        Cell::NAME,
        Cell::text("PolicyName", |object, _| object.spec.policy_name.clone().into()),
        Cell::text("ParamRef", |object, _| policy_parts::shown_ref(object.spec.param_ref.as_ref()).into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] =
        &[Former::same("admissionregistration.k8s.io/v1beta1"), Former::same("admissionregistration.k8s.io/v1alpha1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &ValidatingAdmissionPolicyBinding) -> ErrorList {
        let mut errors = super::name_errors(cx, &object.metadata.name);
        errors.extend(validate(object));
        errors
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &ValidatingAdmissionPolicyBinding,
        _: &ValidatingAdmissionPolicyBinding,
    ) -> ErrorList {
        validate(object)
    }

    fn warnings(
        object: &ValidatingAdmissionPolicyBinding,
        _: Option<&ValidatingAdmissionPolicyBinding>,
    ) -> Vec<String> {
        super::name_warnings(&object.metadata.name)
    }
}

fn validate(object: &ValidatingAdmissionPolicyBinding) -> ErrorList {
    let (spec, path, mut errors) = (&object.spec, Path::new("spec"), ErrorList::new());
    let (param_ref, resources) = (spec.param_ref.as_ref(), spec.match_resources.as_ref());
    policy_parts::validate_binding(&path, &spec.policy_name, param_ref, resources, &mut errors);
    validate_actions(&path.child("validationActions"), &spec.validation_actions, &mut errors);
    errors
}

fn validate_actions(path: &Path, actions: &[String], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        let at = path.index(index);
        field_rules::one_of(&at, action, validation_action::ALL, errors);
        if !seen.insert(action.as_str()) {
            errors.push(at.duplicate(action.as_str()));
        }
    }
    if seen.contains(validation_action::DENY) && seen.contains(validation_action::WARN) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(path.invalid(BadValue::list(actions), detail));
    }
    if actions.is_empty() {
        errors.push(path.required("at least one validation action is required"));
    }
}
