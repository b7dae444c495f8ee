//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// The document after the patch: null deletes, objects merge, everything else replaces.
pub fn apply(document: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = match document {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            merged.remove(name);
        } else {
            let before = merged.remove(name).unwrap_or_default();
            merged.insert(name.clone(), apply(before, change));
        }
    }
    Value::Object(merged)
}

/// The patch that turns `from` into `to`; an empty object when they are equal.
pub fn create(from: &Value, to: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(same) if same == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                patch.insert(name.clone(), create(old, value));
            }
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_the_examples_of_the_rfc() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(apply(document, &patch), expected);
        }
    }

    #[test]
    fn creates_what_it_applies() {
        let cases = [
            (
                json!({"a": 1, "b": {"c": 1, "d": 2}}),
                json!({"b": {"c": 1, "e": [1]}}),
                json!({"a": null, "b": {"d": null, "e": [1]}}),
            ),
            (json!({"a": 1}), json!({"a": 1}), json!({})),
        ];
        for (from, to, patch) in cases {
            assert_eq!(create(&from, &to), patch);
            assert_eq!(apply(from, &patch), to);
        }
    }
}
