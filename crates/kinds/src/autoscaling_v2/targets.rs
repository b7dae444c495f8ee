//! What the table says of an autoscaler's metrics: where they are, and where they should be.

use api_machinery::quantity::Quantity;
use api_types::autoscaling_v2::{MetricSpec, MetricStatus, MetricTarget, MetricValueStatus};

/// How many metrics a row tells of.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// The first metrics with what they are now, each beside the status at its place.
pub(super) fn shown(metrics: &[MetricSpec], current: &[MetricStatus]) -> String {
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let one = |(index, metric)| of_metric(metric, current.get(index));
    let shown = metrics.iter().enumerate().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    match metrics.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn of_metric(metric: &MetricSpec, current: Option<&MetricStatus>) -> String {
    if let ("External", Some(external)) = (metric.type_.as_str(), &metric.external) {
        let current = current.and_then(|current| current.external.as_ref()).map(|status| &status.current);
        return whole_or_average(&external.target, current);
    }
    if let ("Object", Some(object)) = (metric.type_.as_str(), &metric.object) {
        let current = current.and_then(|current| current.object.as_ref()).map(|status| &status.current);
        return whole_or_average(&object.target, current);
    }
    if let ("Pods", Some(pods)) = (metric.type_.as_str(), &metric.pods) {
        let current = current.and_then(|current| current.pods.as_ref());
        let average = current.and_then(|status| status.current.average_value.as_ref());
        return format!("{}/{}", or_unknown(average), or_nil(pods.target.average_value.as_ref()));
    }
    if let ("Resource", Some(resource)) = (metric.type_.as_str(), &metric.resource) {
        let current = current.and_then(|current| current.resource.as_ref()).map(|status| &status.current);
        return of_resource(&resource.name, &resource.target, current);
    }
    if let ("ContainerResource", Some(resource)) = (metric.type_.as_str(), &metric.container_resource) {
        let current = current.and_then(|current| current.container_resource.as_ref()).map(|status| &status.current);
        return of_resource(&resource.name, &resource.target, current);
    }
    "<unknown type>".to_owned()
}

fn whole_or_average(target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    match &target.average_value {
        Some(target) => {
            let average = current.and_then(|current| current.average_value.as_ref());
            format!("{}/{target} (avg)", or_unknown(average))
        }
        None => {
            let value = current.and_then(|current| current.value.as_ref());
            format!("{}/{}", or_unknown(value), or_nil(target.value.as_ref()))
        }
    }
}

fn of_resource(name: &str, target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if let Some(target) = &target.average_value {
        let average = current.and_then(|current| current.average_value.as_ref());
        return format!("{name}: {}/{target}", or_unknown(average));
    }
    let percent = |value: Option<i32>, absent: &str| value.map_or_else(|| absent.to_owned(), |own| format!("{own}%"));
    let current = current.and_then(|current| current.average_utilization);
    format!("{name}: {}/{}", percent(current, UNKNOWN), percent(target.average_utilization, "<auto>"))
}

fn or_unknown(value: Option<&Quantity>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string)
}

fn or_nil(value: Option<&Quantity>) -> String {
    value.map_or_else(|| "<nil>".to_owned(), ToString::to_string)
}
