//! What metrics were, and conditions, between the first form of an autoscaler's annotations and the one that is stored.
//! Where the first form has a value at all times, none becomes zero, and stays that.

use api_machinery::quantity::Quantity;
use api_types::autoscaling_v1 as first;
use api_types::autoscaling_v2::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscalerCondition, MetricStatus,
    MetricValueStatus, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};

use super::metrics::{first_reference, identifier, stored_reference};

/// A stored status of a metric in the first form.
pub(super) fn first_form(metric: &MetricStatus) -> first::MetricStatus {
    let metric = metric.clone();
    first::MetricStatus {
        type_: metric.type_,
        object: metric.object.map(|own| first::ObjectMetricStatus {
            target: first_reference(own.described_object),
            metric_name: own.metric.name,
            current_value: own.current.value.unwrap_or_default(),
            selector: own.metric.selector,
            average_value: own.current.average_value,
        }),
        pods: metric.pods.map(|own| first::PodsMetricStatus {
            metric_name: own.metric.name,
            current_average_value: own.current.average_value.unwrap_or_default(),
            selector: own.metric.selector,
        }),
        resource: metric.resource.map(|own| first::ResourceMetricStatus {
            name: own.name,
            current_average_utilization: own.current.average_utilization,
            current_average_value: own.current.average_value.unwrap_or_default(),
        }),
        container_resource: metric.container_resource.map(|own| first::ContainerResourceMetricStatus {
            name: own.name,
            current_average_utilization: own.current.average_utilization,
            current_average_value: own.current.average_value.unwrap_or_default(),
            container: own.container,
        }),
        external: metric.external.map(|own| first::ExternalMetricStatus {
            metric_name: own.metric.name,
            metric_selector: own.metric.selector,
            current_value: own.current.value.unwrap_or_default(),
            current_average_value: own.current.average_value,
        }),
    }
}

/// The status of a metric of the first form as it is stored.
pub(super) fn stored_form(metric: &first::MetricStatus) -> MetricStatus {
    let metric = metric.clone();
    MetricStatus {
        type_: metric.type_,
        object: metric.object.map(|own| ObjectMetricStatus {
            metric: identifier(own.metric_name, own.selector),
            current: value(Some(own.current_value), own.average_value),
            described_object: stored_reference(own.target),
        }),
        pods: metric.pods.map(|own| PodsMetricStatus {
            metric: identifier(own.metric_name, own.selector),
            current: value(None, Some(own.current_average_value)),
        }),
        resource: metric.resource.map(|own| ResourceMetricStatus {
            name: own.name,
            current: used(own.current_average_utilization, own.current_average_value),
        }),
        container_resource: metric.container_resource.map(|own| ContainerResourceMetricStatus {
            name: own.name,
            current: used(own.current_average_utilization, own.current_average_value),
            container: own.container,
        }),
        external: metric.external.map(|own| ExternalMetricStatus {
            metric: identifier(own.metric_name, own.metric_selector),
            current: value(Some(own.current_value), own.current_average_value),
        }),
    }
}

fn value(value: Option<Quantity>, average_value: Option<Quantity>) -> MetricValueStatus {
    MetricValueStatus { value, average_value, average_utilization: None }
}

fn used(average_utilization: Option<i32>, average: Quantity) -> MetricValueStatus {
    MetricValueStatus { average_utilization, ..value(None, Some(average)) }
}

pub(super) fn first_condition(own: &HorizontalPodAutoscalerCondition) -> first::HorizontalPodAutoscalerCondition {
    let own = own.clone();
    first::HorizontalPodAutoscalerCondition {
        type_: own.type_,
        status: own.status,
        last_transition_time: own.last_transition_time,
        reason: own.reason,
        message: own.message,
    }
}

pub(super) fn stored_condition(own: &first::HorizontalPodAutoscalerCondition) -> HorizontalPodAutoscalerCondition {
    let own = own.clone();
    HorizontalPodAutoscalerCondition {
        type_: own.type_,
        status: own.status,
        last_transition_time: own.last_transition_time,
        reason: own.reason,
        message: own.message,
    }
}
