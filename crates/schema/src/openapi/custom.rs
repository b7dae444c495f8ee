//! Published schemas of custom resources.

use serde_json::{Map, Value, json};

use super::Dialect;

/// Deepest nesting that is published; below, anything goes.
const MAX_DEPTH: usize = 100;
/// What version 2 cannot say.
const NOT_IN_V2: [&str; 5] = ["nullable", "oneOf", "anyOf", "not", "default"];

/// The model of a custom resource: the declared schema with the members that every object has.
pub(super) fn published(schema: &Value, dialect: Dialect) -> Value {
    let preserves = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if dialect == Dialect::V2 && preserves {
        // Any member at all would be understood as "and no others" by those who read version 2.
        return json!({"type": "object"});
    }
    let mut model = node(schema, dialect, 0);
    let properties = model.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for name in ["apiVersion", "kind"] {
            properties.insert(name.into(), json!({"type": "string"}));
        }
        let metadata = dialect.to("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let metadata = if dialect == Dialect::V3 { json!({"allOf": [metadata]}) } else { metadata };
        properties.insert("metadata".into(), metadata);
    }
    Value::Object(model)
}

fn node(schema: &Value, dialect: Dialect, depth: usize) -> Map<String, Value> {
    let mut published = Map::new();
    if depth > MAX_DEPTH {
        return published;
    }
    let below = |value: &Value| Value::Object(node(value, dialect, depth + 1));
    for (name, value) in schema.as_object().into_iter().flatten() {
        if dialect == Dialect::V2 && NOT_IN_V2.contains(&name.as_str()) {
            continue;
        }
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(map)) => {
                map.iter().map(|(name, value)| (name.clone(), below(value))).collect()
            }
            ("items" | "additionalProperties" | "not", Value::Object(_)) => below(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => list.iter().map(below).collect(),
            _ => value.clone(),
        };
        published.insert(name.clone(), value);
    }
    if dialect == Dialect::V2 {
        let is_set = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        if is_set("x-kubernetes-int-or-string") || (is_set("x-kubernetes-preserve-unknown-fields") && depth > 0) {
            // Version 2 readers would refuse what they cannot describe, so nothing is said.
            ["type", "properties", "items"].into_iter().for_each(|name| {
                published.remove(name);
            });
        }
    }
    published
}
