//! Workload and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::disruption_mode;
use super::pod_group::{PodGroupResourceClaim, PodGroupSchedulingConstraints, PodGroupSchedulingPolicy};

/// Groups of pods that are scheduled together.
#[api(kind = "Workload", resource = "workloads", namespaced)]
pub struct Workload {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The groups.
    #[field(2, always, required)]
    pub spec: WorkloadSpec,
}

/// Groups of pods.
#[api]
pub struct WorkloadSpec {
    /// Object whose pods they are. It never changes.
    #[field(1)]
    pub controller_ref: Option<TypedLocalObjectReference>,
    /// What groups are made of, 1 to 8. It never changes.
    #[field(2, always, required, keys("name"))]
    pub pod_group_templates: Vec<PodGroupTemplate>,
}

/// Refers to an object of the same namespace.
#[api]
pub struct TypedLocalObjectReference {
    /// API group of the object; empty for core.
    #[field(1)]
    pub api_group: String,
    /// Kind of the object.
    #[field(2, always, required)]
    pub kind: String,
    /// Name of the object.
    #[field(3, always, required)]
    pub name: String,
}

/// What a group of pods is made of.
#[api]
pub struct PodGroupTemplate {
    /// Name of the template, unique in its workload.
    #[field(1, always, required)]
    pub name: String,
    /// How the group is scheduled.
    #[field(2, always, required)]
    pub scheduling_policy: PodGroupSchedulingPolicy,
    /// Where pods of the group may be, seen together.
    #[field(3, always)]
    pub scheduling_constraints: Option<PodGroupSchedulingConstraints>,
    /// Claims that the pods share, at most 4.
    #[field(4, merge_key = "name", retain_keys)]
    pub resource_claims: Vec<PodGroupResourceClaim>,
    /// What is disrupted at a time: one Pod, or the whole PodGroup.
    #[field(5, go = "v1alpha2.DisruptionMode", values = disruption_mode::ALL)]
    pub disruption_mode: Option<String>,
    /// Priority class of the group.
    #[field(6)]
    pub priority_class_name: String,
    /// Priority of the group, set from its class.
    #[field(7)]
    pub priority: Option<i32>,
}
