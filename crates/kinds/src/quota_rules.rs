//! Rules that ranges and quotas of resources share: names, amounts, and the scopes of a quota.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::resource_quota_scope;
use api_types::core_v1::{ResourceList, ResourceQuotaSpec, ScopedResourceSelectorRequirement};

use crate::pod_spec::validation::{amount, standard_name};

const NOT_STANDARD: &str = "must be a standard resource type or fully qualified";
const COMPUTE: [&str; 7] = ["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
     ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
     ResourceQuotaScopeCrossNamespacePodAffinity";

/// Checks the name of any resource; tells whether it is one.
pub(crate) fn resource_name(path: &Path, name: &str, errors: &mut ErrorList) -> bool {
    let problems = names::qualified_name(name);
    let standard = name.contains('/') || standard_name(name);
    let good = problems.is_empty() && standard;
    let value = || BadValue::named(name);
    errors.extend(problems.iter().map(|detail| path.invalid(value(), detail.clone())));
    if problems.is_empty() && !standard {
        errors.push(path.invalid(value(), NOT_STANDARD));
    }
    good
}

/// Checks amounts by the names that quotas count.
pub(crate) fn amounts(path: &Path, list: &ResourceList, errors: &mut ErrorList) {
    for (name, quantity) in list {
        let at = path.key(name);
        let known = resource_name(&at, name, errors);
        let plain = !name.contains('/') && names::qualified_name(name).is_empty();
        // Plain storage is known to claims, and no quota counts it.
        if plain && (!known || name == "storage") {
            errors.push(at.invalid(BadValue::named(name), "must be a standard resource for quota"));
        }
        amount(&at, name, quantity, errors);
    }
}

fn applies(scope: &str, resource: &str) -> bool {
    let standard = standard_name(resource) && !resource.contains('/');
    match scope {
        _ if !standard => true,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => COMPUTE.contains(&resource),
    }
}

fn conflicts(scopes: &[&str]) -> bool {
    let has = |scope: &str| scopes.contains(&scope);
    (has("BestEffort") && has("NotBestEffort")) || (has("Terminating") && has("NotTerminating"))
}

/// Checks what a quota limits, and for which pods.
pub(crate) fn quota(path: &Path, spec: &ResourceQuotaSpec, errors: &mut ErrorList) {
    amounts(&path.child("hard"), &spec.hard, errors);
    let at = path.child("scopes");
    let list = BadValue::list(&spec.scopes);
    let shown = || list.clone();
    for scope in &spec.scopes {
        // What is shown grows with the number of scopes.
        if errors.is_full() {
            break;
        }
        if !resource_quota_scope::ALL.contains(&scope.as_str()) {
            errors.push(at.invalid(shown(), "unsupported scope"));
        }
        for _ in spec.hard.keys().filter(|resource| !applies(scope, resource)) {
            errors.push(at.invalid(shown(), "unsupported scope applied to resource"));
        }
    }
    if conflicts(&spec.scopes.iter().map(String::as_str).collect::<Vec<_>>()) {
        errors.push(at.invalid(shown(), "conflicting scopes"));
    }
    let Some(selector) = &spec.scope_selector else { return };
    let path = path.child("scopeSelector").child("matchExpressions");
    for requirement in &selector.match_expressions {
        if errors.is_full() {
            break;
        }
        let scope = requirement.scope_name.as_str();
        if !resource_quota_scope::ALL.contains(&scope) {
            errors.push(path.child("scopeName").invalid(BadValue::named(scope), "unsupported scope"));
        }
        for _ in spec.hard.keys().filter(|resource| !applies(scope, resource)) {
            let value = crate::internal_json::bad_value(selector);
            errors.push(path.invalid(value, "unsupported scope applied to resource"));
        }
        scope_requirement(&path, requirement, errors);
    }
    if conflicts(&selector.match_expressions.iter().map(|one| one.scope_name.as_str()).collect::<Vec<_>>()) {
        errors.push(path.invalid(shown(), "conflicting scopes"));
    }
}

fn scope_requirement(path: &Path, requirement: &ScopedResourceSelectorRequirement, errors: &mut ErrorList) {
    let operator = requirement.operator.as_str();
    let valued = matches!(requirement.scope_name.as_str(), "PriorityClass" | "VolumeAttributesClass");
    let at = path.child("operator");
    if !valued && resource_quota_scope::ALL.contains(&requirement.scope_name.as_str()) && operator != "Exists" {
        errors.push(at.invalid(BadValue::named(operator), ONLY_EXISTS));
    }
    match operator {
        "In" | "NotIn" if requirement.values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(path.child("values").required(detail));
        }
        "Exists" | "DoesNotExist" if !requirement.values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.push(path.child("values").invalid(BadValue::list(&requirement.values), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(at.invalid(BadValue::named(other), "not a valid selector operator")),
    }
}
