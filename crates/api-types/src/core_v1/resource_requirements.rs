//! ResourceRequirements and what it is made of.

use api_machinery::api;

use super::ResourceList;

/// Compute resources that a container or pod needs.
#[api]
pub struct ResourceRequirements {
    /// Most of each resource that may be used.
    #[field(1, go = "v1.ResourceList")]
    pub limits: ResourceList,
    /// Least of each resource that is needed; default is the limit.
    #[field(2, go = "v1.ResourceList")]
    pub requests: ResourceList,
    /// Entries of the pod's resourceClaims that are used here.
    #[field(3, keys("name"))]
    pub claims: Vec<ResourceClaim>,
}

/// Refers to an entry of the pod's resourceClaims.
#[api]
pub struct ResourceClaim {
    /// Name of the entry in the pod's resourceClaims.
    #[field(1, always, required)]
    pub name: String,
    /// Request in the claim to use; empty uses all of them.
    #[field(2)]
    pub request: String,
}

/// Storage resources that a volume needs.
#[api]
pub struct VolumeResourceRequirements {
    /// Most storage that the volume may have.
    #[field(1, go = "v1.ResourceList")]
    pub limits: ResourceList,
    /// Least storage that the volume must have.
    #[field(2, go = "v1.ResourceList")]
    pub requests: ResourceList,
}
