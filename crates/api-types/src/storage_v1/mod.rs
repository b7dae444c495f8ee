//! storage.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod storage_class;

pub use storage_class::StorageClass;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.storage.v1";
/// The API group.
pub const GROUP: &str = "storage.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
