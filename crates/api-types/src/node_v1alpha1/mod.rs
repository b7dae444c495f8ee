//! node.k8s.io/v1alpha1: runtime classes with a spec. Nobody serves it any more; a store may hold it.

mod runtime_class;

pub use runtime_class::{RuntimeClass, RuntimeClassSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.node.v1alpha1";
/// The API group.
pub const GROUP: &str = "node.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha1";
