//! Validation of what policies of both kinds and their bindings have in common.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::LabelSelector;
use api_machinery::names;
use api_types::admissionregistration_v1::constants::{
    failure_policy_type, match_policy_type, operation_type, parameter_not_found_action_type,
};
use api_types::admissionregistration_v1::{MatchResources, NamedRuleWithOperations, ParamKind, ParamRef};

use super::operation_rules;
use crate::field_rules;
use crate::label_selector::{self, Values};
use crate::object_name;

/// What policies that change objects are about: of deletions nothing can be changed.
pub(super) const MUTABLE: &[&str] =
    &[operation_type::OPERATION_ALL, operation_type::CONNECT, operation_type::CREATE, operation_type::UPDATE];

/// A value that has to be there, and one of a few.
pub(super) fn choice(path: &Path, value: Option<&String>, supported: &[&str], errors: &mut ErrorList) {
    match value {
        None => errors.push(path.required("")),
        Some(value) => field_rules::one_of(path, value, supported, errors),
    }
}

/// Checks the failure policy, the parameters' kind and the requests that a policy is about.
pub(super) fn validate_policy(
    path: &Path,
    failure_policy: Option<&String>,
    param_kind: Option<&ParamKind>,
    constraints: Option<&MatchResources>,
    errors: &mut ErrorList,
) {
    choice(&path.child("failurePolicy"), failure_policy, failure_policy_type::ALL, errors);
    if let Some(kind) = param_kind {
        validate_param_kind(&path.child("paramKind"), kind, errors);
    }
    let at = path.child("matchConstraints");
    let Some(constraints) = constraints else {
        errors.push(at.required(""));
        return;
    };
    validate_match_resources(&at, constraints, errors);
    if constraints.resource_rules.is_empty() {
        errors.push(at.child("resourceRules").required(""));
    }
}

/// Checks the name of the policy, the parameters and the requests of a binding.
pub(super) fn validate_binding(
    path: &Path,
    policy: &str,
    param_ref: Option<&ParamRef>,
    resources: Option<&MatchResources>,
    errors: &mut ErrorList,
) {
    field_rules::named(&path.child("policyName"), policy, |name| object_name::dns_subdomain(name, false), errors);
    if let Some(param_ref) = param_ref {
        validate_param_ref(&path.child("paramRef"), param_ref, errors);
    }
    if let Some(resources) = resources {
        validate_match_resources(&path.child("matchResources"), resources, errors);
    }
}

/// Checks that rules are about what can be changed.
pub(super) fn validate_mutable(path: &Path, resources: Option<&MatchResources>, errors: &mut ErrorList) {
    // Upstream names no rule here.
    let path = path.child("resourceRules").child("operations");
    for rule in resources.iter().flat_map(|resources| &resources.resource_rules) {
        for operation in &rule.rule.operations {
            field_rules::one_of(&path, operation, MUTABLE, errors);
        }
    }
}

fn validate_match_resources(path: &Path, resources: &MatchResources, errors: &mut ErrorList) {
    choice(&path.child("matchPolicy"), resources.match_policy.as_ref(), match_policy_type::ALL, errors);
    selector(&path.child("namespaceSelector"), resources.namespace_selector.as_ref(), errors);
    selector(&path.child("objectSelector"), resources.object_selector.as_ref(), errors);
    for (name, rules) in
        [("resourceRules", &resources.resource_rules), ("excludeResourceRules", &resources.exclude_resource_rules)]
    {
        for (index, rule) in rules.iter().enumerate() {
            validate_rule(&path.child(name).index(index), rule, errors);
        }
    }
}

fn selector(path: &Path, selector: Option<&LabelSelector>, errors: &mut ErrorList) {
    match selector {
        None => errors.push(path.required("")),
        Some(selector) => label_selector::validate(path, selector, Values::Checked, errors),
    }
}

fn validate_rule(path: &Path, rule: &NamedRuleWithOperations, errors: &mut ErrorList) {
    operation_rules::validate(path, &rule.rule, errors);
    let mut seen = BTreeSet::new();
    for (index, name) in rule.resource_names.iter().enumerate() {
        let at = path.child("resourceNames").index(index);
        errors.push_invalid(&at, name, names::path_segment_name(name));
        if !seen.insert(name) {
            errors.push(at.duplicate(name.as_str()));
        }
    }
}

fn validate_param_kind(path: &Path, kind: &ParamKind, errors: &mut ErrorList) {
    let at = path.child("apiVersion");
    if field_rules::required(&at, &kind.api_version, errors) {
        validate_api_version(&at, &kind.api_version, errors);
    }
    let at = path.child("kind");
    if field_rules::required(&at, &kind.kind, errors) {
        for text in names::dns1035_label(&kind.kind.to_lowercase()) {
            errors.push(
                at.invalid(kind.kind.as_str(), format!("may have mixed case, but should otherwise match: {text}")),
            );
        }
    }
}

fn validate_api_version(path: &Path, api_version: &str, errors: &mut ErrorList) {
    let (group, version) = match api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            let text = format!("unexpected GroupVersion string: {api_version}");
            errors.push(path.invalid(api_version, text));
            return;
        }
        Some(parts) => parts,
        None => ("", api_version),
    };
    if !group.is_empty() {
        errors.push_invalid(path, group, names::dns1123_subdomain(group));
    }
    if version.is_empty() {
        errors.push(path.invalid(api_version, "version must be specified"));
    } else {
        errors.push_invalid(path, version, names::dns1035_label(version));
    }
}

fn validate_param_ref(path: &Path, param_ref: &ParamRef, errors: &mut ErrorList) {
    const BOTH: &str = "name and selector are mutually exclusive";
    let (name, selector) = (path.child("name"), path.child("selector"));
    let both = !param_ref.name.is_empty() && param_ref.selector.is_some();
    if !param_ref.name.is_empty() {
        errors.push_invalid(&name, &param_ref.name, names::path_segment_name(&param_ref.name));
        if both {
            errors.push(name.forbidden(BOTH));
        }
    }
    if let Some(own) = &param_ref.selector {
        label_selector::validate(&selector, own, Values::Checked, errors);
        if both {
            errors.push(selector.forbidden(BOTH));
        }
    }
    if param_ref.name.is_empty() && param_ref.selector.is_none() {
        errors.push(path.required("one of name or selector must be specified"));
    }
    let at = path.child("parameterNotFoundAction");
    match &param_ref.parameter_not_found_action {
        None => errors.push(at.required("")),
        Some(action) if parameter_not_found_action_type::ALL.contains(&action.as_str()) => {}
        Some(action) => {
            let supported = [parameter_not_found_action_type::DENY, parameter_not_found_action_type::ALLOW];
            errors.push(at.not_supported_in_order(BadValue::named(action), &supported));
        }
    }
}

/// What tables show of the kind of a policy's parameters.
pub(super) fn shown_kind(kind: Option<&ParamKind>) -> String {
    kind.map_or_else(|| UNSET.to_owned(), |kind| format!("{}/{}", kind.api_version, kind.kind))
}

/// What tables show of the parameters of a binding.
pub(super) fn shown_ref(param_ref: Option<&ParamRef>) -> String {
    match param_ref {
        None => UNSET.to_owned(),
        Some(own) if own.namespace.is_empty() => format!("*/{}", own.name),
        Some(own) => format!("{}/{}", own.namespace, own.name),
    }
}

const UNSET: &str = "<unset>";
