//! PodGroup and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};

use super::constants::disruption_mode;

/// Pods that are scheduled together.
#[api(kind = "PodGroup", resource = "podgroups", namespaced)]
pub struct PodGroup {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// How they are scheduled.
    #[field(2, always, required)]
    pub spec: PodGroupSpec,
    /// How far they are scheduled.
    #[field(3)]
    pub status: PodGroupStatus,
}

/// How a group of pods is scheduled.
#[api]
pub struct PodGroupSpec {
    /// Template that the group was made from. It never changes.
    #[field(1, always)]
    pub pod_group_template_ref: Option<PodGroupTemplateReference>,
    /// How the group is scheduled.
    #[field(2, always, required)]
    pub scheduling_policy: PodGroupSchedulingPolicy,
    /// Where pods of the group may be, seen together.
    #[field(3)]
    pub scheduling_constraints: Option<PodGroupSchedulingConstraints>,
    /// Claims that the pods share, at most 4.
    #[field(4, merge_key = "name", retain_keys)]
    pub resource_claims: Vec<PodGroupResourceClaim>,
    /// What is disrupted at a time: one Pod, or the whole PodGroup.
    #[field(5, go = "v1alpha2.DisruptionMode", values = disruption_mode::ALL, default = "\"Pod\"", fill = "\"Pod\"")]
    pub disruption_mode: Option<String>,
    /// Priority class of the group.
    #[field(6)]
    pub priority_class_name: String,
    /// Priority of the group, set from its class.
    #[field(7)]
    pub priority: Option<i32>,
}

/// Refers to what a group was made from. Exactly one form is set.
#[api(union(workload = "Workload"))]
pub struct PodGroupTemplateReference {
    /// A template of a Workload.
    #[field(1, always)]
    pub workload: Option<WorkloadPodGroupTemplateReference>,
}

/// Refers to a template of a Workload.
#[api]
pub struct WorkloadPodGroupTemplateReference {
    /// Name of the Workload.
    #[field(1, always, required)]
    pub workload_name: String,
    /// Name of the template in it.
    #[field(2, always, required)]
    pub pod_group_template_name: String,
}

/// How a group is scheduled. Exactly one form is set.
#[api(union(basic = "Basic", gang = "Gang"))]
pub struct PodGroupSchedulingPolicy {
    /// Pod by pod.
    #[field(1)]
    pub basic: Option<BasicSchedulingPolicy>,
    /// All at once, or none.
    #[field(2)]
    pub gang: Option<GangSchedulingPolicy>,
}

/// Pods are scheduled one by one.
#[api]
pub struct BasicSchedulingPolicy {}

/// Pods are scheduled when enough of them can be.
#[api]
pub struct GangSchedulingPolicy {
    /// How many must fit at the same time, at least 1.
    #[field(1, always, required)]
    pub min_count: i32,
}

/// Where pods of a group may be.
#[api]
pub struct PodGroupSchedulingConstraints {
    /// Domains that all pods must share, at most one.
    #[field(1)]
    pub topology: Vec<TopologyConstraint>,
}

/// All pods of a group are in one domain.
#[api]
pub struct TopologyConstraint {
    /// Node label whose value names the domain.
    #[field(1, always, required)]
    pub key: String,
}

/// A claim that the pods of a group share. Exactly one of the names is set.
#[api]
pub struct PodGroupResourceClaim {
    /// Name that pods refer to it by.
    #[field(1, always, required)]
    pub name: String,
    /// Claim that is used.
    #[field(2)]
    pub resource_claim_name: Option<String>,
    /// Template that a claim for the group is made from.
    #[field(3)]
    pub resource_claim_template_name: Option<String>,
}

/// How far a group is scheduled.
#[api]
pub struct PodGroupStatus {
    /// Current conditions of the group.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<Condition>,
    /// Claims that were made for the group, at most 4.
    #[field(2, merge_key = "name", retain_keys)]
    pub resource_claim_statuses: Vec<PodGroupResourceClaimStatus>,
}

/// A claim that was made for a group.
#[api]
pub struct PodGroupResourceClaimStatus {
    /// Name of the claim in the group.
    #[field(1, always, required)]
    pub name: String,
    /// Name of the object; none where none was needed.
    #[field(2)]
    pub resource_claim_name: Option<String>,
}
