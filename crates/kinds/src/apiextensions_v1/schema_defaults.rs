//! Whether the defaults of a schema are values of it.

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::value::Value;
use schema::Structural;
use schema::structural::{prune, validate};
use schema_rules::{RUNTIME_BUDGET, RuleTree, Subject};

/// The deepest schema that is searched.
const MAX_DEPTH: usize = 200;

/// Checks all defaults of the schema of a version. Unknown members are let pass where the definition had some before.
pub(super) fn check(at: &Path, schema: &Structural, unpruned_pass: bool, errors: &mut ErrorList) {
    let mut budget = RUNTIME_BUDGET;
    walk(at, schema, 0, &mut |at, node, default| {
        let at = at.child("default");
        if !unpruned_pass && !is_pruned(default, node) {
            errors.push(at.invalid(BadValue::json(default.to_string()), "must not have unknown fields"));
            return;
        }
        // A default is a document of its own to its validator, so that texts name places from its root.
        let problems = validate(&Path::nil(), default, node);
        let is_valid = problems.is_empty();
        errors.extend(problems.into_iter().map(|error| below(&at, error)));
        if is_valid {
            check_rules(&at, node, default, &mut budget, errors);
        }
    });
}

/// A default has to hold as it is, whether it was there before or not.
fn check_rules(at: &Path, node: &Structural, default: &Value, budget: &mut u64, errors: &mut ErrorList) {
    let rules = RuleTree::compile(node);
    if rules.is_empty() {
        return;
    }
    for old in [Some(default), None] {
        let found = rules.validate(at, Subject { value: default, old, ratchets: false }, budget).errors;
        let holds = found.is_empty();
        errors.extend(found);
        if !holds {
            return;
        }
    }
}

/// Whether some default has members that its schema does not know.
pub(super) fn has_unpruned(schema: &Structural) -> bool {
    let mut found = false;
    walk(&Path::nil(), schema, 0, &mut |_, node, default| found |= !is_pruned(default, node));
    found
}

fn is_pruned(default: &Value, node: &Structural) -> bool {
    prune(&mut default.clone(), node).is_empty()
}

fn walk(at: &Path, schema: &Structural, depth: usize, visit: &mut dyn FnMut(&Path, &Structural, &Value)) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(default) = &schema.default {
        visit(at, schema, default);
    }
    for (name, below) in &schema.properties {
        walk(&at.child("properties").key(name), below, depth + 1, visit);
    }
    if let Some(below) = &schema.items {
        walk(&at.child("items"), below, depth + 1, visit);
    }
    if let Some(below) = &schema.additional_properties {
        walk(&at.child("additionalProperties"), below, depth + 1, visit);
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
            (
                "against a rule",
                json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1", "message": "low"}]}),
                "s.properties[x].default: Invalid value: 1: low",
            ),
        ] {
            let mut errors = ErrorList::new();
            let schema = Structural::root(&json!({"type": "object", "properties": {"x": schema}}));
            check(&Path::new("s"), &schema, false, &mut errors);
            let found = errors.to_string();
            let fits = if expected.is_empty() { errors.is_empty() } else { found.contains(expected) };
            assert!(fits, "{name}: {found}");
        }
    }
}
