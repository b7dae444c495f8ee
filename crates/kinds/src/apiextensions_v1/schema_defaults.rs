//! Whether the defaults of a schema are values of it.

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::value::Value;
use schema::Structural;
use schema::structural::{is_pruned, validate};
use schema_rules::{RUNTIME_BUDGET, RuleTree, Subject};
use serde_json::json;

use super::embedded;

/// The deepest schema that is searched.
const MAX_DEPTH: usize = 200;

/// Checks all defaults of the schema of a version. Unknown members are let pass where the definition had some before.
pub(super) fn check(at: &Path, schema: &Structural, unpruned_pass: bool, errors: &mut ErrorList) {
    let mut budget = RUNTIME_BUDGET;
    walk(at, schema, Place::of(schema), 0, &mut |at, node, place, default| {
        let at = at.child("default");
        if !unpruned_pass && !place.inside_metadata && !is_pruned(default, node) {
            errors.push(at.invalid(shown(default), "must not have unknown fields"));
        }
        let of_objects = check_objects(&at, node, place, default);
        if !of_objects.is_empty() {
            errors.extend(of_objects);
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

/// What is wrong with the objects that a default is, holds, or is a part of the metadata of.
fn check_objects(at: &Path, node: &Structural, place: Place<'_>, default: &Value) -> ErrorList {
    let mut found = ErrorList::new();
    if place.inside_metadata {
        let object = place.step.surround(default.clone());
        match embedded::malformed_whole(&Path::nil(), &object, place.root) {
            Some(error) => found.push(error),
            None => embedded::check_whole(&Path::nil(), &object, place.root, &mut found),
        }
        if found.is_empty() {
            return found;
        }
        let mut errors = ErrorList::new();
        errors.push(at.invalid(shown(default), format!("must result in valid metadata: {found}")));
        return errors;
    }
    match embedded::malformed(at, default, node) {
        Some(error) => found.push(error),
        None => embedded::check(at, default, node, &mut found),
    }
    found
}

fn shown(default: &Value) -> BadValue {
    BadValue::json(default.to_string())
}

/// Where a node stands in the innermost object that it is a part of.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The schema of the object.
    root: &'p Structural,
    step: Step<'p>,
    /// The type and the metadata of the object are the same for all objects.
    inside_metadata: bool,
}

/// The way to a node, from the node up.
#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Member(&'p Step<'p>, &'p str),
    Item(&'p Step<'p>),
}

impl<'p> Place<'p> {
    fn of(root: &'p Structural) -> Self {
        Self { root, step: Step::Root, inside_metadata: false }
    }
}

impl Step<'_> {
    /// An object that has nothing but the value there. Whatever the value says, the type of the object is one that could be.
    fn surround(&self, value: Value) -> Value {
        match self {
            Self::Member(parent, name) => parent.surround(json!({ *name: value })),
            Self::Item(parent) => parent.surround(json!([value])),
            Self::Root => {
                let mut object = value;
                if let Value::Object(members) = &mut object {
                    members.insert("apiVersion".to_owned(), json!("validation/v1"));
                    members.insert("kind".to_owned(), json!("Validation"));
                }
                object
            }
        }
    }
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
    walk(&Path::nil(), schema, Place::of(schema), 0, &mut |_, node, place, default| {
        found |= !place.inside_metadata && !is_pruned(default, node);
    });
    found
}

/// Calls `visit` for each default. Those of entries of maps are nobody's business upstream.
fn walk(
    at: &Path,
    schema: &Structural,
    place: Place<'_>,
    depth: usize,
    visit: &mut dyn FnMut(&Path, &Structural, Place<'_>, &Value),
) {
    if depth > MAX_DEPTH {
        return;
    }
    let place = if schema.embedded_resource { Place::of(schema) } else { place };
    if let Some(default) = &schema.default {
        visit(at, schema, place, default);
    }
    for (name, below) in &schema.properties {
        let is_shared = schema.is_object_root() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        let inside_metadata = place.inside_metadata || is_shared;
        let inner = Place { root: place.root, step: Step::Member(&place.step, name), inside_metadata };
        walk(&at.child("properties").key(name), below, inner, depth + 1, visit);
    }
    if let Some(below) = &schema.items {
        let inner = Place { step: Step::Item(&place.step), ..place };
        walk(&at.child("items"), below, inner, depth + 1, visit);
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
    use super::*;

    fn embedded(default: Value, properties: Value) -> Value {
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            "default": default, "properties": properties})
    }

    /// A default of one field of the metadata, by which `x` has to be an array, a map or a text.
    fn metadata(field: &str, default: Value) -> Value {
        let schema = match &default {
            Value::Array(_) => json!({"type": "array", "items": {"type": "string"}, "default": default}),
            _ => json!({"type": "string", "default": default}),
        };
        json!({"metadata": {"type": "object", "properties": {field: schema}}})
    }

    fn assert_told(name: &str, schema: &Value, expected: &str) {
        let mut errors = ErrorList::new();
        let schema = Structural::root(&json!({"type": "object", "properties": {"x": schema}}));
        check(&Path::new("s"), &schema, false, &mut errors);
        let found = errors.to_string();
        let fits = if expected.is_empty() { errors.is_empty() } else { found.contains(expected) };
        assert!(fits, "{name}: {found}");
    }

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
            assert_told(name, &schema, expected);
        }
    }

    #[test]
    fn defaults_of_objects_are_objects_and_those_of_metadata_are_metadata() {
        for (name, schema, expected) in [
            (
                "an object within that is none",
                embedded(json!({"apiVersion": "v1"}), json!({})),
                "s.properties[x].default.kind: Required value",
            ),
            (
                "an object within with more metadata than there is",
                embedded(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "more": 1}}), json!({})),
                "",
            ),
            (
                "an object within with metadata of another type",
                embedded(json!({"apiVersion": "v1", "kind": 5, "metadata": {}}), json!({})),
                "s.properties[x].default.kind: Invalid value: 5: must be a string",
            ),
            ("metadata", embedded(Value::Null, metadata("finalizers", json!(["a.b/c"]))), ""),
            (
                "metadata that is not valid",
                embedded(Value::Null, metadata("finalizers", json!(["a b"]))),
                "s.properties[x].properties[metadata].properties[finalizers].default: Invalid value: [\"a b\"]: must result \
                 in valid metadata: metadata.finalizers: Invalid value: \"a b\": name part must consist of",
            ),
            (
                "metadata of another type",
                embedded(Value::Null, metadata("labels", json!("a"))),
                "s.properties[x].properties[metadata].properties[labels].default: Invalid value: \"a\": must result in valid \
                 metadata: metadata: Invalid value: {\"labels\":\"a\"}: json: cannot unmarshal string",
            ),
            (
                "whatever the type is said to be",
                embedded(Value::Null, json!({"kind": {"type": "string", "default": "no kind"}})),
                "",
            ),
        ] {
            assert_told(name, &schema, expected);
        }
    }
}
