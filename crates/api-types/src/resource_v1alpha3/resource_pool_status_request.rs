//! ResourcePoolStatusRequest and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};

/// Asks once how many devices of pools are free.
#[api(kind = "ResourcePoolStatusRequest", resource = "resourcepoolstatusrequests")]
pub struct ResourcePoolStatusRequest {
    /// Standard object metadata.
    #[field(1, required)]
    pub metadata: ObjectMeta,
    /// Which pools. It never changes.
    #[field(2, always, required)]
    pub spec: ResourcePoolStatusRequestSpec,
    /// The answer; it never changes.
    #[field(3)]
    pub status: Option<ResourcePoolStatusRequestStatus>,
}

/// Pools that are asked about.
#[api]
pub struct ResourcePoolStatusRequestSpec {
    /// Driver of the pools.
    #[field(1, always, required)]
    pub driver: String,
    /// The only pool of interest; all of the driver without it.
    #[field(2)]
    pub pool_name: Option<String>,
    /// Most pools that the answer lists, 1 to 1000. Default 100.
    #[field(3, default = "100", fill = "100")]
    pub limit: Option<i32>,
}

/// State of pools.
#[api]
pub struct ResourcePoolStatusRequestStatus {
    /// How many pools match, listed or not.
    #[field(6, required)]
    pub pool_count: Option<i32>,
    /// The pools, by driver and name.
    #[field(2)]
    pub pools: Vec<PoolStatus>,
    /// Current conditions of the request, at most 10.
    #[field(3, merge_key = "type")]
    pub conditions: Vec<Condition>,
}

/// State of one pool.
#[api]
pub struct PoolStatus {
    /// Driver of the pool.
    #[field(1, required)]
    pub driver: String,
    /// Name of the pool.
    #[field(2, required)]
    pub pool_name: String,
    /// Newest generation of the pool.
    #[field(9, always, required)]
    pub generation: i64,
    /// How many slices it has.
    #[field(8)]
    pub resource_slice_count: Option<i32>,
    /// How many devices it has.
    #[field(4)]
    pub total_devices: Option<i32>,
    /// How many are allocated.
    #[field(5)]
    pub allocated_devices: Option<i32>,
    /// How many are free.
    #[field(6)]
    pub available_devices: Option<i32>,
    /// How many cannot be used, such as tainted ones.
    #[field(7)]
    pub unavailable_devices: Option<i32>,
    /// Node of the pool, where it has one.
    #[field(3)]
    pub node_name: Option<String>,
    /// Why the pool cannot be used, where it cannot.
    #[field(10)]
    pub validation_error: Option<String>,
}
