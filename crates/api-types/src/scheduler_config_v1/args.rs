//! The arguments of plugins, one struct for each plugin that has any.

use api_machinery::api;
use api_machinery::time::GoDuration;

use crate::core_v1::{NodeAffinity, TopologySpreadConstraint};

/// Arguments of `DefaultPreemption`.
#[api]
pub struct DefaultPreemptionArgs {
    /// Share of nodes to try at least; default 10.
    #[field(0)]
    pub min_candidate_nodes_percentage: Option<i32>,
    /// Number of nodes to try at least; default 100.
    #[field(0)]
    pub min_candidate_nodes_absolute: Option<i32>,
}

/// Arguments of `DynamicResources`.
#[api]
pub struct DynamicResourcesArgs {
    /// Longest time to filter one node; default 10s.
    #[field(0, always)]
    pub filter_timeout: Option<GoDuration>,
    /// Longest wait for binding conditions; default 10m.
    #[field(0)]
    pub binding_timeout: Option<GoDuration>,
}

/// Arguments of `InterPodAffinity`.
#[api]
pub struct InterPodAffinityArgs {
    /// Score of a required affinity term of an existing pod; default 1.
    #[field(0)]
    pub hard_pod_affinity_weight: Option<i32>,
    /// Whether preferred terms of existing pods do not count.
    #[field(0, always)]
    pub ignore_preferred_terms_of_existing_pods: bool,
}

/// Arguments of `NodeAffinity`.
#[api]
pub struct NodeAffinityArgs {
    /// Affinity that every pod of the profile has on top of its own.
    #[field(0)]
    pub added_affinity: Option<NodeAffinity>,
}

/// Arguments of `NodeResourcesBalancedAllocation`.
#[api]
pub struct NodeResourcesBalancedAllocationArgs {
    /// Resources to balance; default cpu and memory.
    #[field(0, keys("name"))]
    pub resources: Vec<ResourceSpec>,
}

/// Arguments of `NodeResourcesFit`.
#[api]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not checked.
    #[field(0, atomic)]
    pub ignored_resources: Vec<String>,
    /// Groups of extended resources that are not checked.
    #[field(0, atomic)]
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are scored.
    #[field(0)]
    pub scoring_strategy: Option<ScoringStrategy>,
}

/// Arguments of `PodTopologySpread`.
#[api]
pub struct PodTopologySpreadArgs {
    /// Constraints of pods that have none, with defaultingType List.
    #[field(0, atomic)]
    pub default_constraints: Vec<TopologySpreadConstraint>,
    /// Where default constraints come from: System (default) or List.
    #[field(0)]
    pub defaulting_type: String,
}

/// Arguments of `VolumeBinding`.
#[api]
pub struct VolumeBindingArgs {
    /// Longest wait for volumes in seconds; default 600.
    #[field(0)]
    pub bind_timeout_seconds: Option<i64>,
    /// Points of the scoring function.
    #[field(0, atomic)]
    pub shape: Vec<UtilizationShapePoint>,
}

/// How nodes are scored by their resources.
#[api]
pub struct ScoringStrategy {
    /// LeastAllocated (default), MostAllocated or RequestedToCapacityRatio.
    #[field(0)]
    pub type_: String,
    /// Resources that count; default cpu and memory.
    #[field(0)]
    pub resources: Vec<ResourceSpec>,
    /// Set exactly for type RequestedToCapacityRatio.
    #[field(0)]
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatioParam>,
}

/// A scoring function of the utilization.
#[api]
pub struct RequestedToCapacityRatioParam {
    /// Its points, by rising utilization.
    #[field(0, atomic)]
    pub shape: Vec<UtilizationShapePoint>,
}

/// One point of a scoring function.
#[api]
pub struct UtilizationShapePoint {
    /// Utilization in percent.
    #[field(0, always)]
    pub utilization: i32,
    /// Score from 0 to 10.
    #[field(0, always)]
    pub score: i32,
}

/// A resource and how much it counts.
#[api]
pub struct ResourceSpec {
    /// Name of the resource.
    #[field(0, always)]
    pub name: String,
    /// Its weight; 0 means 1.
    #[field(0)]
    pub weight: i64,
}
