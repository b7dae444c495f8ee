//! Well-known names and the values of string types.

/// Values of `MetricSourceType`.
pub mod metric_source_type {
    pub const OBJECT: &str = "Object";
    pub const PODS: &str = "Pods";
    pub const RESOURCE: &str = "Resource";
    pub const CONTAINER_RESOURCE: &str = "ContainerResource";
    pub const EXTERNAL: &str = "External";
}

/// Values of `HorizontalPodAutoscalerConditionType`.
pub mod horizontal_pod_autoscaler_condition_type {
    pub const SCALING_ACTIVE: &str = "ScalingActive";
    pub const ABLE_TO_SCALE: &str = "AbleToScale";
    pub const SCALING_LIMITED: &str = "ScalingLimited";
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
}
