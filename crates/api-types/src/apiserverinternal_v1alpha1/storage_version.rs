//! StorageVersion and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

/// Versions of a resource that API servers store and read.
#[api(kind = "StorageVersion", resource = "storageversions")]
pub struct StorageVersion {
    /// Standard object metadata.
    #[field(1, required)]
    pub metadata: ObjectMeta,
    /// Nothing.
    #[field(2, always)]
    pub spec: StorageVersionSpec,
    /// What the servers say.
    #[field(3, always)]
    pub status: StorageVersionStatus,
}

/// Nothing; the state is told by servers.
#[api]
pub struct StorageVersionSpec {}

/// What API servers say of a resource.
#[api]
pub struct StorageVersionStatus {
    /// What each server says.
    #[field(1, keys("apiServerID"))]
    pub storage_versions: Vec<ServerStorageVersion>,
    /// Version that all servers store, if it is one.
    #[field(2)]
    pub common_encoding_version: Option<String>,
    /// Current conditions.
    #[field(3, keys("type"))]
    pub conditions: Vec<StorageVersionCondition>,
}

/// What one API server says.
#[api]
pub struct ServerStorageVersion {
    /// Name of the server.
    #[field(1, name = "apiServerID", required)]
    pub api_server_id: String,
    /// Version that it stores.
    #[field(2, required)]
    pub encoding_version: String,
    /// Versions that it can read.
    #[field(3, required, set)]
    pub decodable_versions: Vec<String>,
    /// Versions that it serves, of those that it reads.
    #[field(4, set)]
    pub served_versions: Vec<String>,
}

/// One observed aspect of a resource's versions.
#[api]
pub struct StorageVersionCondition {
    /// Name of the condition.
    #[field(1, always, required, go = "v1alpha1.StorageVersionConditionType")]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[field(2, always, required, go = "v1alpha1.ConditionStatus")]
    pub status: String,
    /// Generation that it was seen at.
    #[field(3)]
    pub observed_generation: i64,
    /// Time at which the status last changed.
    #[field(4)]
    pub last_transition_time: Time,
    /// Short reason for the condition.
    #[field(5, always, required)]
    pub reason: String,
    /// Text for people about the condition.
    #[field(6, required)]
    pub message: String,
}
