//! Whether the defaults of a schema are values of it.

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::value::Value;
use schema::Structural;
use schema::structural::{prune, validate};

/// The deepest schema that is searched.
const MAX_DEPTH: usize = 200;

/// Checks all defaults of the schema of a version.
pub(super) fn check(at: &Path, schema: &Value, errors: &mut ErrorList) {
    node(at, &Structural::root(schema), 0, errors);
}

fn node(at: &Path, schema: &Structural, depth: usize, errors: &mut ErrorList) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(default) = &schema.default {
        let at = at.child("default");
        let unknown = prune(&mut default.clone(), schema);
        if unknown.is_empty() {
            // A default is a document of its own to its validator, so that texts name places from its root.
            errors.extend(validate(&Path::nil(), default, schema).into_iter().map(|error| below(&at, error)));
        } else {
            errors.push(at.invalid(BadValue::json(default.to_string()), "must not have unknown fields"));
        }
    }
    for (name, below) in &schema.properties {
        node(&at.child("properties").key(name), below, depth + 1, errors);
    }
    if let Some(below) = &schema.items {
        node(&at.child("items"), below, depth + 1, errors);
    }
    if let Some(below) = &schema.additional_properties {
        node(&at.child("additionalProperties"), below, depth + 1, errors);
    }
}

/// An error of a default at the place of the default.
fn below(at: &Path, error: FieldError) -> FieldError {
    let field = match error.field.as_str() {
        "<nil>" => at.to_string(),
        _ => at.child(error.field).to_string(),
    };
    FieldError { field, ..error }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_values_of_their_schema() {
        for (name, schema, expected) in [
            ("fits", json!({"type": "string", "default": "a"}), ""),
            (
                "another type",
                json!({"type": "integer", "default": "a"}),
                "s.properties[x].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
            ),
            (
                "no type",
                json!({"type": "x", "default": 1}),
                "s.properties[x].default: Invalid value: \"integer\":  in body must be of type x: \"integer\"",
            ),
            (
                "out of bounds",
                json!({"type": "integer", "minimum": 5, "default": 1}),
                "s.properties[x].default: Invalid value: 1:  in body should be greater than or equal to 5",
            ),
            (
                "a bound beyond the type",
                json!({"type": "integer", "minimum": 9_223_372_036_854_775_808_u64, "default": 2}),
                "[s.properties[x].default: Invalid value: \"\": Minimum boundary value must be of type integer (default \
                 format) in , s.properties[x].default: Invalid value: 2:  in body should be greater than or equal to \
                 9.223372036854776e+18]",
            ),
            (
                "beyond the type",
                json!({"type": "integer", "default": 9_223_372_036_854_775_808_u64}),
                "[s.properties[x].default: Invalid value: \"number\":  in body must be of type integer: \"number\", \
                 s.properties[x].default: Invalid value: \"\": Checked value must be of type integer (default format) in ]",
            ),
            (
                "deep inside",
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": 1}}),
                "s.properties[x].default.a: Invalid value: \"integer\": a in body must be of type string: \"integer\"",
            ),
            (
                "undeclared",
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": "c"}}),
                "must not have unknown fields",
            ),
        ] {
            let mut errors = ErrorList::new();
            check(&Path::new("s"), &json!({"type": "object", "properties": {"x": schema}}), &mut errors);
            let found = errors.to_string();
            let fits = if expected.is_empty() { errors.is_empty() } else { found.contains(expected) };
            assert!(fits, "{name}: {found}");
        }
    }
}
