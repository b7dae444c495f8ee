//! Well-known names and the values of string types.

pub const DISRUPTION_ALLOWED_CONDITION: &str = "DisruptionAllowed";
pub const DISRUPTION_BUDGET_CAUSE: &str = "DisruptionBudget";
pub const INSUFFICIENT_PODS_REASON: &str = "InsufficientPods";
pub const SUFFICIENT_PODS_REASON: &str = "SufficientPods";
pub const SYNC_FAILED_REASON: &str = "SyncFailed";

/// Values of `UnhealthyPodEvictionPolicyType`.
pub mod unhealthy_pod_eviction_policy_type {
    values! { IF_HEALTHY_BUDGET = "IfHealthyBudget", ALWAYS_ALLOW = "AlwaysAllow" }
}
