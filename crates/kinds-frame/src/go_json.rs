//! Texts in fields that must be JSON, and what is wrong with them in the words of upstream's reader.

use api_machinery::json;
use api_machinery::value::{Value, json_type};

/// Reads any value.
pub fn value(text: &str) -> Result<Value, String> {
    json::parse_value(text).map_err(|error| error.to_string())
}

/// Reads the items of a list; `of` is the name of its type. Null is an empty one.
pub fn list(text: &str, of: &str) -> Result<Vec<Value>, String> {
    match value(text)? {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items),
        other => Err(format!("json: cannot unmarshal {} into Go value of type []{of}", json_type(&other))),
    }
}

/// Whether a text is an object, or null, which counts as an empty one.
pub fn check_object(bytes: &[u8]) -> Result<(), String> {
    match value(&String::from_utf8_lossy(bytes))? {
        Value::Null | Value::Object(_) => Ok(()),
        other => {
            Err(format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", json_type(&other)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_usual_words() {
        for (text, expected) in [
            ("{}", ""),
            ("null", ""),
            ("", "unexpected end of JSON input"),
            ("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
            ("\"a\"", "json: cannot unmarshal string into Go value of type map[string]interface {}"),
            ("x", "invalid character 'x' looking for beginning of value"),
        ] {
            assert_eq!(check_object(text.as_bytes()).err().unwrap_or_default(), expected, "{text}");
        }
        assert_eq!(list("{}", "T").err().as_deref(), Some("json: cannot unmarshal object into Go value of type []T"));
        assert_eq!(list("null", "T"), Ok(Vec::new()));
    }
}
