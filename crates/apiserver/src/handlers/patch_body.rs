//! The four kinds of patches: reading them, and what they make of an object's free-form value.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::json;
use api_machinery::object::{Object, Unstructured};
use api_machinery::status::{ApiError, ErrorDetails, reason};
use api_machinery::value::Value;
use api_machinery::yaml;
use schema::TypeNode;
use schema::json_patch::{JsonPatch, JsonPatchError};
use schema::{merge_patch, strategic};

use super::Target;
use crate::negotiate::PatchType;
use crate::request::Strictness;
use crate::warnings::Warnings;

/// A patch, read.
#[derive(Debug)]
pub(super) enum PatchBody {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl PatchBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// 400 for what is no such patch, 413 for one that is too long.
    pub(super) fn read(
        kind: PatchType,
        body: &[u8],
        strictness: Strictness,
        warnings: &Warnings,
    ) -> Result<Self, ApiError> {
        let text = String::from_utf8_lossy(body);
        if kind == PatchType::Apply {
            let error = |error: String| ApiError::bad_request(format!("error decoding YAML: {error}"));
            let document = yaml::parse(&text).map_err(|found| error(found.to_string()))?;
            if !document.value.is_object() {
                return Err(error("json: cannot unmarshal into Go value of type map[string]interface {}".into()));
            }
            settle(strictness, document.duplicates, warnings, "error strict decoding YAML: ")?;
            return Ok(Self::Apply(document.value));
        }
        let parsed = json::parse_value_strict(&text);
        let (value, problems) =
            parsed.map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
        settle(strictness, problems, warnings, "error decoding patch: ")?;
        match kind {
            PatchType::Json => {
                let patch = JsonPatch::parse(&value).map_err(json_patch_error)?;
                settle(strictness, patch.unknown_fields.clone(), warnings, "error decoding patch: ")?;
                Ok(Self::Json(patch))
            }
            _ if !value.is_object() => Err(ApiError::bad_request("error decoding patch: Invalid JSON Patch")),
            PatchType::Merge => Ok(Self::Merge(value)),
            _ => Ok(Self::Strategic(value)),
        }
    }

    /// What the patch makes of a document; an apply is not made this way.
    ///
    /// # Errors
    /// 400, 413, 422, 500.
    pub(super) fn apply(&self, document: Value, node: TypeNode<'_>) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch) => patch.apply(document).map_err(json_patch_error),
            Self::Merge(patch) | Self::Apply(patch) => Ok(merge_patch::apply(document, patch)),
            Self::Strategic(patch) => strategic::apply(document, patch, node).map_err(|error| match error.code() {
                400 => ApiError::bad_request(error.to_string()),
                422 => unprocessable(),
                _ => ApiError::unclassified(error.to_string()),
            }),
        }
    }

    /// The patched document as errors show it: the text, or the patch in Go's form for a strategic one.
    fn shown(&self, patched: &Value) -> String {
        match self {
            Self::Strategic(patch) => go_map(patch),
            _ => json::encode_value(patched),
        }
    }
}

fn settle(strictness: Strictness, problems: Vec<String>, warnings: &Warnings, prefix: &str) -> Result<(), ApiError> {
    match strictness {
        Strictness::Ignore => {}
        Strictness::Warn => warnings.extend(problems),
        Strictness::Strict if problems.is_empty() => {}
        Strictness::Strict => return Err(ApiError::bad_request(format!("{prefix}{}", problems.join(", ")))),
    }
    Ok(())
}

fn json_patch_error(error: JsonPatchError) -> ApiError {
    match error {
        JsonPatchError::Decode(_) => ApiError::bad_request(error.to_string()),
        JsonPatchError::TooManyOperations(_) => ApiError::request_entity_too_large(error),
        JsonPatchError::Operation(_) | JsonPatchError::CopyTooLarge(_) => {
            tracing::debug!(%error, "A JSON patch did not apply");
            unprocessable()
        }
    }
}

/// The answer to a patch that does not apply; clients are not told why, as upstream does not tell them.
fn unprocessable() -> ApiError {
    ApiError {
        code: 422,
        reason: reason::INVALID.into(),
        message: "the server rejected our request due to an error in our request".into(),
        ..ApiError::default()
    }
    .with_details(ErrorDetails::default())
}

/// Turns a patched document back into an object of the kind.
///
/// # Errors
/// 422 when it does not fit, or has unknown fields and the request is strict.
pub(super) fn as_object(
    target: &Target,
    patched: &Value,
    patch: &PatchBody,
    strictness: Strictness,
    warnings: &Warnings,
) -> Result<Box<dyn Object>, ApiError> {
    let refuse = |why: String| {
        let mut errors = ErrorList::default();
        errors.push(Path::new("patch").invalid(patch.shown(patched).as_str(), why));
        ApiError::invalid(&GroupKind::default(), "", &errors)
    };
    let mut object = target.rules().new_object();
    let text = json::encode_value(patched);
    let decoded = json::decode(text.as_bytes(), object.as_reflect_mut()).map_err(|error| refuse(error.to_string()))?;
    let mut problems = decoded.problems;
    if let Some(unstructured) = object.downcast_mut::<Unstructured>() {
        unstructured.type_meta = decoded.type_meta;
        if let Some(custom) = &target.custom {
            problems.extend(custom.prune(unstructured));
        }
    }
    match strictness {
        Strictness::Strict if !problems.is_empty() => {
            return Err(refuse(format!("strict decoding error: {}", problems.join(", "))));
        }
        Strictness::Warn => warnings.extend(problems),
        _ => {}
    }
    target.rules().set_defaults(&mut *object);
    Ok(object)
}

/// A value as Go prints maps.
fn go_map(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_map(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_map).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_patches_are_refused() {
        let read = |kind, body: &str| {
            let read = PatchBody::read(kind, body.as_bytes(), Strictness::Warn, &Warnings::default());
            read.err().map_or_else(String::new, |error| format!("{} {}", error.code, error.message))
        };
        assert!(read(PatchType::Json, "{}").starts_with("400 error decoding patch: json: cannot unmarshal object"));
        assert_eq!(read(PatchType::Merge, "[]"), "400 error decoding patch: Invalid JSON Patch");
        assert!(read(PatchType::Strategic, "{").starts_with("400 error decoding patch: "));
        assert!(read(PatchType::Apply, "a: [").starts_with("400 error decoding YAML: "));
        assert_eq!(read(PatchType::Merge, r#"{"a":null}"#), "");
        let long = format!("[{}]", vec![r#"{"op":"add","path":"/a","value":1}"#; 10_001].join(","));
        assert_eq!(
            read(PatchType::Json, &long),
            "413 Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    #[test]
    fn maps_print_as_gos() {
        let value = serde_json::json!({"a": {"b": [1, "x"]}, "c": null});
        assert_eq!(go_map(&value), "map[a:map[b:[1 x]] c:<nil>]");
    }
}
