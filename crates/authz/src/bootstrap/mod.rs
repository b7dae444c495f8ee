//! The default roles and bindings, and how a cluster's own ones are brought up to them at start.

mod cluster_roles;
mod controller_roles;
mod facts;
mod gated_roles;
mod namespaced_roles;
mod reconcile;

use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use component_base::Gates;

pub use reconcile::{BindingPlan, reconcile_binding, reconcile_cluster_role, reconcile_role};

/// The default cluster roles.
#[must_use]
pub fn cluster_roles() -> Vec<ClusterRole> {
    cluster_roles::ROLES.iter().chain(controller_roles::ROLES).map(facts::RoleFact::cluster_role).collect()
}

/// The same with what they allow besides where these gates are switched so.
#[must_use]
pub fn cluster_roles_with(gates: &Gates) -> Vec<ClusterRole> {
    let mut roles = cluster_roles();
    gated_roles::add_rules(&mut roles, gates);
    roles
}

/// The default cluster role bindings.
#[must_use]
pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    let facts = cluster_roles::BINDINGS.iter().chain(controller_roles::BINDINGS);
    facts.map(facts::BindingFact::cluster_role_binding).collect()
}

/// The default cluster roles of features that are on where these gates are switched so.
#[must_use]
pub fn gated_cluster_roles(gates: &Gates) -> Vec<ClusterRole> {
    gated_roles::of(gates).map(|(role, _)| role.cluster_role()).collect()
}

/// The bindings of these.
#[must_use]
pub fn gated_cluster_role_bindings(gates: &Gates) -> Vec<ClusterRoleBinding> {
    gated_roles::of(gates).map(|(_, binding)| binding.cluster_role_binding()).collect()
}

/// The default roles of the system namespaces.
#[must_use]
pub fn roles() -> Vec<Role> {
    namespaced_roles::ROLES.iter().map(facts::RoleFact::role).collect()
}

/// The default role bindings of the system namespaces.
#[must_use]
pub fn role_bindings() -> Vec<RoleBinding> {
    namespaced_roles::BINDINGS.iter().map(facts::BindingFact::role_binding).collect()
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
