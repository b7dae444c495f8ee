//! Validation of the rules by which webhooks and policies match requests.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::admissionregistration_v1::RuleWithOperations;
use api_types::admissionregistration_v1::constants::{ALL, operation_type, scope_type};

use crate::field_rules;

/// Checks one rule.
pub(super) fn validate(path: &Path, rule: &RuleWithOperations, errors: &mut ErrorList) {
    let at = path.child("operations");
    listed(&at, &rule.operations, "operations", errors);
    for (index, operation) in rule.operations.iter().enumerate() {
        field_rules::one_of(&at.index(index), operation, operation_type::ALL, errors);
    }
    let rule = &rule.rule;
    listed(&path.child("apiGroups"), &rule.api_groups, "API groups", errors);
    let at = path.child("apiVersions");
    listed(&at, &rule.api_versions, "API versions", errors);
    each_set(&at, &rule.api_versions, errors);
    resources(&path.child("resources"), &rule.resources, errors);
    field_rules::one_of_if_set(&path.child("scope"), rule.scope.as_ref(), scope_type::ALL, errors);
}

/// Something is in the list, and what stands for all is in it alone.
fn listed(path: &Path, items: &[String], what: &str, errors: &mut ErrorList) {
    if items.is_empty() {
        errors.push(path.required(""));
    }
    if items.len() > 1 && items.iter().any(|item| item == ALL) {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(path.invalid(BadValue::list(items), detail));
    }
}

fn each_set(path: &Path, items: &[String], errors: &mut ErrorList) {
    for (index, item) in items.iter().enumerate() {
        field_rules::required(&path.index(index), item, errors);
    }
}

fn resources(path: &Path, items: &[String], errors: &mut ErrorList) {
    if items.is_empty() {
        errors.push(path.required(""));
    }
    let (mut all_of, mut all_with) = (BTreeSet::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        let at = path.index(index);
        if !field_rules::required(&at, item, errors) || item == "*/*" {
            continue;
        }
        let Some((resource, subresource)) = item.split_once('/') else { continue };
        for (covered, by) in [
            (all_of.contains(resource), format!("{resource}/*")),
            (all_with.contains(subresource), format!("*/{subresource}")),
        ] {
            if covered {
                let detail = format!("if '{by}' is present, must not specify {item}");
                errors.push(at.invalid(item.as_str(), detail));
            }
        }
        if subresource == ALL {
            all_of.insert(resource);
        }
        if resource == ALL {
            all_with.insert(subresource);
        }
    }
    let has = |wanted: &str| items.iter().any(|item| item == wanted);
    if items.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(path.invalid(BadValue::list(items), detail));
    }
    // Upstream looks at the last entry without a subresource alone.
    if has(ALL) && items.iter().rfind(|item| !item.contains('/')).is_some_and(|last| last != ALL) {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(path.invalid(BadValue::list(items), detail));
    }
}
