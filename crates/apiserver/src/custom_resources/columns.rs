//! The cells of a custom kind's table.

use api_machinery::human_duration::age_text;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::apiextensions_v1::CustomResourceColumnDefinition;
use kinds::info::Column;
use schema::JsonPath;

/// A column behind that of the name, and how its cell is found.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    name: String,
    type_: String,
    format: String,
    priority: i32,
    path: Option<JsonPath>,
}

impl Cell {
    fn column(&self) -> Column<'_> {
        Column { name: &self.name, type_: &self.type_, format: &self.format, priority: self.priority }
    }
}

/// What a definition declares; the age where it declares nothing.
pub(super) fn declared(columns: &[CustomResourceColumnDefinition]) -> Vec<Cell> {
    if columns.is_empty() {
        let path = JsonPath::parse(".metadata.creationTimestamp");
        let (name, type_) = ("Age".to_owned(), "date".to_owned());
        return vec![Cell { name, type_, format: String::new(), priority: 0, path }];
    }
    let cell = |own: &CustomResourceColumnDefinition| Cell {
        name: own.name.clone(),
        type_: own.type_.clone(),
        format: own.format.clone(),
        priority: own.priority,
        path: JsonPath::parse(&own.json_path),
    };
    columns.iter().map(cell).collect()
}

/// The columns of the table.
pub(super) fn headings(cells: &[Cell]) -> Vec<Column<'_>> {
    std::iter::once(Column::NAME).chain(cells.iter().map(Cell::column)).collect()
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

    #[test]
    fn headings_begin_with_the_name_and_fall_back_to_the_age() {
        let own = CustomResourceColumnDefinition {
            name: "Colour".into(),
            type_: "string".into(),
            priority: 1,
            json_path: ".spec.colour".into(),
            ..CustomResourceColumnDefinition::default()
        };
        for (columns, expected) in [(vec![own], ("Colour", "string", 1)), (Vec::new(), ("Age", "date", 0))] {
            let cells = declared(&columns);
            let shown: Vec<_> = headings(&cells).iter().map(|own| (own.name, own.type_, own.priority)).collect();
            assert_eq!(shown, [("Name", "string", 0), expected]);
        }
    }
}
