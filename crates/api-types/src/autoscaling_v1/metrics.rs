//! Metrics as annotations of autoscalers hold them: they are no fields of this version.

use api_machinery::api;
use api_machinery::meta::LabelSelector;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

use super::CrossVersionObjectReference;
use super::constants::metric_source_type;

/// A metric that decides: the member that the type names.
#[api]
pub struct MetricSpec {
    /// Which of the members is set.
    #[field(1, name = "type", always, required, go = "v1.MetricSourceType", values = metric_source_type::ALL)]
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

/// A metric of an object that is asked for.
#[api]
pub struct ObjectMetricSource {
    /// The object.
    #[field(1, always, required)]
    pub target: CrossVersionObjectReference,
    /// The metric's name.
    #[field(2, always, required)]
    pub metric_name: String,
    /// The value that it should have.
    #[field(3, always, required)]
    pub target_value: Quantity,
    /// Selects among series of the name.
    #[field(4)]
    pub selector: Option<LabelSelector>,
    /// The value that it should have divided by the pods.
    #[field(5)]
    pub average_value: Option<Quantity>,
}

/// A metric of pods that is asked for; its average counts.
#[api]
pub struct PodsMetricSource {
    /// The metric's name.
    #[field(1, always, required)]
    pub metric_name: String,
    /// The average that it should have.
    #[field(2, always, required)]
    pub target_average_value: Quantity,
    /// Selects among series of the name.
    #[field(3)]
    pub selector: Option<LabelSelector>,
}

/// A resource of pods that is asked for.
#[api]
pub struct ResourceMetricSource {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// Percent of what the pods ask for.
    #[field(2)]
    pub target_average_utilization: Option<i32>,
    /// The average that it should have.
    #[field(3)]
    pub target_average_value: Option<Quantity>,
}

/// A resource of a container that is asked for.
#[api]
pub struct ContainerResourceMetricSource {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// Percent of what the containers ask for.
    #[field(2)]
    pub target_average_utilization: Option<i32>,
    /// The average that it should have.
    #[field(3)]
    pub target_average_value: Option<Quantity>,
    /// The container.
    #[field(5, always, required)]
    pub container: String,
}

/// A metric from outside that is asked for.
#[api]
pub struct ExternalMetricSource {
    /// The metric's name.
    #[field(1, always, required)]
    pub metric_name: String,
    /// Selects among series of the name.
    #[field(2)]
    pub metric_selector: Option<LabelSelector>,
    /// The value that it should have.
    #[field(3)]
    pub target_value: Option<Quantity>,
    /// The value that it should have divided by the pods.
    #[field(4)]
    pub target_average_value: Option<Quantity>,
}

/// What a metric was: the member that the type names.
#[api]
pub struct MetricStatus {
    /// Which of the members is set.
    #[field(1, name = "type", always, required, go = "v1.MetricSourceType", values = metric_source_type::ALL)]
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

/// What a metric of an object was.
#[api]
pub struct ObjectMetricStatus {
    /// The object.
    #[field(1, always, required)]
    pub target: CrossVersionObjectReference,
    /// The metric's name.
    #[field(2, always, required)]
    pub metric_name: String,
    /// Its value.
    #[field(3, always, required)]
    pub current_value: Quantity,
    /// Selects among series of the name.
    #[field(4)]
    pub selector: Option<LabelSelector>,
    /// Its value divided by the pods.
    #[field(5)]
    pub average_value: Option<Quantity>,
}

/// What a metric of pods was.
#[api]
pub struct PodsMetricStatus {
    /// The metric's name.
    #[field(1, always, required)]
    pub metric_name: String,
    /// Its average.
    #[field(2, always, required)]
    pub current_average_value: Quantity,
    /// Selects among series of the name.
    #[field(3)]
    pub selector: Option<LabelSelector>,
}

/// What a resource of pods was.
#[api]
pub struct ResourceMetricStatus {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// Percent of what the pods ask for.
    #[field(2)]
    pub current_average_utilization: Option<i32>,
    /// Its average.
    #[field(3, always, required)]
    pub current_average_value: Quantity,
}

/// What a resource of a container was.
#[api]
pub struct ContainerResourceMetricStatus {
    /// The resource, such as cpu.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// Percent of what the containers ask for.
    #[field(2)]
    pub current_average_utilization: Option<i32>,
    /// Its average.
    #[field(3, always, required)]
    pub current_average_value: Quantity,
    /// The container.
    #[field(4, always, required)]
    pub container: String,
}

/// What a metric from outside was.
#[api]
pub struct ExternalMetricStatus {
    /// The metric's name.
    #[field(1, always, required)]
    pub metric_name: String,
    /// Selects among series of the name.
    #[field(2)]
    pub metric_selector: Option<LabelSelector>,
    /// Its value.
    #[field(3, always, required)]
    pub current_value: Quantity,
    /// Its value divided by the pods.
    #[field(4)]
    pub current_average_value: Option<Quantity>,
}

/// One aspect of an autoscaler.
#[api]
pub struct HorizontalPodAutoscalerCondition {
    /// ScalingActive, AbleToScale or ScalingLimited.
    #[field(1, name = "type", always, required, go = "v1.HorizontalPodAutoscalerConditionType")]
    pub type_: String,
    /// True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Since when.
    #[field(3)]
    pub last_transition_time: Time,
    /// Why, in a word.
    #[field(4)]
    pub reason: String,
    /// Why, in words.
    #[field(5)]
    pub message: String,
}
