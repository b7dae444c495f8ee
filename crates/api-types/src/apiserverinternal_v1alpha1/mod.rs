//! internal.apiserver.k8s.io/v1alpha1: one file per kind, with what it is made of.

mod storage_version;

pub use storage_version::{
    ServerStorageVersion, StorageVersion, StorageVersionCondition, StorageVersionSpec, StorageVersionStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.apiserverinternal.v1alpha1";
/// The API group.
pub const GROUP: &str = "internal.apiserver.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha1";
