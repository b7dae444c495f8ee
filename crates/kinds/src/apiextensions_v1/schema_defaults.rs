//! Whether the defaults of a schema are values of it.

use api_machinery::field_path::{BadValue, ErrorList, Path};
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
            errors.extend(validate(&at, default, schema));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_values_of_their_schema() {
        for (name, schema, expected) in [
            ("fits", json!({"type": "string", "default": "a"}), ""),
            ("another type", json!({"type": "integer", "default": "a"}), "must be of type integer"),
            ("out of bounds", json!({"type": "integer", "minimum": 5, "default": 1}), "greater than or equal to 5"),
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
