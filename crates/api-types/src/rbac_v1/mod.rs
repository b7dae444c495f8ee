//! rbac.authorization.k8s.io/v1: one file per kind, with what it is made of.

mod cluster_role;
mod cluster_role_binding;
pub mod constants;
mod role;
mod role_binding;

pub use cluster_role::{AggregationRule, ClusterRole};
pub use cluster_role_binding::ClusterRoleBinding;
pub use role::{PolicyRule, Role};
pub use role_binding::{RoleBinding, RoleRef, Subject};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.rbac.v1";
/// The API group.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
