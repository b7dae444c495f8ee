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
