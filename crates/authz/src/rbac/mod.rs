//! Role-based access control over the cluster's roles and bindings.

mod cover;
mod escalation;
mod rules;
mod subjects;

use std::ops::Deref;
use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use async_trait::async_trait;

pub use cover::{break_down, covers, is_cluster_admin};
pub use escalation::{EscalationError, Granting, holds, may_grant};
pub use rules::rule_allows;
pub use subjects::{describe, matches};

use crate::{Attributes, Authorizer, Outcome, RuleSet, aggregate};

/// Where roles and bindings come from; answers are snapshots.
pub trait RoleSource: Send + Sync {
    /// A role of a namespace.
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Role>>;
    /// A role of the cluster.
    fn cluster_role(&self, name: &str) -> Option<Arc<ClusterRole>>;
    /// The bindings of a namespace.
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<RoleBinding>>;
    /// The bindings of the cluster.
    fn cluster_role_bindings(&self) -> Vec<Arc<ClusterRoleBinding>>;
}

/// The RBAC authorizer.
pub struct Rbac<S> {
    source: S,
}

/// One binding that applies to a caller, with the rules that it grants.
struct Grant<'a> {
    rules: Result<Granted, String>,
    /// Made only where it is shown: most bindings that apply do not decide.
    reason: &'a dyn Fn() -> String,
}

/// The rules of a role, which is shared: every request looks at those of several roles.
enum Granted {
    Role(Arc<Role>),
    ClusterRole(Arc<ClusterRole>),
}

impl Deref for Granted {
    type Target = [PolicyRule];
    fn deref(&self) -> &[PolicyRule] {
        match self {
            Self::Role(role) => &role.rules,
            Self::ClusterRole(role) => &role.rules,
        }
    }
}

impl<S: RoleSource> Rbac<S> {
    /// An authorizer over these roles.
    pub fn new(source: S) -> Self {
        Self { source }
    }

    /// Decides about one request.
    #[must_use]
    pub fn decide(&self, attributes: &Attributes) -> Outcome {
        let (mut allowed, mut errors) = (None, Vec::new());
        self.visit(&attributes.user, &attributes.namespace, &mut |grant| match grant.rules {
            Ok(rules) if rules.iter().any(|rule| rule_allows(rule, attributes)) => {
                allowed = Some((grant.reason)());
                false
            }
            Ok(_) => true,
            Err(error) => {
                errors.push(error);
                true
            }
        });
        if let Some(reason) = allowed {
            return Outcome::allow(reason);
        }
        let reason = if errors.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(errors)) };
        Outcome::no_opinion(reason)
    }

    /// Every rule that the caller holds in a namespace and the cluster, and the errors of missing roles.
    pub fn rules_of(&self, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        self.visit(user, namespace, &mut |grant| {
            match grant.rules {
                Ok(own) => rules.extend(own.iter().cloned()),
                Err(error) => errors.push(error),
            }
            true
        });
        (rules, errors)
    }

    /// The rules of a role that a binding in `namespace` refers to.
    ///
    /// # Errors
    /// When there is no such role; upstream's text.
    pub fn rules_of_reference(&self, reference: &RoleRef, namespace: &str) -> Result<Vec<PolicyRule>, String> {
        self.granted(reference, namespace).map(|rules| rules.to_vec())
    }

    fn granted(&self, reference: &RoleRef, namespace: &str) -> Result<Granted, String> {
        let (rules, resource) = if reference.kind == "Role" {
            (self.source.role(namespace, &reference.name).map(Granted::Role), "role")
        } else {
            (self.source.cluster_role(&reference.name).map(Granted::ClusterRole), "clusterrole")
        };
        rules.ok_or_else(|| format!("{resource}.rbac.authorization.k8s.io {:?} not found", reference.name))
    }

    /// Calls `use_grant` with each grant until it says stop: those of the cluster first, then the namespace's.
    fn visit(&self, user: &UserInfo, namespace: &str, use_grant: &mut dyn FnMut(Grant<'_>) -> bool) {
        for binding in self.source.cluster_role_bindings() {
            let Some(subject) = applying(&binding.subjects, user, "") else { continue };
            let reason = || {
                format!(
                    "RBAC: allowed by ClusterRoleBinding {:?} of ClusterRole {:?} to {}",
                    binding.metadata.name,
                    binding.role_ref.name,
                    describe(subject, "")
                )
            };
            if !use_grant(Grant { rules: self.granted(&binding.role_ref, ""), reason: &reason }) {
                return;
            }
        }
        if namespace.is_empty() {
            return;
        }
        for binding in self.source.role_bindings(namespace) {
            let Some(subject) = applying(&binding.subjects, user, namespace) else { continue };
            let reason = || {
                format!(
                    "RBAC: allowed by RoleBinding {:?} of {} {:?} to {}",
                    format!("{}/{namespace}", binding.metadata.name),
                    binding.role_ref.kind,
                    binding.role_ref.name,
                    describe(subject, namespace)
                )
            };
            if !use_grant(Grant { rules: self.granted(&binding.role_ref, namespace), reason: &reason }) {
                return;
            }
        }
    }
}

fn applying<'a>(of: &'a [Subject], user: &UserInfo, namespace: &str) -> Option<&'a Subject> {
    of.iter().find(|subject| matches(subject, user, namespace))
}

#[async_trait]
impl<S: RoleSource> Authorizer for Rbac<S> {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        self.decide(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let (rules, errors) = self.rules_of(user, namespace);
        RuleSet { rules, incomplete: !errors.is_empty(), errors }
    }
}

#[cfg(test)]
mod tests;
