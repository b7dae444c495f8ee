//! Roles and bindings of rbac.authorization.k8s.io/v1alpha1 in the form that is stored now.

use api_machinery::gvk::GroupVersion;
use api_machinery::object::Object;
use api_types::rbac_v1::{self, PolicyRule, Subject};
use api_types::rbac_v1alpha1::{self as first, ClusterRole, ClusterRoleBinding, Role, RoleBinding};

pub(super) fn role(object: &dyn Object) -> Option<Box<dyn Object>> {
    let role: Role = object.downcast_ref().cloned()?;
    Some(Box::new(rbac_v1::Role { metadata: role.metadata, rules: rules(role.rules) }))
}

pub(super) fn cluster_role(object: &dyn Object) -> Option<Box<dyn Object>> {
    let role: ClusterRole = object.downcast_ref().cloned()?;
    Some(Box::new(rbac_v1::ClusterRole {
        metadata: role.metadata,
        rules: rules(role.rules),
        aggregation_rule: role.aggregation_rule,
    }))
}

pub(super) fn role_binding(object: &dyn Object) -> Option<Box<dyn Object>> {
    let binding: RoleBinding = object.downcast_ref().cloned()?;
    Some(Box::new(rbac_v1::RoleBinding {
        metadata: binding.metadata,
        subjects: subjects(binding.subjects),
        role_ref: binding.role_ref,
    }))
}

pub(super) fn cluster_role_binding(object: &dyn Object) -> Option<Box<dyn Object>> {
    let binding: ClusterRoleBinding = object.downcast_ref().cloned()?;
    Some(Box::new(rbac_v1::ClusterRoleBinding {
        metadata: binding.metadata,
        subjects: subjects(binding.subjects),
        role_ref: binding.role_ref,
    }))
}

/// Only the numbers of the fields were others.
fn rules(rules: Vec<first::PolicyRule>) -> Vec<PolicyRule> {
    let rule = |rule: first::PolicyRule| PolicyRule {
        verbs: rule.verbs,
        api_groups: rule.api_groups,
        resources: rule.resources,
        resource_names: rule.resource_names,
        non_resource_urls: rule.non_resource_urls,
    };
    rules.into_iter().map(rule).collect()
}

/// The kind decides on the group, where it is one that is known; and the user `*` was everybody who is somebody.
fn subjects(subjects: Vec<first::Subject>) -> Vec<Subject> {
    let subject = |subject: first::Subject| {
        let group = match subject.kind.as_str() {
            "ServiceAccount" => String::new(),
            "User" | "Group" => rbac_v1::GROUP.to_owned(),
            _ => GroupVersion::parse(&subject.api_version).map(|version| version.group.to_string()).unwrap_or_default(),
        };
        let everybody = subject.kind == "User" && subject.name == "*";
        let (kind, name) = if everybody {
            ("Group".to_owned(), "system:authenticated".to_owned())
        } else {
            (subject.kind, subject.name)
        };
        Subject { kind, api_group: group, name, namespace: subject.namespace }
    };
    subjects.into_iter().map(subject).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_subject_decides_on_its_group() {
        for (kind, version, name, expected) in [
            ("User", "v1", "a", ["User", "rbac.authorization.k8s.io", "a"]),
            ("User", "rbac/v1alpha1", "*", ["Group", "rbac.authorization.k8s.io", "system:authenticated"]),
            ("Group", "", "*", ["Group", "rbac.authorization.k8s.io", "*"]),
            ("ServiceAccount", "v1", "a", ["ServiceAccount", "", "a"]),
            ("Robot", "example.com/v1", "a", ["Robot", "example.com", "a"]),
            ("Robot", "a/b/c", "a", ["Robot", "", "a"]),
        ] {
            let given = first::Subject {
                kind: kind.into(),
                api_version: version.into(),
                name: name.into(),
                namespace: "n".into(),
            };
            let read = subjects(vec![given]);
            assert_eq!([&read[0].kind, &read[0].api_group, &read[0].name], expected, "{kind} {name}");
            assert_eq!(read[0].namespace, "n");
        }
    }
}
