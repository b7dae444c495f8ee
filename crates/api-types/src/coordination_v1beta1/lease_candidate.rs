//! LeaseCandidate and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::MicroTime;

/// Somebody who would hold a Lease, for elections that the control plane decides.
#[api(kind = "LeaseCandidate", resource = "leasecandidates", namespaced)]
pub struct LeaseCandidate {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which lease, and what the candidate runs.
    #[field(2)]
    pub spec: LeaseCandidateSpec,
}

/// What a candidate says of itself.
#[api]
pub struct LeaseCandidateSpec {
    /// Name of the Lease that it would hold. It never changes.
    #[field(1, always, required)]
    pub lease_name: String,
    /// Time at which the election last asked whether the candidate is there. Candidates answer by renewTime.
    #[field(2)]
    pub ping_time: Option<MicroTime>,
    /// Time at which the candidate last said that it is there. One that was silent for long is forgotten.
    #[field(3)]
    pub renew_time: Option<MicroTime>,
    /// Version of the candidate's binary, such as 1.36.0.
    #[field(4, always, required)]
    pub binary_version: String,
    /// Version that the binary acts as, at most its own. Needed for OldestEmulationVersion.
    #[field(5)]
    pub emulation_version: String,
    /// How the election picks among candidates, such as OldestEmulationVersion.
    #[field(6, required, go = "v1.CoordinatedLeaseStrategy")]
    pub strategy: String,
}
