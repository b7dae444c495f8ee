//! Devices that pods claim (KEP-4381).

pub(crate) mod pool_status;
pub(crate) mod resource_claim;
pub(crate) mod taint_eviction;
