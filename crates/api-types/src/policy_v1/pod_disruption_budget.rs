//! PodDisruptionBudget and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{Condition, LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use super::constants::unhealthy_pod_eviction_policy_type;

/// Limits how many pods voluntary disruptions may take down.
#[api(kind = "PodDisruptionBudget", resource = "poddisruptionbudgets", namespaced)]
pub struct PodDisruptionBudget {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired limits.
    #[field(2)]
    pub spec: PodDisruptionBudgetSpec,
    /// Last observed state of the budget.
    #[field(3)]
    pub status: PodDisruptionBudgetStatus,
}

/// The desired limits on voluntary disruption.
#[api]
pub struct PodDisruptionBudgetSpec {
    /// Pods that must stay healthy, as number or percentage. Excludes maxUnavailable.
    #[field(1)]
    pub min_available: Option<IntOrString>,
    /// Selects the protected pods. Empty selects all in the namespace.
    #[field(2, replace)]
    pub selector: Option<LabelSelector>,
    /// Pods that may be down, as number or percentage. Excludes minAvailable.
    #[field(3)]
    pub max_unavailable: Option<IntOrString>,
    /// When unready pods may be evicted: IfHealthyBudget (default) or AlwaysAllow.
    #[field(4, go = "v1.UnhealthyPodEvictionPolicyType", values = unhealthy_pod_eviction_policy_type::ALL)]
    pub unhealthy_pod_eviction_policy: Option<String>,
}

/// The observed state of a disruption budget.
#[api]
pub struct PodDisruptionBudgetStatus {
    /// Latest generation the controller acts on.
    #[field(1)]
    pub observed_generation: i64,
    /// Pods being evicted but not yet seen as deleted, with times.
    #[field(2)]
    pub disrupted_pods: BTreeMap<String, Time>,
    /// Number of evictions allowed right now.
    #[field(3, always)]
    pub disruptions_allowed: i32,
    /// Number of selected pods that are healthy.
    #[field(4, always)]
    pub current_healthy: i32,
    /// Number of selected pods that must be healthy.
    #[field(5, always)]
    pub desired_healthy: i32,
    /// Number of pods the budget covers.
    #[field(6, always)]
    pub expected_pods: i32,
    /// Latest observed conditions of the budget.
    #[field(7, merge_key = "type")]
    pub conditions: Vec<Condition>,
}
