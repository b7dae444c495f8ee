//! storagemigration.k8s.io/v1beta1: one file per kind, with what it is made of.

pub mod constants;
mod storage_version_migration;

pub use storage_version_migration::{
    StorageVersionMigration, StorageVersionMigrationSpec, StorageVersionMigrationStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.storagemigration.v1beta1";
/// The API group.
pub const GROUP: &str = "storagemigration.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
