//! From what a configuration file says to the kind that it names.

use api_machinery::reflect::Reflect;
use api_machinery::value::Value;
use api_machinery::{defaults, json};

/// Reads a file of this kind, in one of these versions, strictly, and fills in defaults.
///
/// # Errors
/// When it is of another kind, or has members that nobody knows; the text names them.
pub fn decode(mut value: Value, kind: &str, versions: &[&str], into: &mut dyn Reflect) -> Result<(), String> {
    let named = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (own_version, own_kind) = (named("apiVersion"), named("kind"));
    if own_kind.is_empty() {
        return Err("Object 'Kind' is missing".to_owned());
    }
    if own_kind != kind || !versions.contains(&own_version.as_str()) {
        return Err(format!("no kind {own_kind:?} is registered for version {own_version:?}"));
    }
    if let Some(members) = value.as_object_mut() {
        ["apiVersion", "kind"].iter().for_each(|name| drop(members.remove(*name)));
    }
    let decoded = json::decode(value.to_string().as_bytes(), into).map_err(|error| error.to_string())?;
    if !decoded.problems.is_empty() {
        return Err(format!("strict decoding error: {}", decoded.problems.join(", ")));
    }
    defaults::fill(into);
    Ok(())
}
