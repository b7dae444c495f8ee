//! The free-form JSON value, and the ways between it and typed objects.
//!
//! Patches, apply and YAML work on values; custom resources are made of them. The type is `serde_json`'s: its maps
//! are sorted by key, as upstream writes them.

mod differing;

pub use differing::differing;
pub use serde_json::{Map as ValueMap, Number, Value};

use crate::json::{DecodeError, Reader, Writer};
use crate::reflect::{self, Field, Reflect, View};

/// The name of a value's type in decode errors.
#[must_use]
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The typed value as a free-form one, with the fields that JSON output would have.
#[must_use]
pub fn to_value(field: &dyn Field) -> Value {
    match field.view() {
        View::Bool(value) => Value::Bool(value),
        View::Int32(value) => Value::from(value),
        View::Int64(value) => Value::from(value),
        View::Float(value) => Value::from(value),
        View::Str(value) => Value::from(value),
        View::Bytes(value) => Value::String(crate::json::base64_text(value)),
        View::Struct(value) => Value::Object(struct_to_map(value)),
        View::List(list) if list.is_empty() => Value::Null,
        View::List(list) => (0..list.len()).filter_map(|index| list.item(index)).map(to_value).collect(),
        View::Map(map) if map.is_empty() => Value::Null,
        View::Map(map) => {
            let mut out = ValueMap::new();
            map.each(&mut |key, value| {
                out.insert(key.to_owned(), to_value(value));
            });
            Value::Object(out)
        }
        View::Optional(value) => value.map_or(Value::Null, |value| match value.view() {
            // A pointer to an empty list or map is not the same as no pointer.
            View::List(list) if list.is_empty() => Value::Array(Vec::new()),
            View::Map(map) if map.is_empty() => Value::Object(ValueMap::new()),
            _ => to_value(value),
        }),
        View::Leaf(leaf) => leaf.to_value(),
        View::Dynamic(value) => value.clone(),
    }
}

/// The struct as a free-form map, with the fields that JSON output would have.
#[must_use]
pub fn struct_to_map(value: &dyn Reflect) -> ValueMap<String, Value> {
    let mut out = ValueMap::new();
    let fields = value.struct_type().fields;
    for index in reflect::written_fields(value) {
        let (row, field) = (&fields[index], value.field(index));
        match field.view() {
            View::Struct(inner) if row.inline => out.extend(struct_to_map(inner)),
            View::Map(map) if row.rest => map.each(&mut |key, value| {
                out.insert(key.to_owned(), to_value(value));
            }),
            _ => {
                out.insert(row.name.to_owned(), to_value(field));
            }
        }
    }
    out
}

/// Decodes a free-form value into a struct, which should be a default one.
///
/// # Errors
/// As decoding its JSON text would.
pub fn from_value(value: &Value, target: &mut dyn Reflect) -> Result<(), DecodeError> {
    // Values that become objects are rare (patches, YAML), so the one decoder does this too.
    let mut writer = Writer::default();
    writer.value(value);
    let text = writer.into_string();
    let mut reader = Reader::new(&text);
    reader.read_struct(target)?;
    reader.end()
}
