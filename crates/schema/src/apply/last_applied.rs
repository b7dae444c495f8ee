//! The annotation of client-side apply, for managers that come from it.

use api_machinery::json;
use api_machinery::names::ANNOTATIONS_MAX_BYTES;
use serde_json::{Map, Value};

use super::field_set::FieldSet;
use super::typed::{compare, fields_of};
use crate::type_node::TypeNode;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

fn annotation(object: &Value) -> Option<&str> {
    annotations(object)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// Fields whose live value is still the one that client-side apply wrote: taking those is no conflict.
pub(super) fn excused_fields(live: &Value, node: TypeNode<'_>, api_version: &str) -> FieldSet {
    let Some(last) = annotation(live).and_then(|text| json::parse_value(text).ok()) else {
        return FieldSet::default();
    };
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return FieldSet::default();
    }
    let changes = compare(&last, live, node);
    fields_of(&last, node).difference(&changes.modified).difference(&changes.removed)
}

/// Keeps the annotation of an object that has one in step with what was applied now.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(map) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        map.remove(ANNOTATION);
        if map.is_empty() {
            metadata.remove("annotations");
        }
    }
    let Some(map) = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) else { return };
    let Some(map) = map.as_object_mut() else { return };
    map.insert(ANNOTATION.into(), format!("{}\n", json::encode_value(&applied)).into());
    let size: usize = map.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_MAX_BYTES {
        map.remove(ANNOTATION);
    }
}
