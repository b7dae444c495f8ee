//! Lease and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::MicroTime;

/// A renewable claim, used for leader election and node heartbeats.
#[api(kind = "Lease", resource = "leases", namespaced)]
pub struct Lease {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Holder and timing of the lease.
    #[field(2)]
    pub spec: LeaseSpec,
}

/// Holder and timing of a lease.
#[api]
pub struct LeaseSpec {
    /// Who currently holds the lease.
    #[field(1)]
    pub holder_identity: Option<String>,
    /// Seconds others wait after renewTime before taking over. Must be above 0.
    #[field(2)]
    pub lease_duration_seconds: Option<i32>,
    /// Time at which the current holder got the lease.
    #[field(3)]
    pub acquire_time: Option<MicroTime>,
    /// Time at which the holder last renewed the lease.
    #[field(4)]
    pub renew_time: Option<MicroTime>,
    /// Number of changes of holder.
    #[field(5)]
    pub lease_transitions: Option<i32>,
    /// How a coordinated election picks the holder, such as OldestEmulationVersion.
    #[field(6, go = "v1.CoordinatedLeaseStrategy")]
    pub strategy: Option<String>,
    /// Who should take over next. Needs strategy to be set.
    #[field(7)]
    pub preferred_holder: Option<String>,
}
