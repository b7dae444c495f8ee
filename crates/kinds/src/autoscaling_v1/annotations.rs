//! What an autoscaler has beyond autoscaling/v1, in annotations of that version. A newer version never shows them.

use api_machinery::json;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::Reflect;
use api_machinery::value::{Value, ValueMap};
use api_types::autoscaling_v1::{HorizontalPodAutoscalerCondition, MetricSpec, MetricStatus};
use api_types::autoscaling_v2::{self, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior};

use super::{metrics, statuses};
use crate::internal_json;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All of them.
pub(super) const ALL: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    // Nobody writes or reads these any more.
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Takes the annotations off.
pub(crate) fn strip(meta: &mut ObjectMeta) {
    for name in ALL {
        meta.annotations.remove(name);
    }
}

/// Tells in annotations what the fields of the version cannot; `metrics` are those without a field.
pub(super) fn write(meta: &mut ObjectMeta, metrics: &[&autoscaling_v2::MetricSpec], stored: &HorizontalPodAutoscaler) {
    let mut annotate = |name: &str, text: String| meta.annotations.insert(name.to_owned(), text);
    if !metrics.is_empty() {
        annotate(METRICS, list(metrics.iter().map(|metric| metrics::first_form(metric))));
    }
    if !stored.status.current_metrics.is_empty() {
        annotate(CURRENT_METRICS, list(stored.status.current_metrics.iter().map(statuses::first_form)));
    }
    if let Some(behavior) = &stored.spec.behavior {
        annotate(BEHAVIOR, internal_json::compact(behavior));
    }
    if !stored.status.conditions.is_empty() {
        annotate(CONDITIONS, list(stored.status.conditions.iter().map(statuses::first_condition)));
    }
}

fn list<T: Reflect>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| json::encode(&item)).collect();
    format!("[{}]", items.join(","))
}

/// Puts into fields what annotations tell. What cannot be read counts for nothing, as upstream has it.
pub(super) fn read(meta: &ObjectMeta, stored: &mut HorizontalPodAutoscaler) {
    if let Some(metrics) = items::<MetricSpec>(meta, METRICS) {
        let own = std::mem::take(&mut stored.spec.metrics);
        stored.spec.metrics = metrics.iter().map(metrics::stored_form).chain(own).collect();
    }
    if let Some(behavior) = behavior(meta).filter(|behavior| *behavior != HorizontalPodAutoscalerBehavior::default()) {
        stored.spec.behavior = Some(behavior);
    }
    if let Some(metrics) = items::<MetricStatus>(meta, CURRENT_METRICS) {
        stored.status.current_metrics = metrics.iter().map(statuses::stored_form).collect();
    }
    if let Some(conditions) = items::<HorizontalPodAutoscalerCondition>(meta, CONDITIONS) {
        stored.status.conditions = conditions.iter().map(statuses::stored_condition).collect();
    }
}

fn items<T: Reflect + Default>(meta: &ObjectMeta, name: &str) -> Option<Vec<T>> {
    let Value::Array(items) = json::parse_value(meta.annotations.get(name)?).ok()? else { return None };
    items.iter().map(read_struct).collect()
}

fn behavior(meta: &ObjectMeta) -> Option<HorizontalPodAutoscalerBehavior> {
    let value = json::parse_value(meta.annotations.get(BEHAVIOR)?).ok()?;
    read_struct(&with_known_keys(value))
}

fn read_struct<T: Reflect + Default>(value: &Value) -> Option<T> {
    let mut item = T::default();
    json::decode(json::encode_value(value).as_bytes(), &mut item).ok()?;
    Some(item)
}

/// Every field of a behavior.
const KEYS: [&str; 9] = [
    "scaleUp",
    "scaleDown",
    "stabilizationWindowSeconds",
    "selectPolicy",
    "policies",
    "type",
    "value",
    "periodSeconds",
    "tolerance",
];

/// The annotation has the capitalised names of upstream's internal type; its reader looks at letters, not at their case.
fn with_known_keys(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(with_known_keys).collect()),
        Value::Object(map) => {
            let known = |key: String| {
                KEYS.iter().find(|own| own.eq_ignore_ascii_case(&key)).map_or(key, |own| (*own).to_owned())
            };
            let map: ValueMap<String, Value> =
                map.into_iter().map(|(key, value)| (known(key), with_known_keys(value))).collect();
            Value::Object(map)
        }
        other => other,
    }
}
