//! StorageVersionMigration and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, GroupResource, ObjectMeta};

/// Rewrites all objects of a resource in the version that is stored now.
#[api(kind = "StorageVersionMigration", resource = "storageversionmigrations")]
pub struct StorageVersionMigration {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which resource. It never changes.
    #[field(2)]
    pub spec: StorageVersionMigrationSpec,
    /// How far it got.
    #[field(3)]
    pub status: StorageVersionMigrationStatus,
}

/// What is rewritten.
#[api]
pub struct StorageVersionMigrationSpec {
    /// The resource.
    #[field(1, always, required)]
    pub resource: GroupResource,
}

/// How far a migration got.
#[api]
pub struct StorageVersionMigrationStatus {
    /// Running, Succeeded or Failed.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<Condition>,
    /// Objects that are newer than this need no rewriting.
    #[field(2)]
    pub resource_version: String,
}
