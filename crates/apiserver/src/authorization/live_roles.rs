//! Roles and bindings as the store has them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::rbac_v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use authz::rbac::RoleSource;
use registry::Registry;

use crate::own_request::server_request;

/// What decides about a user in one namespace, read for one decision: mirrors are a little behind what was written.
pub(crate) struct LiveRoles {
    roles: BTreeMap<String, Arc<Role>>,
    role_bindings: Vec<Arc<RoleBinding>>,
    cluster_roles: BTreeMap<String, Arc<ClusterRole>>,
    cluster_role_bindings: Vec<Arc<ClusterRoleBinding>>,
}

impl LiveRoles {
    /// Reads the cluster's roles and bindings, and the namespace's if there is one.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read(registry: &Registry, namespace: &str) -> Result<Self, ApiError> {
        let mut live = Self {
            roles: BTreeMap::new(),
            role_bindings: Vec::new(),
            cluster_roles: named(listed(registry, "").await?),
            cluster_role_bindings: listed(registry, "").await?,
        };
        if !namespace.is_empty() {
            live.roles = named(listed(registry, namespace).await?);
            live.role_bindings = listed(registry, namespace).await?;
        }
        Ok(live)
    }
}

async fn listed<T: Object + Kind + Clone>(registry: &Registry, namespace: &str) -> Result<Vec<Arc<T>>, ApiError> {
    let Some(resource) = registry.resource(T::TYPE.group, T::TYPE.version, T::TYPE.resource) else {
        return Ok(Vec::new());
    };
    let cx = server_request(resource.rule_context(), namespace);
    let found = resource.list(&cx, &ListOptions::default()).await?;
    let typed = |object: &dyn Object| object.downcast_ref::<T>().cloned().map(Arc::new);
    // Looked at once: what is at rest stays at rest.
    Ok(found.items.iter().filter_map(|item| item.look(typed)).collect())
}

fn named<T: Object>(objects: Vec<Arc<T>>) -> BTreeMap<String, Arc<T>> {
    objects.into_iter().map(|object| (object.meta().name.clone(), object)).collect()
}

/// All that was read is of one namespace, and asked for that one only.
impl RoleSource for LiveRoles {
    fn role(&self, _: &str, name: &str) -> Option<Arc<Role>> {
        self.roles.get(name).cloned()
    }
    fn cluster_role(&self, name: &str) -> Option<Arc<ClusterRole>> {
        self.cluster_roles.get(name).cloned()
    }
    fn role_bindings(&self, _: &str) -> Vec<Arc<RoleBinding>> {
        self.role_bindings.clone()
    }
    fn cluster_role_bindings(&self) -> Vec<Arc<ClusterRoleBinding>> {
        self.cluster_role_bindings.clone()
    }
}
