//! The cells of a custom kind's table.

use api_machinery::human_duration::age_text;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::apiextensions_v1::CustomResourceColumnDefinition;
use schema::JsonPath;

use super::facts::DeclaredColumn;

/// A column: how its cell is found, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    path: Option<JsonPath>,
    type_: String,
}

/// Each column behind that of the name, and its cell.
pub(super) fn declared(columns: &[CustomResourceColumnDefinition]) -> Vec<(DeclaredColumn, Cell)> {
    if columns.is_empty() {
        let age = DeclaredColumn::new("Age", "date", "");
        return vec![(age, Cell { path: JsonPath::parse(".metadata.creationTimestamp"), type_: "date".to_owned() })];
    }
    let column = |own: &CustomResourceColumnDefinition| {
        let column =
            DeclaredColumn { priority: own.priority, ..DeclaredColumn::new(&own.name, &own.type_, &own.format) };
        (column, Cell { path: JsonPath::parse(&own.json_path), type_: own.type_.clone() })
    };
    columns.iter().map(column).collect()
}

/// The row of an object.
pub(super) fn row(cells: &[Cell], meta: &ObjectMeta, object: &Value, now: Time) -> Vec<Value> {
    let mut row = vec![Value::from(meta.name.clone())];
    row.extend(cells.iter().map(|cell| {
        let found = cell.path.as_ref().and_then(|path| path.first(object));
        found.map_or(Value::Null, |value| shown(&cell.type_, value, now))
    }));
    row
}

fn shown(type_: &str, value: &Value, now: Time) -> Value {
    match (type_, value) {
        ("integer", Value::Number(number)) => {
            #[expect(clippy::cast_possible_truncation, reason = "upstream truncates as well")]
            let whole = number.as_i64().or_else(|| number.as_f64().map(|float| float as i64));
            whole.map_or(Value::Null, Value::from)
        }
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Value::Bool(value)) => (*value).into(),
        ("string", Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.clone().into(),
        ("string", other) => other.to_string().into(),
        ("date", Value::String(text)) => match Time::parse(text) {
            Ok(time) => age_text(now.seconds_since(time)).into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_follow_their_types() {
        let now = Time::parse("2026-01-01T00:10:00Z").unwrap();
        let cases = [
            ("integer", json!(3), json!(3)),
            ("integer", json!("3"), Value::Null),
            ("string", json!(true), json!("true")),
            ("boolean", json!(true), json!(true)),
            ("date", json!("2026-01-01T00:00:00Z"), json!("10m")),
            ("date", json!("x"), json!("<invalid>")),
        ];
        for (type_, value, expected) in cases {
            assert_eq!(shown(type_, &value, now), expected, "{type_} {value}");
        }
    }
}
