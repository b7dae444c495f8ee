//! The values of string types.

/// Values of `MetricSourceType`.
pub mod metric_source_type {
    values! {
        OBJECT = "Object",
        PODS = "Pods",
        RESOURCE = "Resource",
        CONTAINER_RESOURCE = "ContainerResource",
        EXTERNAL = "External",
    }
}

/// Values of `MetricTargetType`.
pub mod metric_target_type {
    values! { UTILIZATION = "Utilization", VALUE = "Value", AVERAGE_VALUE = "AverageValue" }
}

/// Values of `ScalingPolicySelect`.
pub mod scaling_policy_select {
    values! { MAX = "Max", MIN = "Min", DISABLED = "Disabled" }
}

/// Values of `HPAScalingPolicyType`.
pub mod hpa_scaling_policy_type {
    values! { PODS = "Pods", PERCENT = "Percent" }
}
