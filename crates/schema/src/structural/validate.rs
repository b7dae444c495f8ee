//! Whether values are as their schema says, in the words of upstream's validator.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::json;
use serde_json::{Map, Value};

use super::{Structural, formats, is_type_meta, junctors};
use crate::apply::path::{Element, same_value};

/// So many errors are enough for one answer: each of a million items could be wrong.
pub const MAX_ERRORS: usize = 1000;
/// The first number that 64 bits do not hold; the same below zero is the last one that they do.
const INT64_BOUND: f64 = 9_223_372_036_854_775_808.0;
/// The largest number up to which every integer has a double of its own.
const EXACT: f64 = 9_007_199_254_740_991.0;

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

/// Each rule is looked at even where the type is wrong already, in upstream's order.
pub(super) fn visit(path: &Path, value: &Value, old: Option<&Value>, schema: &Structural, errors: &mut ErrorList) {
    if errors.len() >= MAX_ERRORS || old == Some(value) || (value.is_null() && schema.nullable) {
        return;
    }
    if let Some(expected) = wrong_type(value, schema) {
        let actual = type_name(value);
        let detail = format!("{} in body must be of type {expected}: \"{actual}\"", place(path));
        errors.push(path.type_invalid(actual, detail));
    }
    if value.is_null() {
        return check_enum(path, value, schema, errors);
    }
    junctors::check(path, value, schema, errors);
    match value {
        Value::String(text) => check_string(path, text, schema, errors),
        Value::Number(number) => check_number(path, number, schema, errors),
        Value::Array(items) => check_list(path, items, old, schema, errors),
        _ => {}
    }
    check_enum(path, value, schema, errors);
    if let Value::Object(map) = value {
        check_object(path, map, old, schema, errors);
    }
}

/// The type that was expected, when the value has another.
fn wrong_type<'s>(value: &Value, schema: &'s Structural) -> Option<&'s str> {
    // A number without a fraction is an integer, however it is written.
    let integral = |value: &Value| match value {
        Value::Number(number) if number.is_i64() => true,
        _ => value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= EXACT),
    };
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
        "" => None,
        // Of a type that is none is nothing.
        other => Some(other),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
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

/// Of length and pattern only the first fault is told.
fn check_string(path: &Path, text: &str, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    let length = text.chars().count() as u64;
    let refused = |detail: String| path.invalid(text, format!("{} in body {detail}", place(path)));
    if let Some(maximum) = rules.max_length.filter(|maximum| length > *maximum) {
        errors.push(path.too_long(usize::try_from(maximum).unwrap_or(usize::MAX)));
    } else if let Some(minimum) = rules.min_length.filter(|minimum| length < *minimum) {
        errors.push(refused(format!("should be at least {minimum} chars long")));
    } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        errors.push(refused(format!("should match '{}'", pattern.source())));
    }
    if !schema.int_or_string && !formats::matches(&rules.format, text) {
        let shown = api_machinery::quote::go_quote(text);
        let detail = format!("{} in body must be of type {}: {shown}", place(path), rules.format);
        errors.push(path.type_invalid(text, detail));
    }
}

/// Whether a number is one of the type and format of a schema.
fn is_in_range(number: f64, schema: &Structural) -> bool {
    match (schema.kind.as_str(), schema.rules.format.as_str()) {
        ("integer", "int32") => number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number),
        ("integer", "" | "int64") => number.fract() == 0.0 && (-INT64_BOUND..INT64_BOUND).contains(&number),
        ("number", "float") => number.abs() <= f64::from(f32::MAX),
        _ => true,
    }
}

