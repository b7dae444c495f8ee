//! Whether values are as their schema says, in the words of upstream's validator.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::json;
use serde_json::{Map, Value};

use super::{Structural, formats, is_type_meta, junctors};
use crate::apply::path::{Element, same_value};

/// All that is wrong with a value; `path` is where it stands.
pub fn validate(path: &Path, value: &Value, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    visit(path, value, None, schema, &mut errors);
    errors
}

/// The same for an update: what is as it was before is not held against the request.
pub fn validate_update(path: &Path, value: &Value, old: &Value, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    visit(path, value, Some(old), schema, &mut errors);
    errors
}

/// The text of a path in messages; the root prints empty.
pub(super) fn place(path: &Path) -> String {
    let text = path.to_string();
    if text == "<nil>" { String::new() } else { text }
}

fn printed(value: &Value) -> BadValue {
    match value {
        Value::String(text) => text.into(),
        other => BadValue::json(json::encode_value(other)),
    }
}

pub(super) fn visit(path: &Path, value: &Value, old: Option<&Value>, schema: &Structural, errors: &mut ErrorList) {
    if old == Some(value) || (value.is_null() && schema.nullable) {
        return;
    }
    if let Some(expected) = wrong_type(value, schema) {
        let actual = type_name(value);
        let detail = format!("{} in body must be of type {expected}: \"{actual}\"", place(path));
        errors.push(path.type_invalid(actual, detail));
        return;
    }
    check_enum(path, value, schema, errors);
    match value {
        Value::String(text) => check_string(path, text, schema, errors),
        Value::Number(number) => check_number(path, number, schema, errors),
        Value::Array(items) => check_list(path, items, old, schema, errors),
        Value::Object(map) => check_object(path, map, old, schema, errors),
        _ => {}
    }
    junctors::check(path, value, schema, errors);
}

/// The type that was expected, when the value has another.
fn wrong_type(value: &Value, schema: &Structural) -> Option<&'static str> {
    let integral = |value: &Value| matches!(value, Value::Number(number) if !number.is_f64());
    if schema.int_or_string {
        return (!integral(value) && !value.is_string()).then_some("integer,string");
    }
    match schema.kind.as_str() {
        "object" => (!value.is_object()).then_some("object"),
        "array" => (!value.is_array()).then_some("array"),
        "string" => (!value.is_string()).then_some("string"),
        "boolean" => (!value.is_boolean()).then_some("boolean"),
        "number" => (!value.is_number()).then_some("number"),
        "integer" => (!integral(value)).then_some("integer"),
        _ => None,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_enum(path: &Path, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    let allowed = &schema.rules.allowed;
    if allowed.is_empty() || allowed.iter().any(|one| same_value(one, value)) {
        return;
    }
    let names: Vec<String> =
        allowed.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), ToOwned::to_owned)).collect();
    errors.push(path.not_supported_in_order(printed(value), &names));
}

fn check_string(path: &Path, text: &str, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    let length = text.chars().count() as u64;
    let mut refuse = |detail: String| errors.push(path.invalid(text, format!("{} in body {detail}", place(path))));
    if let Some(minimum) = rules.min_length.filter(|minimum| length < *minimum) {
        refuse(format!("should be at least {minimum} chars long"));
    }
    if let Some((pattern, regex)) = &rules.pattern
        && !regex.is_match(text)
    {
        refuse(format!("should match '{pattern}'"));
    }
    if !schema.int_or_string && !formats::matches(&rules.format, text) {
        refuse(format!("must be of type {}: {}", rules.format, api_machinery::quote::go_quote(text)));
    }
    if let Some(maximum) = rules.max_length.filter(|maximum| length > *maximum) {
        errors.push(path.too_long(usize::try_from(maximum).unwrap_or(usize::MAX)));
    }
}

