//! rbac.authorization.k8s.io/v1alpha1: rules with other numbers, subjects with a version. Nobody serves it any more; a
//! store may hold it.

mod binding;
mod role;

pub use binding::{ClusterRoleBinding, RoleBinding, Subject};
pub use role::{ClusterRole, PolicyRule, Role};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.rbac.v1alpha1";
/// The API group.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha1";
