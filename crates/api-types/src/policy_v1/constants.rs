//! Well-known names and the values of string types.

/// Values of `UnhealthyPodEvictionPolicyType`.
pub mod unhealthy_pod_eviction_policy_type {
    values! { IF_HEALTHY_BUDGET = "IfHealthyBudget", ALWAYS_ALLOW = "AlwaysAllow" }
}
