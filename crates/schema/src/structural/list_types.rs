//! Items of sets and keyed lists must differ.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::json;
use serde_json::{Map, Value};

use super::{MAX_ERRORS, Structural};
use crate::apply::path::Element;

/// Errors for repeated items of sets and keyed lists, at `path` and below.
pub fn check_list_types(path: &Path, value: &Value, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    visit(path, value, schema, &mut errors);
    errors
}

fn visit(path: &Path, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, member) in map {
                if let Some(of) = schema.properties.get(name) {
                    visit(&path.child(name.clone()), member, of, errors);
                } else if let Some(of) = &schema.additional_properties {
                    visit(&path.key(name), member, of, errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type.as_str() {
                "set" => check_set(path, items, errors),
                "map" => check_map(path, items, &schema.list_map_keys, errors),
                _ => {}
            }
            if let Some(of) = schema.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    visit(&path.index(index), item, of, errors);
                }
            }
        }
        _ => {}
    }
}

fn printed(value: &Value) -> BadValue {
    BadValue::json(json::encode_value(value))
}

/// A value that occurs often is reported at its second place only.
fn check_set(path: &Path, items: &[Value], errors: &mut ErrorList) {
    let mut seen = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if errors.len() >= MAX_ERRORS {
            return;
        }
        if occurs_again(&mut seen, item.clone()) {
            errors.push(path.index(index).duplicate(printed(item)));
        }
    }
}

/// Counts a value, and tells whether this is its second time.
fn occurs_again(seen: &mut BTreeMap<Element, usize>, value: Value) -> bool {
    let count = seen.entry(Element::Value(value)).or_default();
    *count += 1;
    *count == 2
}

fn check_map(path: &Path, items: &[Value], keys: &[String], errors: &mut ErrorList) {
    let mut seen = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if errors.len() >= MAX_ERRORS {
            return;
        }
        let Value::Object(map) = item else {
            errors.push(path.index(index).invalid(printed(item), "must be an object for an array of list-type map"));
            continue;
        };
        let members = keys.iter().filter_map(|key| Some((key.clone(), map.get(key)?.clone())));
        let key = Value::Object(members.collect::<Map<_, _>>());
        if occurs_again(&mut seen, key.clone()) {
            errors.push(path.index(index).duplicate(printed(&key)));
        }
    }
}
