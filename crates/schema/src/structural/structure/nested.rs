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
            check_declared(Some((path, node)), &path.child(name).index(index), nested, 0, errors);
        }
    }
    if let Some(nested) = node.get("not") {
        check_nested(&path.child("not"), nested, 0, errors);
        check_declared(Some((path, node)), &path.child("not"), nested, 0, errors);
    }
}

/// What a junctor restricts has to be declared in the skeleton.
fn check_declared(
    skeleton: Option<(&Path, &Map<String, Value>)>,
    path: &Path,
    schema: &Value,
    depth: usize,
    errors: &mut ErrorList,
) {
    let (Some((at, node)), Value::Object(nested)) = (skeleton, schema) else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let mut below = |declared: Option<&Value>, at: &Path, path: &Path, nested: &Value| match declared {
        None => errors.push(at.required(format!("because it is defined in {path}"))),
        Some(declared) => {
            let skeleton = declared.as_object().map(|node| (at, node));
            check_declared(skeleton, path, nested, depth + 1, errors);
        }
    };
    let properties = node.get("properties").and_then(Value::as_object);
    for (name, restricted) in nested.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let declared = properties.and_then(|map| map.get(name));
        below(declared, &at.child("properties").key(name), &path.child("properties").key(name), restricted);
    }
    if let Some(restricted) = nested.get("items").filter(|items| items.is_object()) {
        below(node.get("items"), &at.child("items"), &path.child("items"), restricted);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, other) in nested.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            check_declared(skeleton, &path.child(name).index(index), other, depth + 1, errors);
        }
    }
    if let Some(other) = nested.get("not") {
        check_declared(skeleton, &path.child("not"), other, depth + 1, errors);
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
