//! Filling in declared defaults, and dropping nulls that mean nothing.

use serde_json::Value;

use super::{Structural, is_type_meta};

/// Fills absent fields, and nulls that are not allowed, with their defaults. Parents are never created.
pub fn fill_defaults(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(map) => {
            for (name, of) in &schema.properties {
                if schema.is_object_root() && is_type_meta(name) {
                    continue;
                }
                let Some(default) = &of.default else { continue };
                let missing = map.get(name).is_none_or(|present| present.is_null() && !of.nullable);
                if missing {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in map.iter_mut() {
                if schema.is_object_root() && is_type_meta(name) {
                    continue;
                }
                if let Some(of) = schema.member(name) {
                    fill_null(member, of);
                    fill_defaults(member, of);
                }
            }
        }
        Value::Array(items) => {
            let Some(of) = schema.items.as_deref() else { return };
            for item in items {
                fill_null(item, of);
                fill_defaults(item, of);
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, schema: &Structural) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

/// Removes members that are null, may not be, and have no default.
pub fn drop_nulls(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(map) => {
            map.retain(|name, member| {
                let Some(of) = schema.member(name) else { return true };
                !member.is_null() || of.nullable || of.default.is_some() || of.is_untyped()
            });
            for (name, member) in map.iter_mut() {
                if let Some(of) = schema.member(name) {
                    drop_nulls(member, of);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(item, of));
            }
        }
        _ => {}
    }
}
