//! The rules for schemas themselves: what a CustomResourceDefinition may declare.

use api_machinery::field_path::{ErrorList, Path};
use serde_json::{Map, Value};

use super::pattern;

mod extensions;
mod nested;

/// Deepest schema that is accepted.
const MAX_DEPTH: usize = 100;
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Where a node stands in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// What holds for a node by what it is in.
#[derive(Clone, Copy)]
struct Inside {
    depth: usize,
    /// It is a part of the schema of the metadata of some object.
    metadata: bool,
    /// Why it may have no default, if it may not.
    no_defaults: Option<NoDefaults>,
}

/// Where there may be no defaults.
#[derive(Clone, Copy)]
enum NoDefaults {
    /// In the members that every object has.
    TopLevel(&'static str),
    /// In the values of maps of metadata: what to prune is not known without the value.
    Entries,
}

impl NoDefaults {
    fn detail(self) -> String {
        match self {
            Self::TopLevel(name) => format!("must not be set in top-level {name}"),
            Self::Entries => "must not be set inside additionalProperties applying to object metadata".to_owned(),
        }
    }
}

/// All that is wrong with a schema.
#[derive(Default)]
pub struct Problems {
    /// What keeps the schema from being structural, by text.
    pub structural: ErrorList,
    /// What breaks a rule by itself, in the order of the rules.
    pub errors: ErrorList,
    /// It has a keyword that no structural schema can have; nothing else is told of its structure.
    pub is_other_dialect: bool,
}

impl Problems {
    /// All errors, in upstream's order.
    #[must_use]
    pub fn all(self) -> ErrorList {
        self.structural.into_iter().chain(self.errors).collect()
    }
}

/// Looks at a schema; `path` is that of the schema itself.
#[must_use]
pub fn check(path: &Path, schema: &Value) -> Problems {
    let mut found = Problems::default();
    let inside = Inside { depth: 0, metadata: false, no_defaults: None };
    check_node(path, schema, Level::Root, inside, &mut found);
    let mut sorted: Vec<_> = std::mem::take(&mut found.structural).into_iter().collect();
    if !found.is_other_dialect {
        sorted.sort_by_key(ToString::to_string);
        found.structural = sorted.into_iter().collect();
    }
    found
}

fn text<'s>(schema: &'s Map<String, Value>, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn has_members(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name).and_then(Value::as_object).is_some_and(|map| !map.is_empty())
}

fn check_node(path: &Path, schema: &Value, place: Level, inside: Inside, found: &mut Problems) {
    let Value::Object(node) = schema else { return };
    if inside.depth > MAX_DEPTH {
        found.errors.push(path.forbidden("nested too deeply"));
        return;
    }
    if let Some(reason) = inside.no_defaults.filter(|_| node.get("default").is_some_and(|value| !value.is_null())) {
        found.errors.push(path.child("default").forbidden(reason.detail()));
    }
    if inside.metadata && flag(node, EMBEDDED) {
        found.errors.push(path.child(EMBEDDED).forbidden("must not be used inside of resource meta"));
    }
    check_keywords(path, node, place, found);
    extensions::check(path, node, &mut found.errors);
    check_type(path, node, place, &mut found.structural);
    check_embedded(path, node, place, &mut found.structural);
    nested::check_junctors(path, node, &mut found.structural);
    let deeper = Inside { depth: inside.depth + 1, ..inside };
    for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mut of_property = deeper;
        let own = ["apiVersion", "kind", "metadata"].into_iter().find(|own| name == own);
        if let Some(own) = own.filter(|_| place == Level::Root || flag(node, EMBEDDED)) {
            of_property.metadata = true;
            if place == Level::Root {
                of_property.no_defaults = Some(NoDefaults::TopLevel(own));
            }
        }
        check_node(&path.child("properties").key(name), property, Level::Field, of_property, found);
    }
    if let Some(items) = node.get("items") {
        check_node(&path.child("items"), items, Level::Item, deeper, found);
    }
    if let Some(entries) = node.get("additionalProperties") {
        let no_defaults = if inside.metadata { Some(NoDefaults::Entries) } else { inside.no_defaults };
        let of_entries = Inside { no_defaults, ..deeper };
        check_node(&path.child("additionalProperties"), entries, Level::Field, of_entries, found);
    }
}

