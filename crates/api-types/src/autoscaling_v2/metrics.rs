//! What autoscalers go by: metrics that are asked for, and what they were.

use api_machinery::api;
use api_machinery::meta::LabelSelector;
use api_machinery::quantity::Quantity;

use super::CrossVersionObjectReference;

/// A metric that decides: the member that the type names.
#[api]
pub struct MetricSpec {
    /// Which of the members is set.
    #[field(1, name = "type", always, required, go = "v2.MetricSourceType")]
    pub type_: String,
    /// A metric of an object.
    #[field(2)]
    pub object: Option<ObjectMetricSource>,
    /// A metric of each pod.
    #[field(3)]
    pub pods: Option<PodsMetricSource>,
    /// A resource of the pods, over all their containers.
    #[field(4)]
    pub resource: Option<ResourceMetricSource>,
    /// A resource of one container in each pod.
    #[field(7)]
    pub container_resource: Option<ContainerResourceMetricSource>,
    /// A metric of something outside the cluster.
    #[field(5)]
    pub external: Option<ExternalMetricSource>,
}

/// What a metric was: the member that the type names.
#[api]
pub struct MetricStatus {
    /// Which of the members is set.
    #[field(1, name = "type", always, required, go = "v2.MetricSourceType")]
    pub type_: String,
    /// A metric of an object.
    #[field(2)]
    pub object: Option<ObjectMetricStatus>,
    /// A metric of each pod.
    #[field(3)]
    pub pods: Option<PodsMetricStatus>,
    /// A resource of the pods, over all their containers.
    #[field(4)]
    pub resource: Option<ResourceMetricStatus>,
    /// A resource of one container in each pod.
    #[field(7)]
    pub container_resource: Option<ContainerResourceMetricStatus>,
    /// A metric of something outside the cluster.
    #[field(5)]
    pub external: Option<ExternalMetricStatus>,
}

/// A metric of an object that is asked for.
#[api]
pub struct ObjectMetricSource {
    /// The object.
    #[field(1, always, required)]
    pub described_object: CrossVersionObjectReference,
    /// What is wanted.
    #[field(2, always, required)]
    pub target: MetricTarget,
    /// The metric.
    #[field(3, always, required)]
    pub metric: MetricIdentifier,
}

/// A metric of pods that is asked for; its average counts.
#[api]
pub struct PodsMetricSource {
    /// The metric.
    #[field(1, always, required)]
    pub metric: MetricIdentifier,
    /// What is wanted.
    #[field(2, always, required)]
    pub target: MetricTarget,
}

/// A resource of pods that is asked for.
#[api]
pub struct ResourceMetricSource {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// What is wanted.
    #[field(2, always, required)]
    pub target: MetricTarget,
}

/// A resource of a container that is asked for.
#[api]
pub struct ContainerResourceMetricSource {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// What is wanted.
    #[field(2, always, required)]
    pub target: MetricTarget,
    /// The container.
    #[field(3, always, required)]
    pub container: String,
}

/// A metric from outside that is asked for.
#[api]
pub struct ExternalMetricSource {
    /// The metric.
    #[field(1, always, required)]
    pub metric: MetricIdentifier,
    /// What is wanted.
    #[field(2, always, required)]
    pub target: MetricTarget,
}

/// Names a metric.
#[api]
pub struct MetricIdentifier {
    /// Its name.
    #[field(1, always, required)]
    pub name: String,
    /// Selects among series of the name.
    #[field(2)]
    pub selector: Option<LabelSelector>,
}

/// The value that a metric should have.
#[api]
pub struct MetricTarget {
    /// Utilization, Value or AverageValue.
    #[field(1, name = "type", always, required, go = "v2.MetricTargetType")]
    pub type_: String,
    /// The value.
    #[field(2)]
    pub value: Option<Quantity>,
    /// The value divided by the pods.
    #[field(3)]
    pub average_value: Option<Quantity>,
    /// Percent of what the pods ask for.
    #[field(4)]
    pub average_utilization: Option<i32>,
}

/// What a metric of an object was.
#[api]
pub struct ObjectMetricStatus {
    /// The metric.
    #[field(1, always, required)]
    pub metric: MetricIdentifier,
    /// What it was.
    #[field(2, always, required)]
    pub current: MetricValueStatus,
    /// The object.
    #[field(3, always, required)]
    pub described_object: CrossVersionObjectReference,
}

/// What a metric of pods was.
#[api]
pub struct PodsMetricStatus {
    /// The metric.
    #[field(1, always, required)]
    pub metric: MetricIdentifier,
    /// What it was.
    #[field(2, always, required)]
    pub current: MetricValueStatus,
}

/// What a resource of pods was.
#[api]
pub struct ResourceMetricStatus {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// What it was.
    #[field(2, always, required)]
    pub current: MetricValueStatus,
}

/// What a resource of a container was.
#[api]
pub struct ContainerResourceMetricStatus {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// What it was.
    #[field(2, always, required)]
    pub current: MetricValueStatus,
    /// The container.
    #[field(3, always, required)]
    pub container: String,
}

/// What a metric from outside was.
#[api]
pub struct ExternalMetricStatus {
    /// The metric.
    #[field(1, always, required)]
    pub metric: MetricIdentifier,
    /// What it was.
    #[field(2, always, required)]
    pub current: MetricValueStatus,
}

/// A value that was seen.
#[api]
pub struct MetricValueStatus {
    /// The value.
    #[field(1)]
    pub value: Option<Quantity>,
    /// The value divided by the pods.
    #[field(2)]
    pub average_value: Option<Quantity>,
    /// Percent of what the pods ask for.
    #[field(3)]
    pub average_utilization: Option<i32>,
}
