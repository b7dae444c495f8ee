//! The structural schema of a custom resource version: read from its `openAPIV3Schema`, and what follows from it for
//! objects: pruning, defaulting, validation, and the rules that list types add.
//!
//! Deliberately not here: what rules in the expression language ([`ValidationRule`]) mean, which needs an evaluator.

use std::collections::BTreeMap;

use serde_json::Value;

mod defaults;
mod field_path;
mod formats;
mod junctors;
mod list_types;
mod pattern;
mod prune;
mod rules;
pub mod structure;
mod validate;
mod validation_rule;

pub use defaults::{drop_nulls, fill_defaults};
pub use field_path::field_path;
pub use formats::is_known as is_known_format;
pub use list_types::check_list_types;
pub use pattern::compile as compile_pattern;
pub use prune::{is_pruned, prune};
pub use rules::Rules;
pub use validate::{MAX_ERRORS, validate, validate_update};
pub use validation_rule::ValidationRule;

/// Deepest nesting that is unpacked; deeper schemas are refused long before.
const MAX_DEPTH: usize = 200;

/// One node of a structural schema.
#[derive(Clone, Debug, Default)]
pub struct Structural {
    /// `type`: `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty.
    pub kind: String,
    /// Declared fields; boxed, as a map has room for more than it holds.
    pub properties: BTreeMap<String, Box<Structural>>,
    /// The type of the entries of a map with free keys.
    pub additional_properties: Option<Box<Structural>>,
    /// `additionalProperties: true`: free keys of which nothing is said.
    pub any_properties: bool,
    /// The type of the items of a list.
    pub items: Option<Box<Structural>>,
    /// What an absent field becomes.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`; empty means atomic.
    pub list_type: String,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`; empty means granular.
    pub map_type: String,
    /// Whether this is the schema of a whole object, whose type and metadata are implied.
    pub root: bool,
    /// `x-kubernetes-validations`.
    pub expression_rules: Vec<ValidationRule>,
    /// What values must be like.
    pub rules: Rules,
}

impl Structural {
    /// Reads the schema of a whole object. Patterns that are no regular expressions are ignored here; the rules for
    /// definitions refuse them.
    pub fn root(schema: &Value) -> Self {
        Self { root: true, ..Self::read(schema, 0) }
    }

    /// Reads the schema of a part of an object.
    pub(crate) fn of_node(schema: &Value) -> Self {
        Self::read(schema, 0)
    }

    fn read(schema: &Value, depth: usize) -> Self {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let below = |value: &Value| (depth < MAX_DEPTH).then(|| Self::read(value, depth + 1));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
        let node_below = |name: &str| schema.get(name).filter(|value| value.is_object()).and_then(below).map(Box::new);
        Self {
            kind: text("type"),
            properties: properties.filter_map(|(name, value)| Some((name.clone(), Box::new(below(value)?)))).collect(),
            additional_properties: node_below("additionalProperties"),
            any_properties: schema.get("additionalProperties") == Some(&Value::Bool(true)),
            items: node_below("items"),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            nullable: flag("nullable"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: list("x-kubernetes-list-map-keys").filter_map(Value::as_str).map(Into::into).collect(),
            map_type: text("x-kubernetes-map-type"),
            root: false,
            expression_rules: list("x-kubernetes-validations").map(ValidationRule::read).collect(),
            rules: Rules::read(schema, |value| below(value)),
        }
    }

    /// Whether nodes of this type carry `apiVersion`, `kind` and `metadata` of their own.
    pub fn is_object_root(&self) -> bool {
        self.root || self.embedded_resource
    }

    /// Whether nothing is said about the type.
    pub fn is_untyped(&self) -> bool {
        self.kind.is_empty() && !self.int_or_string
    }

    /// An object without declared members that keeps whatever it is given.
    pub fn is_free_form(&self) -> bool {
        (self.preserve_unknown_fields || self.any_properties)
            && self.properties.is_empty()
            && self.additional_properties.is_none()
            && !self.is_object_root()
            && self.map_type != "atomic"
    }

    /// The schema of a member: declared, or that of the free keys.
    pub fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional_properties.as_ref()).map(|below| &**below)
    }
}

/// Whether a member of a whole object is not the schema's business.
fn is_type_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests;
