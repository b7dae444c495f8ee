//! Metrics between their first form, which annotations hold, and the one that is stored. What kind of target a metric has
//! is told in the first form by which fields are there.

use api_machinery::meta::LabelSelector;
use api_machinery::quantity::Quantity;
use api_types::autoscaling_v1 as first;
use api_types::autoscaling_v2::constants::metric_target_type::{AVERAGE_VALUE, UTILIZATION, VALUE};
use api_types::autoscaling_v2::{
    ContainerResourceMetricSource, CrossVersionObjectReference, ExternalMetricSource, MetricIdentifier, MetricSpec,
    MetricTarget, ObjectMetricSource, PodsMetricSource, ResourceMetricSource,
};

/// A stored metric in the first form.
pub(super) fn first_form(metric: &MetricSpec) -> first::MetricSpec {
    let metric = metric.clone();
    first::MetricSpec {
        type_: metric.type_,
        object: metric.object.map(|own| first::ObjectMetricSource {
            target: first_reference(own.described_object),
            metric_name: own.metric.name,
            target_value: own.target.value.unwrap_or_default(),
            selector: own.metric.selector,
            average_value: own.target.average_value,
        }),
        pods: metric.pods.map(|own| first::PodsMetricSource {
            metric_name: own.metric.name,
            target_average_value: own.target.average_value.unwrap_or_default(),
            selector: own.metric.selector,
        }),
        resource: metric.resource.map(|own| first::ResourceMetricSource {
            name: own.name,
            target_average_utilization: own.target.average_utilization,
            target_average_value: own.target.average_value,
        }),
        container_resource: metric.container_resource.map(|own| first::ContainerResourceMetricSource {
            name: own.name,
            target_average_utilization: own.target.average_utilization,
            target_average_value: own.target.average_value,
            container: own.container,
        }),
        external: metric.external.map(|own| first::ExternalMetricSource {
            metric_name: own.metric.name,
            metric_selector: own.metric.selector,
            target_value: own.target.value,
            target_average_value: own.target.average_value,
        }),
    }
}

/// A metric of the first form as it is stored.
pub(super) fn stored_form(metric: &first::MetricSpec) -> MetricSpec {
    let metric = metric.clone();
    MetricSpec {
        type_: metric.type_,
        object: metric.object.map(|own| ObjectMetricSource {
            described_object: stored_reference(own.target),
            target: of_object(own.target_value, own.average_value),
            metric: identifier(own.metric_name, own.selector),
        }),
        pods: metric.pods.map(|own| PodsMetricSource {
            metric: identifier(own.metric_name, own.selector),
            target: target(AVERAGE_VALUE, None, Some(own.target_average_value)),
        }),
        resource: metric.resource.map(|own| ResourceMetricSource {
            name: own.name,
            target: of_resource(own.target_average_utilization, own.target_average_value),
        }),
        container_resource: metric.container_resource.map(|own| ContainerResourceMetricSource {
            name: own.name,
            target: of_resource(own.target_average_utilization, own.target_average_value),
            container: own.container,
        }),
        external: metric.external.map(|own| ExternalMetricSource {
            metric: identifier(own.metric_name, own.metric_selector),
            target: {
                let type_ = if own.target_value.is_some() { VALUE } else { AVERAGE_VALUE };
                target(type_, own.target_value, own.target_average_value)
            },
        }),
    }
}

fn target(type_: &str, value: Option<Quantity>, average_value: Option<Quantity>) -> MetricTarget {
    MetricTarget { type_: type_.to_owned(), value, average_value, average_utilization: None }
}

/// The first form always has a value; beside an average a zero stands for none.
fn of_object(value: Quantity, average: Option<Quantity>) -> MetricTarget {
    match average {
        None => target(VALUE, Some(value), None),
        Some(average) => target(AVERAGE_VALUE, Some(value).filter(|value| value.sign() != 0), Some(average)),
    }
}

fn of_resource(utilization: Option<i32>, average: Option<Quantity>) -> MetricTarget {
    let type_ = if utilization.is_some() { UTILIZATION } else { AVERAGE_VALUE };
    MetricTarget { average_utilization: utilization, ..target(type_, None, average) }
}

pub(super) fn identifier(name: String, selector: Option<LabelSelector>) -> MetricIdentifier {
    MetricIdentifier { name, selector }
}

pub(super) fn first_reference(own: CrossVersionObjectReference) -> first::CrossVersionObjectReference {
    first::CrossVersionObjectReference { kind: own.kind, name: own.name, api_version: own.api_version }
}

pub(super) fn stored_reference(own: first::CrossVersionObjectReference) -> CrossVersionObjectReference {
    CrossVersionObjectReference { kind: own.kind, name: own.name, api_version: own.api_version }
}
