//! The structural schema of a custom resource version, read from its `openAPIV3Schema`.
//!
//! Only what the structure of objects needs is unpacked here; value rules (`minimum`, `pattern`, ...) stay in
//! [`Structural::rules`], as JSON, for the validator.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Deepest nesting that is unpacked; deeper schemas are refused long before.
const MAX_DEPTH: usize = 200;

/// One node of a structural schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    /// `type`: `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty.
    pub kind: String,
    /// Declared fields.
    pub properties: BTreeMap<String, Structural>,
    /// The type of the entries of a map with free keys.
    pub additional_properties: Option<Box<Structural>>,
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
    /// The JSON of the node, for the validator; the nodes below are left out.
    pub rules: Map<String, Value>,
}

impl Structural {
    /// Reads the schema of a whole object.
    pub fn root(schema: &Value) -> Self {
        Self { root: true, ..Self::read(schema, 0) }
    }

    fn read(schema: &Value, depth: usize) -> Self {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let below = |value: &Value| (depth < MAX_DEPTH).then(|| Self::read(value, depth + 1));
        let properties = schema.get("properties").and_then(Value::as_object);
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let node_below = |name: &str| schema.get(name).filter(|value| value.is_object()).and_then(below).map(Box::new);
        let free = schema.get("additionalProperties").and_then(Value::as_bool) == Some(true);
        Self {
            kind: text("type"),
            properties: properties
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.clone(), below(value)?)))
                .collect(),
            additional_properties: node_below("additionalProperties"),
            items: node_below("items"),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            nullable: flag("nullable"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields") || free,
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: keys.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            map_type: text("x-kubernetes-map-type"),
            root: false,
            rules: own_rules(schema),
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
        self.preserve_unknown_fields
            && self.properties.is_empty()
            && self.additional_properties.is_none()
            && !self.is_object_root()
            && self.map_type != "atomic"
    }
}

fn own_rules(schema: &Value) -> Map<String, Value> {
    let below = ["properties", "items", "additionalProperties", "description", "default", "example", "externalDocs"];
    let rules = schema.as_object().into_iter().flatten();
    rules
        .filter(|(name, _)| !below.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
