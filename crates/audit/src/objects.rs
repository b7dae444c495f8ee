//! The objects of requests and answers as events have them: JSON on one line, of bounded length, with or without the record
//! of managers. Everything here works on text, so that what is told is what was sent.

use api_machinery::json;
use api_machinery::leaf::RawJson;
use api_machinery::value::Value;

/// What is longer is left out of an event, which says so. A body is at most 3 MiB; only lists come near, and one that a
/// client reads piece by piece must not be put together whole for the log.
pub const MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024;
const MANAGED_FIELDS: &str = "managedFields";

/// An object that the server has encoded, in one line.
pub(crate) fn encoded(text: &str, omits_managed_fields: bool) -> RawJson {
    let text = text.trim_end();
    if !omits_managed_fields || !text.contains(MANAGED_FIELDS) {
        return RawJson::from_text(text);
    }
    let Ok(mut value) = json::parse_value(text) else { return RawJson::from_text(text) };
    strip(&mut value);
    RawJson::from_value(&value)
}

/// What a client has written, as it is but for the blanks; nothing where it is no JSON.
pub(crate) fn written(text: &str) -> Option<RawJson> {
    json::check(text).ok()?;
    Some(RawJson::from_text(compact(text)))
}

/// Removes the record from an object, from the items of a list, and from the objects of a table's rows.
fn strip(value: &mut Value) {
    strip_one(value);
    for member in ["items", "rows"] {
        let Some(entries) = value.get_mut(member).and_then(Value::as_array_mut) else { continue };
        for entry in entries {
            match entry.get_mut("object") {
                Some(object) if member == "rows" => strip_one(object),
                _ => strip_one(entry),
            }
        }
    }
}

fn strip_one(object: &mut Value) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove(MANAGED_FIELDS);
    }
}

/// JSON without the blanks between its parts.
fn compact(text: &str) -> String {
    let (mut out, mut in_string, mut is_escaped) = (String::with_capacity(text.len()), false, false);
    for character in text.chars() {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character == '"' {
            in_string = true;
        } else if character.is_ascii_whitespace() {
            continue;
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_and_texts_stay() {
        for (text, expected) in [
            ("{ \"a\" :\n [1.10 , \"b c\"] }\n", Some("{\"a\":[1.10,\"b c\"]}")),
            (r#"{"a": "\" x \\", "b" : 1}"#, Some(r#"{"a":"\" x \\","b":1}"#)),
            ("{\"a\":", None),
            ("a: b", None),
        ] {
            assert_eq!(written(text).as_ref().map(RawJson::as_str), expected, "{text}");
        }
    }

    #[test]
    fn records_of_managers_go_where_objects_have_them() {
        let managed = r#"{"metadata":{"managedFields":[{}],"name":"a"},"spec":{"managedFields":1}}"#;
        let bare = r#"{"metadata":{"name":"a"},"spec":{"managedFields":1}}"#;
        for shape in ["OBJECT", r#"{"items":[OBJECT,OBJECT]}"#, r#"{"rows":[{"cells":["a"],"object":OBJECT}]}"#] {
            let text = shape.replace("OBJECT", managed);
            let told = |omits| json::parse_value(encoded(&text, omits).as_str()).expect("JSON");
            let expected = |object| json::parse_value(&shape.replace("OBJECT", object)).expect("JSON");
            assert_eq!(told(true), expected(bare), "{shape}");
            assert_eq!(told(false), expected(managed), "{shape}");
        }
        assert_eq!(encoded("{}\n", true).as_str(), "{}", "an event has no other end of line than its own");
    }
}
