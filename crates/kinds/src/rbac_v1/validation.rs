//! Validation of roles and bindings. Escalation is checked before, by the server.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::LabelSelector;
use api_machinery::names;
use api_types::rbac_v1::{ClusterRole, GROUP, PolicyRule, RoleRef, Subject};
use component_helpers::selectors::selector_of;

use crate::field_rules as rules;
use crate::label_selector::{self, Values};

/// Whether what is checked belongs to a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Namespace,
    Cluster,
}

/// Checks the rules of a role.
pub(super) fn validate_rules(policy: &[PolicyRule], scope: Scope, errors: &mut ErrorList) {
    for (index, rule) in policy.iter().enumerate() {
        let path = Path::new("rules").index(index);
        if rule.verbs.is_empty() {
            errors.push(path.child("verbs").required("verbs must contain at least one value"));
        }
        if rule.non_resource_urls.is_empty() {
            if rule.api_groups.is_empty() {
                errors.push(path.child("apiGroups").required("resource rules must supply at least one api group"));
            }
            if rule.resources.is_empty() {
                errors.push(path.child("resources").required("resource rules must supply at least one resource"));
            }
            continue;
        }
        let at = path.child("nonResourceURLs");
        let value = || BadValue::list(&rule.non_resource_urls);
        if scope == Scope::Namespace {
            errors.push(at.invalid(value(), "namespaced rules cannot apply to non-resource URLs"));
        }
        if !(rule.api_groups.is_empty() && rule.resources.is_empty() && rule.resource_names.is_empty()) {
            errors.push(at.invalid(value(), "rules cannot apply to both regular resources and non-resource URLs"));
        }
    }
}

/// Checks what a cluster role aggregates.
pub(super) fn validate_aggregation(role: &ClusterRole, old: Option<&ClusterRole>, errors: &mut ErrorList) {
    let Some(rule) = &role.aggregation_rule else { return };
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    let selectors = |role: &ClusterRole| -> Vec<LabelSelector> {
        role.aggregation_rule.as_ref().map(|rule| rule.cluster_role_selectors.clone()).unwrap_or_default()
    };
    if rule.cluster_role_selectors.is_empty() {
        errors.push(path.required("at least one clusterRoleSelector required if aggregationRule is non-nil"));
    }
    let is_stored = old.is_some_and(|old| selectors(old).iter().any(label_selector::is_bad));
    let values = if is_stored { Values::AsStored } else { Values::Checked };
    for (index, selector) in rule.cluster_role_selectors.iter().enumerate() {
        let at = path.index(index);
        label_selector::validate(&at, selector, values, errors);
        if selector_of(Some(selector)).is_err() {
            errors.push(at.invalid(BadValue::null(), "invalid label selector."));
        }
    }
}

/// Checks a binding.
pub(super) fn validate_binding(role: &RoleRef, subjects: &[Subject], scope: Scope, errors: &mut ErrorList) {
    let path = Path::new("roleRef");
    if role.api_group != GROUP {
        errors.push(path.child("apiGroup").not_supported(&role.api_group, &[GROUP]));
    }
    let kinds: &[&str] = if scope == Scope::Cluster { &["ClusterRole"] } else { &["Role", "ClusterRole"] };
    if !kinds.contains(&role.kind.as_str()) {
        errors.push(path.child("kind").not_supported_in_order(&role.kind, kinds));
    }
    rules::named(&path.child("name"), &role.name, names::path_segment_name, errors);
    for (index, subject) in subjects.iter().enumerate() {
        validate_subject(&Path::new("subjects").index(index), subject, scope, errors);
    }
}

fn validate_subject(path: &Path, subject: &Subject, scope: Scope, errors: &mut ErrorList) {
    let at = path.child("name");
    rules::required(&at, &subject.name, errors);
    let group = |expected: &str, errors: &mut ErrorList| {
        if subject.api_group != expected {
            errors.push(path.child("apiGroup").not_supported(&subject.api_group, &[expected]));
        }
    };
    match subject.kind.as_str() {
        "ServiceAccount" => {
            rules::named_if_set(&at, &subject.name, names::dns1123_subdomain, errors);
            group("", errors);
            if scope == Scope::Cluster {
                rules::required(&path.child("namespace"), &subject.namespace, errors);
            }
        }
        "User" | "Group" => group(GROUP, errors),
        other => {
            errors.push(path.child("kind").not_supported_in_order(other, &["ServiceAccount", "User", "Group"]));
        }
    }
}

/// A binding keeps its role.
pub(super) fn validate_role_stays(role: &RoleRef, old: &RoleRef, errors: &mut ErrorList) {
    if role != old {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let (group, kind, name) = (text(&role.api_group), text(&role.kind), text(&role.name));
        let value = BadValue::json(format!(r#"{{"APIGroup":{group},"Kind":{kind},"Name":{name}}}"#));
        errors.push(Path::new("roleRef").invalid(value, "cannot change roleRef"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_name_what_they_allow() {
        let rule =
            PolicyRule { non_resource_urls: vec!["/x".into()], resources: vec!["pods".into()], ..Default::default() };
        let mut errors = ErrorList::new();
        validate_rules(&[PolicyRule::default(), rule], Scope::Namespace, &mut errors);
        assert_eq!(
            texts(&errors),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[1].verbs: Required value: verbs must contain at least one value",
                r#"rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#,
                concat!(
                    r#"rules[1].nonResourceURLs: Invalid value: ["/x"]: "#,
                    "rules cannot apply to both regular resources and non-resource URLs"
                ),
            ]
        );
    }

    #[test]
    fn bindings_name_a_role_and_subjects() {
        let role = RoleRef { api_group: GROUP.into(), kind: "Role".into(), name: "a/b".into() };
        let subject = Subject { kind: "ServiceAccount".into(), name: "s".into(), ..Default::default() };
        let mut errors = ErrorList::new();
        validate_binding(&role, &[subject], Scope::Cluster, &mut errors);
        validate_role_stays(&role, &RoleRef::default(), &mut errors);
        assert_eq!(
            texts(&errors),
            [
                r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#,
                r#"roleRef.name: Invalid value: "a/b": may not contain '/'"#,
                "subjects[0].namespace: Required value",
                concat!(
                    r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"a/b"}: "#,
                    "cannot change roleRef"
                ),
            ]
        );
    }
}
