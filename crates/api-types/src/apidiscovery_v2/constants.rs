//! Well-known names and the values of string types.

/// Values of `ResourceScope`.
pub mod resource_scope {
    pub const CLUSTER: &str = "Cluster";
    pub const NAMESPACED: &str = "Namespaced";
}

/// Values of `DiscoveryFreshness`.
pub mod discovery_freshness {
    pub const CURRENT: &str = "Current";
    pub const STALE: &str = "Stale";
}