fn check_number(path: &Path, number: &serde_json::Number, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    let Some(value) = number.as_f64() else { return };
    let shown = || BadValue::json(number.to_string());
    let mut refuse = |detail: String| errors.push(path.invalid(shown(), format!("{} in body {detail}", place(path))));
    if rules.multiple_of.is_some_and(|step| (value / step).fract() != 0.0) {
        refuse(format!("should be a multiple of {}", rules.multiple_of.unwrap_or_default()));
    }
    match rules.maximum {
        Some((bound, true)) if value >= bound => refuse(format!("should be less than {bound}")),
        Some((bound, false)) if value > bound => refuse(format!("should be less than or equal to {bound}")),
        _ => {}
    }
    match rules.minimum {
        Some((bound, true)) if value <= bound => refuse(format!("should be greater than {bound}")),
        Some((bound, false)) if value < bound => refuse(format!("should be greater than or equal to {bound}")),
        _ => {}
    }
    let outside = match rules.format.as_str() {
        "int32" => number.as_i64().is_none_or(|value| i32::try_from(value).is_err()),
        "int64" => number.as_i64().is_none(),
        _ => false,
    };
    if outside && schema.kind == "integer" {
        refuse(format!("must be of type {}: \"{number}\"", rules.format));
    }
}

fn too_many(count: usize, limit: Option<u64>) -> Option<usize> {
    limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| count > *limit)
}

fn check_list(path: &Path, items: &[Value], old: Option<&Value>, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    if let Some(limit) = too_many(items.len(), rules.max_items) {
        errors.push(path.too_many(items.len(), limit));
    }
    if let Some(minimum) = rules.min_items.filter(|minimum| (items.len() as u64) < *minimum) {
        let shown = BadValue::json(json::encode_value(&Value::Array(items.to_vec())));
        errors.push(path.invalid(shown, format!("{} in body should have at least {minimum} items", place(path))));
    }
    let Some(of) = schema.items.as_deref() else { return };
    let old_items = old_items(old, schema);
    for (index, item) in items.iter().enumerate() {
        let before = old_items.get(&keys_of(item, schema)).copied();
        visit(&path.index(index), item, before, of, errors);
    }
}

/// What the items of a list were before, by their keys: only keyed lists can tell.
fn old_items<'v>(old: Option<&'v Value>, schema: &Structural) -> BTreeMap<Element, &'v Value> {
    let items = old.and_then(Value::as_array).filter(|_| schema.list_type == "map");
    items.into_iter().flatten().map(|item| (keys_of(item, schema), item)).collect()
}

fn keys_of(item: &Value, schema: &Structural) -> Element {
    let members = schema.list_map_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Element::Key(members.collect())
}

fn check_object(
    path: &Path,
    map: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Structural,
    errors: &mut ErrorList,
) {
    let rules = &schema.rules;
    if let Some(limit) = too_many(map.len(), rules.max_properties) {
        errors.push(path.too_many(map.len(), limit));
    }
    if let Some(minimum) = rules.min_properties.filter(|minimum| (map.len() as u64) < *minimum) {
        let shown = BadValue::json(json::encode_value(&Value::Object(map.clone())));
        errors.push(path.invalid(shown, format!("{} in body should have at least {minimum} properties", place(path))));
    }
    for name in rules.required.iter().filter(|name| !map.contains_key(*name)) {
        errors.push(path.child(name.clone()).required(""));
    }
    for (name, member) in map {
        if schema.is_object_root() && is_type_meta(name) && !has_metadata_rules(schema, name) {
            continue;
        }
        let below = path.child(name.clone());
        match schema.member(name) {
            Some(of) => visit(&below, member, old.and_then(|old| old.get(name)), of, errors),
            None if rules.closed => {
                errors
                    .push(below.invalid(printed(member), format!("{} in body is a forbidden property", place(&below))));
            }
            None => {}
        }
    }
}

/// A schema may restrict the names of whole objects, and nothing else of their metadata.
fn has_metadata_rules(schema: &Structural, name: &str) -> bool {
    name == "metadata" && schema.properties.get(name).is_some_and(|metadata| !metadata.properties.is_empty())
}
