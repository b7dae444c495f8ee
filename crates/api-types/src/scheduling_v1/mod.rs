//! scheduling.k8s.io/v1: one file per kind, with what it is made of.

mod priority_class;

pub use priority_class::PriorityClass;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.scheduling.v1";
/// The API group.
pub const GROUP: &str = "scheduling.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
