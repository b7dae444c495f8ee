//! One rule: what is done to which resources.

use api_types::admissionregistration_v1::RuleWithOperations;
use api_types::admissionregistration_v1::constants::{ALL, scope_type};

use crate::{Attributes, Operation};

/// Whether objects have to be in a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// It does not matter.
    #[default]
    Any,
    /// They have to be. Namespaces themselves are not.
    Namespaced,
    /// They may not be.
    Cluster,
}

/// A rule.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    operations: Vec<Operation>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Names and subresources.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Names of objects; empty for all.
    names: Vec<String>,
}

impl From<&RuleWithOperations> for Rule {
    fn from(own: &RuleWithOperations) -> Self {
        Self {
            operations: Operation::ALL
                .into_iter()
                .filter(|operation| has(&own.operations, operation.as_str()))
                .collect(),
            groups: own.rule.api_groups.clone(),
            versions: own.rule.api_versions.clone(),
            resources: own.rule.resources.iter().map(|own| in_two(own)).collect(),
            scope: match own.rule.scope.as_deref() {
                Some(scope_type::NAMESPACED) => Scope::Namespaced,
                Some(scope_type::CLUSTER) => Scope::Cluster,
                _ => Scope::Any,
            },
            names: Vec::new(),
        }
    }
}

/// A resource and its subresource, which `a` and `*` have none of.
fn in_two(resource: &str) -> (String, String) {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    (resource.to_owned(), subresource.to_owned())
}

/// Whether a list has an item, or what stands for all.
fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|own| own == ALL || own == item)
}

impl Rule {
    /// The same, for objects of these names only; none for all.
    #[must_use]
    pub fn named(self, names: &[String]) -> Self {
        Self { names: names.to_vec(), ..self }
    }

    /// Whether a request is matched, if its resource is called this.
    pub(super) fn matches(&self, attributes: &Attributes, [group, version, resource]: [&str; 3]) -> bool {
        self.operations.contains(&attributes.operation)
            && has(&self.groups, group)
            && has(&self.versions, version)
            && self.has_resource(resource, &attributes.subresource)
            && self.has_scope(attributes)
            && (self.names.is_empty() || self.names.contains(&attributes.name))
    }

    /// `a/*` and `*/*` may have any subresource or none.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|(own_resource, own_subresource)| {
            (own_resource == ALL || own_resource == resource)
                && (own_subresource == ALL || own_subresource == subresource)
        })
    }

    fn has_scope(&self, attributes: &Attributes) -> bool {
        let is_namespaces = attributes.group.is_empty() && attributes.resource == "namespaces";
        let namespaced = !attributes.namespace.is_empty() && !is_namespaces;
        match self.scope {
            Scope::Any => true,
            Scope::Namespaced => namespaced,
            Scope::Cluster => !namespaced,
        }
    }
}
