//! ClusterRoleBinding.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{RoleRef, Subject};

/// Grants a cluster role to subjects in the whole cluster.
#[api(kind = "ClusterRoleBinding", resource = "clusterrolebindings")]
pub struct ClusterRoleBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Who gets the role.
    #[field(2)]
    pub subjects: Vec<Subject>,
    /// Cluster role that is granted. Immutable.
    #[field(3, always, required)]
    pub role_ref: RoleRef,
}
