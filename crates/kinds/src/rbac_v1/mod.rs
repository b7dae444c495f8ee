//! The kinds of rbac.authorization.k8s.io/v1.

mod cluster_role;
mod cluster_role_binding;
mod role;
mod role_binding;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<cluster_role_binding::ClusterRoleBindingRules>::new(),
    &Typed::<cluster_role::ClusterRoleRules>::new(),
    &Typed::<role_binding::RoleBindingRules>::new(),
    &Typed::<role::RoleRules>::new(),
];
