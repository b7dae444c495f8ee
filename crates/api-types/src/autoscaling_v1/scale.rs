//! Scale and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// The size of a workload, read and set through a subresource.
#[api(kind = "Scale")]
pub struct Scale {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Wanted size.
    #[field(2)]
    pub spec: ScaleSpec,
    /// Observed size.
    #[field(3)]
    pub status: ScaleStatus,
}

/// The wanted size of a workload.
#[api]
pub struct ScaleSpec {
    /// Wanted number of instances. Default is 0.
    #[field(1, default = "0")]
    pub replicas: i32,
}

/// The observed size of a workload.
#[api]
pub struct ScaleStatus {
    /// Number of instances that exist.
    #[field(1, always, required)]
    pub replicas: i32,
    /// Label selector of the instances, as query text.
    #[field(2)]
    pub selector: String,
}
