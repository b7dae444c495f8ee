//! Objects within custom objects (`x-kubernetes-embedded-resource`): each says what it is, and its metadata is like any.

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::gvk::GroupVersion;
use api_machinery::json;
use api_machinery::meta::ObjectMeta;
use api_machinery::names::dns1035_label;
use api_machinery::value::Value;
use kinds_frame::metadata::validate_embedded;
use schema::Structural;
use serde_json::Map;

/// Errors for all embedded objects of a value, at `path` and below.
pub fn check(path: &Path, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    visit(path, value, schema, &mut |path, object| check_object(path, object, errors));
}

/// The same where the value is an object itself, whatever its schema says.
pub(super) fn check_whole(path: &Path, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    if let (Value::Object(object), false) = (value, schema.embedded_resource) {
        check_object(path, object, errors);
    }
    check(path, value, schema, errors);
}

/// The first part of embedded objects that cannot be read as what it is.
pub(super) fn malformed(path: &Path, value: &Value, schema: &Structural) -> Option<FieldError> {
    let mut found = None;
    visit(path, value, schema, &mut |path, object| {
        found = found.take().or_else(|| malformed_part(path, object));
    });
    found
}

/// The same where the value is an object itself, whatever its schema says.
pub(super) fn malformed_whole(path: &Path, value: &Value, schema: &Structural) -> Option<FieldError> {
    let own = value.as_object().and_then(|object| malformed_part(path, object));
    own.or_else(|| malformed(path, value, schema))
}

fn malformed_part(path: &Path, object: &Map<String, Value>) -> Option<FieldError> {
    let not_text = ["apiVersion", "kind"].into_iter().find_map(|name| {
        let other = object.get(name).filter(|value| !value.is_string())?;
        Some(not_a_string(&path.child(name), other))
    });
    not_text.or_else(|| read_metadata(&path.child("metadata"), object.get("metadata")?).err())
}

/// Calls `found` for each embedded object.
fn visit(path: &Path, value: &Value, schema: &Structural, found: &mut dyn FnMut(&Path, &Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                found(path, map);
            }
            for (name, member) in map {
                if let Some(of) = schema.properties.get(name) {
                    visit(&path.child(name.clone()), member, of, found);
                } else if let Some(of) = &schema.additional_properties {
                    visit(&path.key(name), member, of, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(of) = &schema.items {
                    visit(&path.index(index), item, of, found);
                }
            }
        }
        _ => {}
    }
}

fn check_object(path: &Path, object: &Map<String, Value>, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        let at = path.child(name);
        match object.get(name) {
            None => errors.push(at.required("")),
            Some(Value::String(text)) if text.is_empty() => errors.push(at.invalid("", "must not be empty")),
            Some(Value::String(text)) => check_text(&at, name, text, errors),
            Some(other) => errors.push(not_a_string(&at, other)),
        }
    }
    if let Some(metadata) = object.get("metadata") {
        let at = path.child("metadata");
        match read_metadata(&at, metadata) {
            Ok(meta) => errors.extend(validate_embedded(&meta, &at)),
            Err(error) => errors.push(error),
        }
    }
}

fn not_a_string(at: &Path, value: &Value) -> FieldError {
    at.invalid(printed(value), "must be a string")
}

fn check_text(at: &Path, name: &str, text: &str, errors: &mut ErrorList) {
    if name == "apiVersion" {
        if let Err(error) = GroupVersion::parse(text) {
            errors.push(at.invalid(text, error.to_string()));
        }
        return;
    }
    let problems = dns1035_label(&text.to_lowercase());
    if !problems.is_empty() {
        let rule = problems.join(",");
        errors.push(at.invalid(text, format!("may have mixed case, but should otherwise match: {rule}")));
    }
}

fn read_metadata(at: &Path, metadata: &Value) -> Result<ObjectMeta, FieldError> {
    let mut meta = ObjectMeta::default();
    match json::decode(json::encode_value(metadata).as_bytes(), &mut meta) {
        Ok(_) => Ok(meta),
        Err(error) => Err(at.invalid(printed(metadata), error.to_string())),
    }
}

fn printed(value: &Value) -> BadValue {
    BadValue::json(json::encode_value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_objects_say_what_they_are() {
        let schema = json::parse_value(
            r#"{"type": "object", "properties": {"list": {"type": "array", "items":
                {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}}"#,
        );
        let schema = Structural::root(&schema.unwrap());
        for (object, expected) in [
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": {"a": "b"}}}"#, &[][..]),
            ("{}", &["list[0].apiVersion: Required value", "list[0].kind: Required value"]),
            (
                r#"{"apiVersion": "", "kind": 5}"#,
                &[
                    "list[0].apiVersion: Invalid value: \"\": must not be empty",
                    "list[0].kind: Invalid value: 5: must be a string",
                ],
            ),
            (
                r#"{"apiVersion": "a/b/c", "kind": "Deployment"}"#,
                &["list[0].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"],
            ),
            (
                r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "finalizers": ["x y/z"]}}"#,
                &[
                    "list[0].metadata.name: Invalid value: \"a/b\": may not contain '/'",
                    "list[0].metadata.finalizers: Invalid value: \"x y/z\": prefix part a lowercase RFC 1123 subdomain must consist of \
                     lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
                     'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ],
            ),
        ] {
            let value = json::parse_value(&format!(r#"{{"list": [{object}]}}"#)).unwrap();
            let mut errors = ErrorList::new();
            check(&Path::default(), &value, &schema, &mut errors);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{object}");
        }
        let value = json::parse_value(r#"{"list": [{"apiVersion": "v1", "kind": "No Kind"}]}"#).unwrap();
        let mut errors = ErrorList::new();
        check(&Path::default(), &value, &schema, &mut errors);
        let text = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(
            text.starts_with("list[0].kind: Invalid value: \"No Kind\": may have mixed case, but should"),
            "{text}"
        );
    }
}
