//! From the caller's data to values.

use api_machinery::intstr::IntOrString;
use api_machinery::quantity::Quantity;
use api_machinery::reflect::{self, Field, View};
use api_machinery::value::Value as Json;

use super::{List, Map, Text, Value};

pub(super) fn json(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::Int(value),
            // Upstream's decoder makes a double of what is too large.
            _ => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Json(items)),
        Json::Object(map) => Value::Map(Map::Json(map)),
    }
}

pub(super) fn field(field: &dyn Field) -> Value<'_> {
    viewed(field, field.view())
}

/// The value of a field that was looked at.
pub(super) fn viewed<'a>(field: &'a dyn Field, view: View<'a>) -> Value<'a> {
    match view {
        View::Bool(value) => Value::Bool(value),
        View::Int32(value) => Value::Int(value.into()),
        View::Int64(value) => Value::Int(value),
        View::Float(value) => Value::Double(value),
        View::Str(value) => Value::String(Text::Borrowed(value)),
        View::Bytes(value) => Value::text(api_machinery::json::base64_text(value)),
        View::Struct(value) => Value::Map(Map::Struct(value)),
        View::List(_) => Value::List(List::Field(field)),
        View::Map(_) => Value::Map(Map::Field(field)),
        View::Optional(None) => Value::Null,
        View::Optional(Some(inner)) => self::field(inner),
        View::Leaf(value) => leaf(value),
        View::Dynamic(value) => json(value),
    }
}

/// Numbers are numbers; what else JSON has as a text is that text.
fn leaf(leaf: &dyn api_machinery::leaf::Leaf) -> Value<'_> {
    if let Some(quantity) = leaf.downcast_ref::<Quantity>() {
        return Value::text(quantity.to_string());
    }
    match leaf.downcast_ref::<IntOrString>() {
        Some(IntOrString::Int(value)) => Value::Int((*value).into()),
        Some(IntOrString::Str(text)) => Value::String(Text::Borrowed(text)),
        None => owned(&leaf.to_value()),
    }
}

/// A copy of a free-form value that nobody else holds.
fn owned(json: &Json) -> Value<'static> {
    match json {
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(owned).collect()),
        Json::Object(map) => {
            let pairs = map.iter().map(|(key, value)| (Value::text(key.as_str()), owned(value)));
            Value::map(pairs).unwrap_or(Value::Null)
        }
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Value::Double(number.as_f64().unwrap_or_default()), Value::Int)
        }
        Json::Null => Value::Null,
    }
}

pub(super) fn list_of(field: &dyn Field) -> Option<&dyn reflect::List> {
    if let View::List(list) = field.view() { Some(list) } else { None }
}

pub(super) fn map_of(field: &dyn Field) -> Option<&dyn reflect::Map> {
    if let View::Map(map) = field.view() { Some(map) } else { None }
}
