//! The shape of the default roles and bindings, small enough to be read as a table.

use std::collections::BTreeMap;

use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_types::rbac_v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A role; a cluster role where the namespace is empty.
pub(super) struct RoleFact {
    pub(super) name: &'static str,
    pub(super) namespace: &'static str,
    pub(super) labels: &'static [(&'static str, &'static str)],
    /// The label of the roles whose rules it gathers; empty for none.
    pub(super) aggregate: &'static str,
    pub(super) rules: &'static [RuleFact],
}

/// A rule.
pub(super) struct RuleFact {
    verbs: &'static [&'static str],
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    names: &'static [&'static str],
    urls: &'static [&'static str],
}

/// A binding; of the cluster where the namespace is empty.
pub(super) struct BindingFact {
    pub(super) name: &'static str,
    pub(super) namespace: &'static str,
    pub(super) role_kind: &'static str,
    pub(super) role: &'static str,
    pub(super) subjects: &'static [SubjectFact],
}

/// Whom a binding is for.
pub(super) struct SubjectFact {
    kind: &'static str,
    namespace: &'static str,
    name: &'static str,
}

type Words = &'static [&'static str];

/// A rule about resources.
pub(super) const fn rule(verbs: Words, groups: Words, resources: Words) -> RuleFact {
    named(verbs, groups, resources, &[])
}

/// A rule about named objects.
pub(super) const fn named(verbs: Words, groups: Words, resources: Words, names: Words) -> RuleFact {
    RuleFact { verbs, groups, resources, names, urls: &[] }
}

/// A rule about paths.
pub(super) const fn urls(verbs: Words, urls: Words) -> RuleFact {
    RuleFact { verbs, groups: &[], resources: &[], names: &[], urls }
}

/// A subject of a binding.
pub(super) const fn subject(kind: &'static str, namespace: &'static str, name: &'static str) -> SubjectFact {
    SubjectFact { kind, namespace, name }
}

fn strings(words: Words) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn metadata(name: &str, namespace: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let mut all: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    all.insert("kubernetes.io/bootstrapping".into(), "rbac-defaults".into());
    let annotations = BTreeMap::from([("rbac.authorization.kubernetes.io/autoupdate".into(), "true".into())]);
    ObjectMeta { name: name.into(), namespace: namespace.into(), labels: all, annotations, ..ObjectMeta::default() }
}

impl RuleFact {
    /// As a role has it.
    pub(super) fn policy_rule(&self) -> PolicyRule {
        PolicyRule {
            verbs: strings(self.verbs),
            api_groups: strings(self.groups),
            resources: strings(self.resources),
            resource_names: strings(self.names),
            non_resource_urls: strings(self.urls),
        }
    }
}

impl RoleFact {
    fn rules(&self) -> Vec<PolicyRule> {
        self.rules.iter().map(RuleFact::policy_rule).collect()
    }

    /// As a cluster role.
    pub(super) fn cluster_role(&self) -> ClusterRole {
        let aggregation_rule = (!self.aggregate.is_empty()).then(|| {
            let match_labels = BTreeMap::from([(self.aggregate.to_owned(), "true".to_owned())]);
            AggregationRule { cluster_role_selectors: vec![LabelSelector { match_labels, ..LabelSelector::default() }] }
        });
        ClusterRole { metadata: metadata(self.name, "", self.labels), rules: self.rules(), aggregation_rule }
    }

    /// As a role of its namespace.
    pub(super) fn role(&self) -> Role {
        Role { metadata: metadata(self.name, self.namespace, self.labels), rules: self.rules() }
    }
}

impl BindingFact {
    fn reference(&self) -> RoleRef {
        RoleRef { api_group: GROUP.into(), kind: self.role_kind.into(), name: self.role.into() }
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject = |fact: &SubjectFact| Subject {
            kind: fact.kind.into(),
            api_group: if fact.kind == "ServiceAccount" { String::new() } else { GROUP.into() },
            name: fact.name.into(),
            namespace: fact.namespace.into(),
        };
        self.subjects.iter().map(subject).collect()
    }

    /// As a binding of the cluster.
    pub(super) fn cluster_role_binding(&self) -> ClusterRoleBinding {
        ClusterRoleBinding {
            metadata: metadata(self.name, "", &[]),
            subjects: self.subjects(),
            role_ref: self.reference(),
        }
    }

    /// As a binding of its namespace.
    pub(super) fn role_binding(&self) -> RoleBinding {
        RoleBinding {
            metadata: metadata(self.name, self.namespace, &[]),
            subjects: self.subjects(),
            role_ref: self.reference(),
        }
    }
}
