//! RoleBinding and ClusterRoleBinding, whose subjects had a version instead of a group.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::rbac_v1::RoleRef;

/// Grants a role to subjects within one namespace.
#[api(kind = "RoleBinding", resource = "rolebindings", namespaced)]
pub struct RoleBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Who gets the role.
    #[field(2)]
    pub subjects: Vec<Subject>,
    /// Role or cluster role that is granted.
    #[field(3, always)]
    pub role_ref: RoleRef,
}

/// Grants a cluster role to subjects in the whole cluster.
#[api(kind = "ClusterRoleBinding", resource = "clusterrolebindings")]
pub struct ClusterRoleBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Who gets the role.
    #[field(2)]
    pub subjects: Vec<Subject>,
    /// Cluster role that is granted.
    #[field(3, always)]
    pub role_ref: RoleRef,
}

/// A user, group or service account that gets a role.
#[api]
pub struct Subject {
    /// Kind of the subject: User, Group or ServiceAccount.
    #[field(1, always)]
    pub kind: String,
    /// Version of the kind.
    #[field(2)]
    pub api_version: String,
    /// Name of the subject.
    #[field(3, always)]
    pub name: String,
    /// Namespace of the service account.
    #[field(4)]
    pub namespace: String,
}
