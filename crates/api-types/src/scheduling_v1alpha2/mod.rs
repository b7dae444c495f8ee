//! scheduling.k8s.io/v1alpha2: one file per kind, with what it is made of.

pub mod constants;
mod pod_group;
mod workload;

pub use pod_group::{
    BasicSchedulingPolicy, GangSchedulingPolicy, PodGroup, PodGroupResourceClaim, PodGroupResourceClaimStatus,
    PodGroupSchedulingConstraints, PodGroupSchedulingPolicy, PodGroupSpec, PodGroupStatus, PodGroupTemplateReference,
    TopologyConstraint, WorkloadPodGroupTemplateReference,
};
pub use workload::{PodGroupTemplate, TypedLocalObjectReference, Workload, WorkloadSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.scheduling.v1alpha2";
/// The API group.
pub const GROUP: &str = "scheduling.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha2";
