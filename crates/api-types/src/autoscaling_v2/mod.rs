//! autoscaling/v2: one file per kind, with what it is made of.

pub mod constants;
mod horizontal_pod_autoscaler;
mod metrics;

pub use horizontal_pod_autoscaler::{
    CrossVersionObjectReference, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
};
pub use metrics::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus,
    MetricIdentifier, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource,
    ObjectMetricStatus, PodsMetricSource, PodsMetricStatus, ResourceMetricSource, ResourceMetricStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.autoscaling.v2";
/// The API group.
pub const GROUP: &str = "autoscaling";
/// The version.
pub const VERSION: &str = "v2";
