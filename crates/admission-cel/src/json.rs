//! What mutations evaluate to, as JSON.

use api_machinery::json::base64_text;
use api_machinery::value::{Value as Json, ValueMap};
use cel::{Object, Value};

use crate::types::{OBJECT, PATCH};

/// The value is not what a mutation can be; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeMismatch {
    /// A struct stands where another was meant.
    #[error(
        "type mismatch: unexpected type name {found:?}, expected {expected:?}, which matches field name path from root Object type"
    )]
    Name {
        /// The type's name.
        found: String,
        /// The name that the place asks for.
        expected: String,
    },
    /// No list.
    #[error("type mismatch: JSONPatchType.expression should evaluate to array")]
    NoList,
    /// No operation.
    #[error("type mismatch: expected a list of {PATCH}, got {0}")]
    NoOperation(String),
    /// No object.
    #[error("type mismatch: expected {OBJECT}, got {0}")]
    NoObject(String),
    /// JSON has nothing like it.
    #[error("type mismatch: unsupported type {0}")]
    Unsupported(String),
}

/// What is to be merged into the object.
///
/// # Errors
/// Types do not stand where their names say.
pub fn object_as_json(value: &Value<'_>) -> Result<Json, TypeMismatch> {
    match value {
        Value::Object(_) => convert(value, Some(OBJECT)),
        other => Err(TypeMismatch::NoObject(other.type_of().to_string())),
    }
}

/// The operations of a JSON patch. Structs within are named by the paths below their outermost one.
///
/// # Errors
/// It is no list of operations, or types do not stand where their names say.
pub fn json_patch(value: &Value<'_>) -> Result<Json, TypeMismatch> {
    let Value::List(list) = value else { return Err(TypeMismatch::NoList) };
    let operations = list.iter().map(|operation| match &operation {
        Value::Object(object) if object.type_name() == PATCH => fields(object, None),
        other => Err(TypeMismatch::NoOperation(other.type_of().to_string())),
    });
    operations.collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// The fields of a struct; `path` is the name of its type, where those below follow from it.
fn fields(object: &Object<'_>, path: Option<&str>) -> Result<Json, TypeMismatch> {
    let mut out = ValueMap::new();
    for name in object.fields() {
        let Some(value) = object.field(&name) else { continue };
        let below = path.map(|path| format!("{path}.{name}"));
        out.insert(name.to_string(), convert(&value, below.as_deref())?);
    }
    Ok(Json::Object(out))
}

fn convert(value: &Value<'_>, path: Option<&str>) -> Result<Json, TypeMismatch> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::String(text) => text.as_str().into(),
        Value::Bytes(bytes) => base64_text(bytes.as_bytes()).into(),
        Value::List(list) => Json::Array(list.iter().map(|item| convert(&item, path)).collect::<Result<_, _>>()?),
        Value::Map(map) => {
            let mut out = ValueMap::new();
            for (key, value) in map.iter() {
                let Some(key) = key.as_str() else {
                    return Err(TypeMismatch::Unsupported(format!("map with keys of type {}", key.type_of())));
                };
                out.insert(key.to_owned(), convert(&value, path)?);
            }
            Json::Object(out)
        }
        Value::Object(object) => {
            let found = object.type_name();
            if let Some(expected) = path.filter(|expected| *expected != found) {
                return Err(TypeMismatch::Name { found: found.to_owned(), expected: expected.to_owned() });
            }
            fields(object, Some(found))?
        }
        Value::Optional(Some(inner)) => convert(inner, path)?,
        other => return Err(TypeMismatch::Unsupported(other.type_of().to_string())),
    })
}
