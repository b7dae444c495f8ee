//! autoscaling/v1: one file per kind, with what it is made of.

pub mod constants;
mod horizontal_pod_autoscaler;
mod metrics;
mod scale;

pub use horizontal_pod_autoscaler::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
};
pub use metrics::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus,
    HorizontalPodAutoscalerCondition, MetricSpec, MetricStatus, ObjectMetricSource, ObjectMetricStatus,
    PodsMetricSource, PodsMetricStatus, ResourceMetricSource, ResourceMetricStatus,
};
pub use scale::{Scale, ScaleSpec, ScaleStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.autoscaling.v1";
/// The API group.
pub const GROUP: &str = "autoscaling";
/// The version.
pub const VERSION: &str = "v1";
