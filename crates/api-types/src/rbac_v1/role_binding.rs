//! RoleBinding and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Grants a role to subjects within one namespace.
#[api(kind = "RoleBinding", resource = "rolebindings", namespaced)]
pub struct RoleBinding {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Who gets the role.
    #[field(2)]
    pub subjects: Vec<Subject>,
    /// Role or cluster role that is granted. Immutable.
    #[field(3, always, required)]
    pub role_ref: RoleRef,
}

/// A user, group or service account that gets a role.
#[api(atomic)]
pub struct Subject {
    /// Kind of the subject: User, Group or ServiceAccount.
    #[field(1, always, required)]
    pub kind: String,
    /// API group of the subject. Default is empty for service accounts.
    #[field(2)]
    pub api_group: String,
    /// Name of the subject.
    #[field(3, always, required)]
    pub name: String,
    /// Namespace of the service account. Not allowed for users and groups.
    #[field(4)]
    pub namespace: String,
}

/// Points to the role that is granted.
#[api(atomic)]
pub struct RoleRef {
    /// API group of the role, which is rbac.authorization.k8s.io.
    #[field(1, always)]
    pub api_group: String,
    /// Kind of the role: Role or ClusterRole.
    #[field(2, always, required)]
    pub kind: String,
    /// Name of the role.
    #[field(3, always, required)]
    pub name: String,
}