/// Keywords that the dialect leaves out.
fn check_keywords(path: &Path, node: &Map<String, Value>, place: Level, found: &mut Problems) {
    let errors = &mut found.errors;
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    match text(node, "type") {
        "null" => {
            errors.push(path.child("type").forbidden("type cannot be set to null, use nullable as an alternative"))
        }
        "" => {}
        known if TYPES.contains(&known) => {}
        other => errors.push(path.child("type").not_supported(other, &TYPES)),
    }
    let is_set = |name: &str| match node.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if is_set(name) {
            errors.push(path.child(name).forbidden(format!("{name} is not supported")));
            found.is_other_dialect = true;
        }
    }
    // Nobody forbids this one; it is only that no structural schema can be made of it.
    found.is_other_dialect |= !text(node, "$schema").is_empty();
    if node.get("items").is_some_and(Value::is_array) {
        errors.push(path.child("items").forbidden("items must be a schema object and not an array"));
    }
    if flag(node, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(path.child("uniqueItems").forbidden(detail));
    }
    if place == Level::Root && node.get("additionalProperties").is_some_and(|entries| !entries.is_null()) {
        errors.push(path.child("additionalProperties").forbidden("must not be used at the root"));
    }
    let restricts = node.get("additionalProperties").is_some_and(|entries| *entries != Value::Bool(true));
    if restricts && has_members(node, "properties") {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(path.child("additionalProperties").forbidden(detail));
    }
    let pattern = text(node, "pattern");
    // Few have one.
    if !pattern.is_empty()
        && let Err(error) = pattern::check(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(path.child("pattern").invalid(pattern, detail));
    }
}

fn check_type(path: &Path, node: &Map<String, Value>, place: Level, errors: &mut ErrorList) {
    let kind = text(node, "type");
    let exempt = flag(node, "x-kubernetes-int-or-string") || flag(node, "x-kubernetes-preserve-unknown-fields");
    let at_type = path.child("type");
    match (place, kind) {
        (Level::Root, "") => errors.push(at_type.required("must not be empty at the root")),
        (Level::Root, "object") => {}
        (Level::Root, other) => errors.push(at_type.invalid(other, "must be object at the root")),
        (Level::Item, "") if !exempt => errors.push(at_type.required("must not be empty for specified array items")),
        (Level::Field, "") if !exempt => errors.push(at_type.required("must not be empty for specified object fields")),
        _ => {}
    }
    if kind == "array" && node.get("items").is_none_or(Value::is_null) {
        errors.push(path.child("items").required("must be specified"));
    }
}

/// Whole objects inside, and the members that every object has.
fn check_embedded(path: &Path, node: &Map<String, Value>, place: Level, errors: &mut ErrorList) {
    const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
    let embedded = flag(node, EMBEDDED);
    if flag(node, "x-kubernetes-int-or-string") {
        for name in [PRESERVE, EMBEDDED].into_iter().filter(|name| flag(node, name)) {
            errors.push(path.child(name).invalid(true, "must be false if x-kubernetes-int-or-string is true"));
        }
    }
    if embedded {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match text(node, "type") {
            "object" => {}
            "" => errors.push(path.child("type").required(detail)),
            other => errors.push(path.child("type").invalid(other, detail)),
        }
        if node.get("additionalProperties").is_some_and(|entries| !entries.is_null()) {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(path.child("additionalProperties").forbidden(detail));
        }
        if !has_members(node, "properties") && !flag(node, PRESERVE) {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            errors.push(path.child("properties").required(detail));
        }
    }
    if embedded || place == Level::Root {
        check_implied(path, node, place, errors);
    }
}

fn check_implied(path: &Path, node: &Map<String, Value>, place: Level, errors: &mut ErrorList) {
    let properties = node.get("properties").and_then(Value::as_object);
    let declared = |name: &str| properties.and_then(|map| map.get(name)).and_then(Value::as_object);
    let at = |name: &str| path.child("properties").key(name);
    for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(kind) = declared(name).map(|schema| text(schema, "type")) else { continue };
        if kind != wanted {
            errors.push(at(name).child("type").invalid(kind, format!("must be {wanted}")));
        }
    }
    let Some(metadata) = declared("metadata").filter(|_| place == Level::Root) else { return };
    let fields = metadata.get("properties").and_then(Value::as_object);
    let only_names = fields.into_iter().flatten().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let only_known = metadata.keys().all(|key| matches!(key.as_str(), "type" | "properties" | "description"));
    if !only_names || !only_known {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(at("metadata").forbidden(detail));
    }
}