/// Tells of a value, or of a bound that the schema sets, that the schema's own type cannot hold.
fn check_range(path: &Path, what: &str, number: f64, schema: &Structural, errors: &mut ErrorList) {
    if !is_in_range(number, schema) && (what != "Checked" || number.fract() == 0.0) {
        let format = match schema.rules.format.as_str() {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let detail = format!("{what} value must be of type {} {format} in {}", schema.kind, place(path));
        errors.push(Path::nil().invalid("", detail));
    }
}

fn check_number(path: &Path, number: &serde_json::Number, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    let Some(value) = number.as_f64() else { return };
    let refused =
        |detail: String| path.invalid(BadValue::json(number.to_string()), format!("{} in body {detail}", place(path)));
    // An integer of 64 bits may round to the first number beyond them.
    if !(number.is_i64() && matches!(schema.rules.format.as_str(), "" | "int64")) {
        check_range(path, "Checked", value, schema, errors);
    }
    let shown =
        |bound: f64| if number.is_i64() && is_in_range(bound, schema) { bound.to_string() } else { go_float(bound) };
    if let Some(step) = rules.multiple_of {
        check_range(path, "MultipleOf", step, schema, errors);
        if (value / step).fract() != 0.0 {
            errors.push(refused(format!("should be a multiple of {}", shown(step))));
        }
    }
    if let Some((bound, excluded)) = rules.minimum {
        check_range(path, "Minimum boundary", bound, schema, errors);
        match excluded {
            true if value <= bound => errors.push(refused(format!("should be greater than {}", shown(bound)))),
            false if value < bound => {
                errors.push(refused(format!("should be greater than or equal to {}", shown(bound))));
            }
            _ => {}
        }
    }
    if let Some((bound, excluded)) = rules.maximum {
        check_range(path, "Maximum boundary", bound, schema, errors);
        match excluded {
            true if value >= bound => errors.push(refused(format!("should be less than {}", shown(bound)))),
            false if value > bound => {
                errors.push(refused(format!("should be less than or equal to {}", shown(bound))));
            }
            _ => {}
        }
    }
}

/// A double as Go prints it: in scientific form below 1e-4 and from 1e6 on.
fn go_float(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let Ok(exponent) = exponent.parse::<i32>() else { return text };
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn too_many(count: usize, limit: Option<u64>) -> Option<usize> {
    limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| count > *limit)
}

/// What has too few items or members is told with the number that there are.
fn too_few(path: &Path, count: usize, minimum: Option<u64>, what: &str) -> Option<FieldError> {
    let minimum = minimum.filter(|minimum| (count as u64) < *minimum)?;
    let detail = format!("{} in body should have at least {minimum} {what}", place(path));
    Some(path.invalid(BadValue::json(count.to_string()), detail))
}

fn check_list(path: &Path, items: &[Value], old: Option<&Value>, schema: &Structural, errors: &mut ErrorList) {
    if let Some(of) = schema.items.as_deref() {
        let old_items = old_items(old, schema);
        for (index, item) in items.iter().enumerate() {
            let before = old_items.get(&keys_of(item, schema)).copied();
            visit(&path.index(index), item, before, of, errors);
        }
    }
    errors.extend(too_few(path, items.len(), schema.rules.min_items, "items"));
    if let Some(limit) = too_many(items.len(), schema.rules.max_items) {
        errors.push(path.too_many(items.len(), limit));
    }
}

/// What the items of a list were before, by their keys: only keyed lists can tell.
fn old_items<'v>(old: Option<&'v Value>, schema: &Structural) -> BTreeMap<Element, &'v Value> {
    let items = old.and_then(Value::as_array).filter(|_| schema.list_type == "map");
    items.into_iter().flatten().map(|item| (keys_of(item, schema), item)).collect()
}

fn keys_of(item: &Value, schema: &Structural) -> Element {
    Element::key(schema.list_map_keys.iter().filter_map(|key| Some((key.as_str(), item.get(key)?.clone()))))
}

fn check_object(
    path: &Path,
    map: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Structural,
    errors: &mut ErrorList,
) {
    let rules = &schema.rules;
    if let Some(error) = too_few(path, map.len(), rules.min_properties, "properties") {
        errors.push(error);
        return;
    }
    if let Some(limit) = too_many(map.len(), rules.max_properties) {
        errors.push(path.too_many(map.len(), limit));
        return;
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
