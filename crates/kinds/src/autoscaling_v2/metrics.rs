//! What an autoscaler goes by.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::gvk::GroupVersion;
use api_machinery::names;
use api_types::autoscaling_v2::constants::{metric_source_type, metric_target_type};
use api_types::autoscaling_v2::{HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec, MetricTarget};

use super::horizontal_pod_autoscaler::{Group, validate_reference};
use crate::pod_spec::validation::container_resource_name;

/// Checks the metrics of an autoscaler that may replace another.
pub(super) fn validate(
    path: &Path,
    spec: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    errors: &mut ErrorList,
) {
    let objects = if old.is_some_and(has_bad_object) { Group::Unchecked } else { Group::Optional };
    for (index, metric) in spec.metrics.iter().enumerate() {
        validate_metric(&path.index(index), metric, objects, errors);
    }
    let from_outside = |metric: &MetricSpec| matches!(metric.type_.as_str(), "Object" | "External");
    if spec.min_replicas == Some(0) && !spec.metrics.iter().any(from_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(path.forbidden(detail));
    }
}

/// Whether a stored object names a version that cannot be read, so that the rule is loosened for it.
fn has_bad_object(spec: &HorizontalPodAutoscalerSpec) -> bool {
    let mut objects = spec.metrics.iter().filter_map(|metric| metric.object.as_ref());
    objects.any(|object| GroupVersion::parse(&object.described_object.api_version).is_err())
}

fn validate_metric(path: &Path, metric: &MetricSpec, objects: Group, errors: &mut ErrorList) {
    let (at, type_) = (path.child("type"), metric.type_.as_str());
    if type_.is_empty() {
        errors.push(at.required("must specify a metric source type"));
    }
    let unknown = !metric_source_type::ALL.contains(&type_);
    if unknown {
        errors.push(at.not_supported(BadValue::named(type_), metric_source_type::ALL));
    }
    // In the order in which upstream looks for the one that counts.
    let blocks = [
        ("object", "Object", metric.object.is_some()),
        ("external", "External", metric.external.is_some()),
        ("pods", "Pods", metric.pods.is_some()),
        ("resource", "Resource", metric.resource.is_some()),
        ("containerResource", "ContainerResource", metric.container_resource.is_some()),
    ];
    let first = blocks.iter().find(|(.., present)| *present).map(|(field, ..)| *field);
    validate_block(path, metric, first, objects, errors);
    match blocks.iter().find(|(_, own, _)| *own == type_) {
        None => errors.push(at.not_supported(BadValue::named(type_), metric_source_type::ALL)),
        Some((field, _, false)) => {
            errors.push(path.child(*field).required("must populate information for the given metric source"));
        }
        Some(_) => {}
    }
    if blocks.iter().filter(|(.., present)| *present).count() > 1 {
        for (field, ..) in blocks.iter().filter(|(_, own, present)| *present && *own != type_) {
            errors.push(path.child(*field).forbidden("must populate the given metric source only"));
        }
    }
}

/// Only the first block that is there is looked at.
fn validate_block(
    path: &Path,
    metric: &MetricSpec,
    first: Option<&'static str>,
    objects: Group,
    errors: &mut ErrorList,
) {
    let Some(field) = first else { return };
    let path = path.child(field);
    if let Some(object) = &metric.object {
        validate_reference(&path.child("describedObject"), &object.described_object, objects, errors);
        validate_identifier(&path.child("metric"), &object.metric, errors);
        validate_target(&path.child("target"), &object.target, errors);
        if object.target.value.is_none() && object.target.average_value.is_none() {
            let at = path.child("target").child("averageValue");
            errors.push(at.required("must set either a target value or averageValue"));
        }
    } else if let Some(external) = &metric.external {
        validate_identifier(&path.child("metric"), &external.metric, errors);
        validate_target(&path.child("target"), &external.target, errors);
        let at = path.child("target");
        match (&external.target.value, &external.target.average_value) {
            (None, None) => {
                let detail = "must set either a target value for metric or a per-pod target";
                errors.push(at.child("averageValue").required(detail));
            }
            (Some(_), Some(_)) => {
                let detail = "may not set both a target value for metric and a per-pod target";
                errors.push(at.child("value").forbidden(detail));
            }
            _ => {}
        }
    } else if let Some(pods) = &metric.pods {
        validate_identifier(&path.child("metric"), &pods.metric, errors);
        validate_target(&path.child("target"), &pods.target, errors);
        if pods.target.average_value.is_none() {
            let at = path.child("target").child("averageValue");
            errors.push(at.required("must specify a positive target averageValue"));
        }
    } else if let Some(resource) = &metric.resource {
        resource_name(&path, &resource.name, errors);
        validate_resource_target(&path.child("target"), &resource.target, errors);
    } else if let Some(resource) = &metric.container_resource {
        if resource_name(&path, &resource.name, errors) {
            container_resource_name(&path.child("name"), &resource.name, errors);
        }
        let at = path.child("container");
        if resource.container.is_empty() {
            errors.push(at.required("must specify a container"));
        } else {
            errors.push_invalid(&at, &resource.container, names::dns1123_label(&resource.container));
        }
        validate_resource_target(&path.child("target"), &resource.target, errors);
    }
}

fn resource_name(path: &Path, name: &str, errors: &mut ErrorList) -> bool {
    if name.is_empty() {
        errors.push(path.child("name").required("must specify a resource name"));
    }
    !name.is_empty()
}

fn validate_identifier(path: &Path, metric: &MetricIdentifier, errors: &mut ErrorList) {
    let at = path.child("name");
    if metric.name.is_empty() {
        errors.push(at.required("must specify a metric name"));
    } else {
        errors.push_invalid(&at, &metric.name, names::path_segment_name(&metric.name));
    }
}

fn validate_target(path: &Path, target: &MetricTarget, errors: &mut ErrorList) {
    let at = path.child("type");
    if target.type_.is_empty() {
        errors.push(at.required("must specify a metric target type"));
    }
    if !metric_target_type::ALL.contains(&target.type_.as_str()) {
        errors.push(at.invalid(BadValue::named(&target.type_), "must be either Utilization, Value, or AverageValue"));
    }
    for (field, value) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(value) = value.as_ref().filter(|value| value.sign() <= 0) {
            errors.push(path.child(field).invalid(value.to_string(), "must be positive"));
        }
    }
    if let Some(percent) = target.average_utilization.filter(|percent| *percent < 1) {
        errors.push(path.child("averageUtilization").invalid(percent, "must be greater than 0"));
    }
}

fn validate_resource_target(path: &Path, target: &MetricTarget, errors: &mut ErrorList) {
    validate_target(path, target, errors);
    match (&target.average_utilization, &target.average_value) {
        (None, None) => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(path.child("averageUtilization").required(detail));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(path.child("averageValue").forbidden(detail));
        }
        _ => {}
    }
}
