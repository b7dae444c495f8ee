//! Roles and bindings as the server has seen them.

use std::sync::Arc;

use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use authz::rbac::RoleSource;
use base::TaskGroup;
use registry::Registry;

use crate::mirror::Mirror;

/// Mirrors of the four kinds of RBAC.
#[derive(Clone, Default)]
pub(crate) struct MirroredRoles {
    pub(crate) roles: Arc<Mirror<Role>>,
    pub(crate) role_bindings: Arc<Mirror<RoleBinding>>,
    pub(crate) cluster_roles: Arc<Mirror<ClusterRole>>,
    pub(crate) cluster_role_bindings: Arc<Mirror<ClusterRoleBinding>>,
}

impl MirroredRoles {
    /// Keeps the mirrors up to date.
    pub(crate) fn follow(&self, registry: &Registry, tasks: &TaskGroup) {
        self.roles.follow(registry, tasks);
        self.role_bindings.follow(registry, tasks);
        self.cluster_roles.follow(registry, tasks);
        self.cluster_role_bindings.follow(registry, tasks);
    }
}

impl MirroredRoles {
    /// The kinds that have not been seen yet.
    pub(crate) fn unsynced(&self) -> Vec<&'static str> {
        let kinds = [
            ("*v1.Role", self.roles.is_synced()),
            ("*v1.RoleBinding", self.role_bindings.is_synced()),
            ("*v1.ClusterRole", self.cluster_roles.is_synced()),
            ("*v1.ClusterRoleBinding", self.cluster_role_bindings.is_synced()),
        ];
        kinds.into_iter().filter(|(_, synced)| !synced).map(|(kind, _)| kind).collect()
    }
}

impl RoleSource for MirroredRoles {
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Role>> {
        self.roles.get(namespace, name)
    }
    fn cluster_role(&self, name: &str) -> Option<Arc<ClusterRole>> {
        self.cluster_roles.get("", name)
    }
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<RoleBinding>> {
        self.role_bindings.in_namespace(namespace)
    }
    fn cluster_role_bindings(&self) -> Vec<Arc<ClusterRoleBinding>> {
        self.cluster_role_bindings.in_namespace("")
    }
}
