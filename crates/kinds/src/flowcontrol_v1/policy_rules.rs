//! Validation of the rules of a flow schema.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::flowcontrol_v1::constants::subject_kind;
use api_types::flowcontrol_v1::{
    NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, ServiceAccountSubject, Subject,
};

use crate::field_rules;

const ANY: &str = "*";
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Checks one rule.
pub(super) fn validate(path: &Path, rule: &PolicyRulesWithSubjects, errors: &mut ErrorList) {
    if rule.subjects.is_empty() {
        errors.push(path.child("subjects").required("subjects must contain at least one value"));
    }
    for (index, subject) in rule.subjects.iter().enumerate() {
        validate_subject(&path.child("subjects").index(index), subject, errors);
    }
    if rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty() {
        errors.push(path.required("at least one of resourceRules and nonResourceRules has to be non-empty"));
    }
    for (index, own) in rule.resource_rules.iter().enumerate() {
        validate_resources(&path.child("resourceRules").index(index), own, errors);
    }
    for (index, own) in rule.non_resource_rules.iter().enumerate() {
        validate_paths(&path.child("nonResourceRules").index(index), own, errors);
    }
}

fn validate_subject(path: &Path, subject: &Subject, errors: &mut ErrorList) {
    let kind = subject.kind.as_str();
    // What belongs to each kind, in the order in which the others are forbidden.
    let parts = [
        (subject_kind::SERVICE_ACCOUNT, "serviceAccount", subject.service_account.is_some()),
        (subject_kind::USER, "user", subject.user.is_some()),
        (subject_kind::GROUP, "group", subject.group.is_some()),
    ];
    let Some((_, own, is_set)) = parts.iter().find(|(of, ..)| *of == kind) else {
        return field_rules::one_of(&path.child("kind"), kind, subject_kind::ALL, errors);
    };
    let at = path.child(*own);
    if !is_set {
        errors.push(at.required(format!("{own} is required when subject kind is '{kind}'")));
    } else if let (subject_kind::SERVICE_ACCOUNT, Some(account)) = (kind, &subject.service_account) {
        validate_account(&at, account, errors);
    } else {
        let name = match kind {
            subject_kind::USER => subject.user.as_ref().map(|user| &user.name),
            _ => subject.group.as_ref().map(|group| &group.name),
        };
        _ = field_rules::required(&at.child("name"), name.map(String::as_str).unwrap_or_default(), errors);
    }
    for (of, field, _) in parts.iter().filter(|(of, _, is_set)| *of != kind && *is_set) {
        errors.push(path.child(*field).forbidden(format!("{field} is forbidden when subject kind is not '{of}'")));
    }
}

fn validate_account(path: &Path, account: &ServiceAccountSubject, errors: &mut ErrorList) {
    let at = path.child("name");
    if field_rules::required(&at, &account.name, errors) && account.name != ANY {
        errors.push_invalid(&at, &account.name, crate::object_name::dns_subdomain(&account.name, false));
    }
    let at = path.child("namespace");
    if account.namespace.is_empty() {
        errors.push(at.required("must specify namespace for service account"));
    } else {
        errors.push_invalid(&at, &account.namespace, names::dns1123_label(&account.namespace));
    }
}

/// Checks that a star stands alone. Says whether there is none, so that each value means itself.
fn stands_alone(path: &Path, values: &[String], what: &str, errors: &mut ErrorList) -> bool {
    let has_star = values.iter().any(|value| value == ANY);
    if has_star && values.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(path.invalid(BadValue::list(values), detail));
    }
    !has_star
}

fn validate_verbs(path: &Path, verbs: &[String], errors: &mut ErrorList) {
    if verbs.is_empty() {
        errors.push(path.required("verbs must contain at least one value"));
    } else if stands_alone(path, verbs, "verbs", errors) && !verbs.iter().all(|verb| VERBS.contains(&verb.as_str())) {
        errors.push(path.not_supported(BadValue::list(verbs), &VERBS));
    }
}

fn validate_resources(path: &Path, rule: &ResourcePolicyRule, errors: &mut ErrorList) {
    validate_verbs(&path.child("verbs"), &rule.verbs, errors);
    let at = path.child("apiGroups");
    if rule.api_groups.is_empty() {
        errors.push(at.required("resource rules must supply at least one api group"));
    }
    stands_alone(&at, &rule.api_groups, "api groups", errors);
    let at = path.child("resources");
    if rule.resources.is_empty() {
        errors.push(at.required("resource rules must supply at least one resource"));
    }
    stands_alone(&at, &rule.resources, "resources", errors);
    let at = path.child("namespaces");
    if rule.namespaces.is_empty() && !rule.cluster_scope {
        errors.push(at.required("resource rules that are not cluster scoped must supply at least one namespace"));
    }
    if stands_alone(&at, &rule.namespaces, "namespaces", errors) {
        for (index, namespace) in rule.namespaces.iter().enumerate() {
            for text in names::dns1123_label(namespace) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {text}");
                errors.push(at.index(index).invalid(namespace.as_str(), detail));
            }
        }
    }
}

fn validate_paths(path: &Path, rule: &NonResourcePolicyRule, errors: &mut ErrorList) {
    validate_verbs(&path.child("verbs"), &rule.verbs, errors);
    let at = path.child("nonResourceURLs");
    if rule.non_resource_urls.is_empty() {
        errors.push(at.required("nonResourceURLs must contain at least one value"));
    }
    if stands_alone(&at, &rule.non_resource_urls, "non-resource URLs", errors) {
        for (index, url) in rule.non_resource_urls.iter().enumerate() {
            if let Some(detail) = path_problem(url) {
                errors.push(at.index(index).invalid(url.as_str(), detail));
            }
        }
    }
}

/// What is wrong with a path that may end in a star.
fn path_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches(ANY).count();
    if url.is_empty() {
        Some("must not be empty")
    } else if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if url.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || stars == 1 && !url.ends_with("/*") {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}
