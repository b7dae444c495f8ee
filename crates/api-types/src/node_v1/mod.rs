//! node.k8s.io/v1: one file per kind, with what it is made of.

mod runtime_class;

pub use runtime_class::{Overhead, RuntimeClass, Scheduling};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.node.v1";
/// The API group.
pub const GROUP: &str = "node.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
