//! What upstream's converter says of a free-form value that does not fit a type: the texts of strategic merge patches
//! whose outcome is no object of the kind.

use api_machinery::reflect::Shape;
use serde_json::{Number, Value};

use super::{Source, TypeNode};

impl TypeNode<'_> {
    /// What is wrong with the first member that does not fit; `None` where all fit, as far as this can tell: leaves with
    /// a form of their own (quantities, times) have texts of their own.
    pub fn misfit(&self, value: &Value) -> Option<String> {
        let Source::Table(shape) = self.source else { return None };
        match (shape.required(), value) {
            (_, Value::Null)
            | (Shape::Leaf(_) | Shape::Dynamic | Shape::Optional(_), _)
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Str | Shape::Bytes, Value::String(_))
            | (Shape::Float, Value::Number(_)) => None,
            (Shape::Int32 | Shape::Int64, Value::Number(number)) if is_whole(number) => None,
            (Shape::Bool, _) => Some("unrecognized type: bool".to_owned()),
            (Shape::Str, other) => Some(no_scalar(other, "string")),
            (Shape::Int32, other) => Some(no_scalar(other, "int32")),
            (Shape::Int64, other) => Some(no_scalar(other, "int64")),
            (Shape::Float, other) => Some(no_scalar(other, "float64")),
            (Shape::List(_), Value::Array(items)) => items.iter().find_map(|item| self.item().misfit(item)),
            (Shape::List(_) | Shape::Bytes, other) => Some(format!("cannot restore slice from {}", go_kind(other))),
            (Shape::Struct(_) | Shape::Map(_), Value::Object(members)) => {
                members.iter().find_map(|(name, value)| self.member(name)?.misfit(value))
            }
            (Shape::Struct(_), other) => Some(format!("cannot restore struct from: {}", go_kind(other))),
            (Shape::Map(_), other) => Some(format!("cannot restore map from {}", go_kind(other))),
        }
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// Go converts between some scalars, though upstream does not allow it; the others it does not know at all.
fn no_scalar(value: &Value, wanted: &str) -> String {
    match value {
        Value::Number(_) => format!("cannot convert {} to {wanted}", go_kind(value)),
        _ => format!("unrecognized type: {wanted}"),
    }
}

/// The kind of a value in Go.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::test_types::node;

    #[test]
    fn values_that_do_not_fit_are_named() {
        let cases = [
            (json!({"items": [{"name": "a", "value": "1"}], "replicas": 1, "raw": 5, "labels": {"a": "b"}}), None),
            (json!({"labels": {"a": null}, "unknown": 1, "replicas": 2.0}), None),
            (json!({"labels": {"a": 1}}), Some("cannot convert int64 to string")),
            (json!({"labels": {"a": 1.5}}), Some("cannot convert float64 to string")),
            (json!({"labels": {"a": true}}), Some("unrecognized type: string")),
            (json!({"labels": ["a"]}), Some("cannot restore map from slice")),
            (json!({"items": {"name": "a"}}), Some("cannot restore slice from map")),
            (json!({"items": ["a"]}), Some("cannot restore struct from: string")),
            (json!({"items": [{"name": "a"}, {"value": {}}]}), Some("unrecognized type: string")),
            (json!({"replicas": "1"}), Some("unrecognized type: int32")),
            (json!({"replicas": 1.5}), Some("cannot convert float64 to int32")),
        ];
        for (value, expected) in cases {
            assert_eq!(node().misfit(&value).as_deref(), expected, "{value}");
        }
    }
}
