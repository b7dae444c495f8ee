//! Well-known names and the values of string types.

/// Values of `CoordinatedLeaseStrategy`.
pub mod coordinated_lease_strategy {
    pub const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";
}
