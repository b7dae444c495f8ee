//! The parts about memory, shutdown and restarts.

use api_machinery::api;
use api_machinery::time::GoDuration;

use crate::core_v1::ResourceList;

/// Memory kept on a memory node.
#[api]
pub struct MemoryReservation {
    /// The memory node.
    #[field(0)]
    pub numa_node: i32,
    /// What is kept there.
    #[field(0)]
    pub limits: ResourceList,
}

/// How long pods of a priority may take to end.
#[api]
pub struct ShutdownGracePeriodByPodPriority {
    /// The priority from which this holds.
    #[field(0)]
    pub priority: i32,
    /// Seconds that such pods get.
    #[field(0)]
    pub shutdown_grace_period_seconds: i64,
}

/// How containers may use swap.
#[api]
pub struct MemorySwapConfiguration {
    /// NoSwap or LimitedSwap.
    #[field(0)]
    pub swap_behavior: String,
}

/// Delays of containers that crash.
#[api]
pub struct CrashLoopBackOffConfig {
    /// The longest delay.
    #[field(0, fill = "\"5m0s\"")]
    pub max_container_restart_period: Option<GoDuration>,
}

/// Id ranges of pods with a user namespace.
#[api]
pub struct UserNamespaces {
    /// Ids of each pod.
    #[field(0)]
    pub ids_per_pod: Option<i64>,
}
