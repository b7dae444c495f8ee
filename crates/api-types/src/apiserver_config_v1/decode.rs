//! From what a configuration file says to the kind that it names.

use api_machinery::json::TypeMeta;
use api_machinery::reflect::Reflect;
use api_machinery::value::Value;

use crate::document::{decode_strictly, version_of};

/// Reads a file of this kind, in one of these versions, strictly, and fills in defaults.
///
/// # Errors
/// When it is of another kind, or has members that nobody knows; the text names them.
pub fn decode(mut value: Value, kind: &str, versions: &[&str], into: &mut dyn Reflect) -> Result<(), String> {
    let named = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    version_of(&TypeMeta { api_version: named("apiVersion"), kind: named("kind") }, kind, versions)?;
    if let Some(members) = value.as_object_mut() {
        ["apiVersion", "kind"].iter().for_each(|name| drop(members.remove(*name)));
    }
    decode_strictly(&value.to_string(), None, into)
}
