//! `allOf`, `anyOf`, `oneOf` and `not` may restrict values, but not shape objects.

use api_machinery::field_path::{ErrorList, Path};
use serde_json::{Map, Value};

use super::{MAX_DEPTH, flag};

const EMPTY: [&str; 5] = ["type", "title", "description", "x-kubernetes-list-map-keys", "x-kubernetes-validations"];
const UNDEFINED: [&str; 4] = ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"];
const FALSE: [&str; 4] = [
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];

/// Checks the nodes below the junctors of a node of the skeleton.
pub(super) fn check_junctors(path: &Path, node: &Map<String, Value>, errors: &mut ErrorList) {
    let int_or_string = flag(node, "x-kubernetes-int-or-string");
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = node.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if int_or_string && is_int_or_string_pattern(name, list) {
            continue;
        }
        for (index, nested) in list.iter().enumerate() {
            check_nested(&path.child(name).index(index), nested, 0, errors);
        }
    }
    if let Some(nested) = node.get("not") {
        check_nested(&path.child("not"), nested, 0, errors);
    }
}

/// The one exception: `anyOf: [{type: integer}, {type: string}]`, alone or as the first of `allOf`.
fn is_int_or_string_pattern(name: &str, list: &[Value]) -> bool {
    let pair = [serde_json::json!({"type": "integer"}), serde_json::json!({"type": "string"})];
    match name {
        "anyOf" => *list == pair,
        "allOf" => {
            list.first().and_then(|first| first.get("anyOf")).and_then(Value::as_array).is_some_and(|any| **any == pair)
        }
        _ => false,
    }
}

fn check_nested(path: &Path, schema: &Value, depth: usize, errors: &mut ErrorList) {
    let Value::Object(node) = schema else { return };
    if depth > MAX_DEPTH {
        errors.push(path.forbidden("nested too deeply"));
        return;
    }
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    for name in EMPTY.into_iter().filter(|name| node.get(*name).is_some_and(|value| !is_empty(value))) {
        errors.push(path.child(name).forbidden("must be empty to be structural"));
    }
    for name in UNDEFINED.into_iter().filter(|name| node.get(*name).is_some_and(|value| !value.is_null())) {
        errors.push(path.child(name).forbidden("must be undefined to be structural"));
    }
    for name in FALSE.into_iter().filter(|name| flag(node, name)) {
        errors.push(path.child(name).forbidden("must be false to be structural"));
    }
    for (name, nested) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let below = path.child("properties").key(name);
        if name == "metadata" && depth == 0 {
            errors.push(below.forbidden("must not be specified in a nested context"));
        }
        check_nested(&below, nested, depth + 1, errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in node.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            check_nested(&path.child(name).index(index), nested, depth + 1, errors);
        }
    }
    for name in ["not", "items"] {
        if let Some(nested) = node.get(name) {
            check_nested(&path.child(name), nested, depth + 1, errors);
        }
    }
}
