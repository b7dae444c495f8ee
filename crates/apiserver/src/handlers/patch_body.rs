//! The four kinds of patches: reading them, and what they make of an object's free-form value.

use api_machinery::cbor;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::json::{self, TypeMeta};
use api_machinery::object::{Object, Unstructured};
use api_machinery::reflect::Reflect as _;
use api_machinery::status::{ApiError, ErrorDetails, reason};
use api_machinery::value::{Value, ValueMap, json_type};
use api_machinery::yaml;
use api_types::autoscaling_v1::Scale;
use bytes::Bytes;
use kinds::rules::Rules;
use schema::TypeNode;
use schema::apply::CustomVersions as _;
use schema::json_patch::{JsonPatch, JsonPatchError};
use schema::{merge_patch, strategic};

use super::patch_focus;
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::negotiate::PatchType;
use crate::request::{SCHEME, Strictness};
use crate::warnings::Warnings;

/// Takes the body out of a request, and notes it in JSON, whatever it came in.
///
/// # Errors
/// 413 when it is too large, 400 when it breaks off.
pub(super) async fn receive(request: &mut Request<Authorized>, kind: PatchType) -> Result<Bytes, ApiError> {
    let body = request.read_body().await?;
    request.audited().context().patched(|| match kind {
        PatchType::Apply => {
            let document = yaml::parse(&String::from_utf8_lossy(&body)).ok()?;
            Some(json::encode_value(&document.value))
        }
        PatchType::ApplyCbor => cbor::to_json(&body).ok(),
        PatchType::Json | PatchType::Merge | PatchType::Strategic => String::from_utf8(body.to_vec()).ok(),
    });
    Ok(body)
}

/// A patch, read.
#[derive(Debug)]
pub(super) struct PatchBody {
    pub(super) form: Form,
    /// Members that are there twice or that no operation has; they count like those of the patched document.
    problems: Vec<String>,
}

/// What a patch says.
#[derive(Debug)]
pub(super) enum Form {
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
        match kind {
            PatchType::Apply => return Ok(applied(yaml_of(&text, strictness, warnings)?)),
            PatchType::ApplyCbor => return cbor_of(body).map(applied),
            PatchType::Json | PatchType::Merge | PatchType::Strategic => {}
        }
        // Strategic patches are read by a reader of their own, which says no more than what is wrong.
        let refuse = |error: String| match (strictness, kind) {
            (Strictness::Ignore, _) | (_, PatchType::Strategic) => ApiError::bad_request(error),
            _ => ApiError::bad_request(format!("error decoding patch: {error}")),
        };
        let (value, mut problems) = json::parse_value_strict(&text).map_err(|error| refuse(error.to_string()))?;
        let form = match (kind, &value) {
            (PatchType::Json, _) => {
                let patch = JsonPatch::parse(&value).map_err(|error| json_patch_error(error, refuse))?;
                problems.extend(patch.unknown_fields.iter().cloned());
                problems = problems.iter().map(|problem| format!("json patch {problem}")).collect();
                Form::Json(patch)
            }
            (PatchType::Merge, Value::Null) => return Err(ApiError::bad_request("Invalid JSON Patch")),
            // Nothing to merge.
            (_, Value::Null) => Form::Strategic(Value::Object(ValueMap::new())),
            (PatchType::Merge, Value::Object(_)) => Form::Merge(value),
            (_, Value::Object(_)) => Form::Strategic(value),
            (_, other) => {
                let kind = json_type(other);
                return Err(refuse(format!(
                    "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
                )));
            }
        };
        Ok(Self { form, problems })
    }

    /// What the patch makes of a document; an apply is not made this way.
    ///
    /// # Errors
    /// 400, 413, 422, 500.
    pub(super) fn apply(&self, document: Value, node: TypeNode<'_>) -> Result<Value, ApiError> {
        match &self.form {
            Form::Json(patch) => patch.apply(document).map_err(|error| json_patch_error(error, ApiError::bad_request)),
            Form::Merge(patch) | Form::Apply(patch) => Ok(merge_patch::apply(document, patch)),
            Form::Strategic(patch) => strategic::apply(document, patch, node).map_err(|error| match error.code() {
                400 => ApiError::bad_request(error.to_string()),
                422 => unprocessable(),
                _ => ApiError::unclassified(error.to_string()),
            }),
        }
    }

    /// The answer when what the patch makes of a document is no object of the kind.
    fn misfit(&self, patched: &Value, why: String) -> ApiError {
        let mut errors = ErrorList::default();
        errors.push(Path::new("patch").invalid(self.shown(patched).as_str(), why));
        ApiError::invalid(&GroupKind::default(), "", &errors)
    }

    /// The answer when a patched document reads as an object of the kind, but what its annotations say does not fit. Upstream
    /// finds that where it reads what JSON and merge patches come to, and after strategic ones where nobody words it.
    fn misread(&self, patched: &Value, why: String) -> ApiError {
        match self.form {
            Form::Json(_) | Form::Merge(_) => self.misfit(patched, why),
            Form::Strategic(_) | Form::Apply(_) => ApiError::unclassified(why),
        }
    }

    /// Why a patched document is no object: upstream converts the outcome of strategic patches without JSON in between.
    fn why(&self, patched: &Value, node: TypeNode<'_>, error: &json::DecodeError) -> String {
        let converted = matches!(self.form, Form::Strategic(_)).then(|| node.misfit(patched)).flatten();
        converted.unwrap_or_else(|| error.to_string())
    }

    /// Tells or refuses what the patch and the patched document have that nobody knows.
    fn enforce(
        &self,
        patched: &Value,
        found: Vec<String>,
        strictness: Strictness,
        warnings: &Warnings,
    ) -> Result<(), ApiError> {
        let problems = [self.problems.as_slice(), &found].concat();
        match strictness {
            Strictness::Strict if !problems.is_empty() => {
                return Err(self.misfit(patched, format!("strict decoding error: {}", problems.join(", "))));
            }
            Strictness::Warn => warnings.extend(problems),
            _ => {}
        }
        Ok(())
    }

    /// The patched document as errors show it: the text, or the patch in Go's form for a strategic one.
    fn shown(&self, patched: &Value) -> String {
        match &self.form {
            Form::Strategic(patch) => strategic::go_value(patch),
            _ => json::encode_value(patched),
        }
    }
}

fn applied(value: Value) -> PatchBody {
    PatchBody { form: Form::Apply(value), problems: Vec::new() }
}

/// Nothing is an object that says nothing, and is refused for that later.
fn something(value: Value) -> Value {
    if value.is_null() { Value::Object(ValueMap::new()) } else { value }
}

/// Reads the CBOR of an apply.
fn cbor_of(body: &[u8]) -> Result<Value, ApiError> {
    let refuse = |error: String| ApiError::bad_request(format!("error decoding CBOR: {error}"));
    let value = something(cbor::parse_value(body).map_err(|error| refuse(error.to_string()))?);
    if value.is_object() {
        return Ok(value);
    }
    let kind = json_type(&value);
    Err(refuse(format!("cbor: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")))
}

/// Reads the YAML of an apply.
fn yaml_of(text: &str, strictness: Strictness, warnings: &Warnings) -> Result<Value, ApiError> {
    let refuse = |error: String| ApiError::bad_request(format!("error decoding YAML: {error}"));
    let document = yaml::parse(text).map_err(|found| refuse(found.to_string()))?;
    let value = something(document.value);
    if !value.is_object() {
        let kind = json_type(&value);
        return Err(refuse(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type \
             map[string]interface {{}}"
        )));
    }
    let repeated = document.duplicates;
    match strictness {
        Strictness::Warn => warnings.extend(repeated),
        Strictness::Strict if !repeated.is_empty() => {
            let lines = repeated.join("\n  ");
            return Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {lines}"
            )));
        }
        _ => {}
    }
    Ok(value)
}

fn json_patch_error(error: JsonPatchError, refuse: impl Fn(String) -> ApiError) -> ApiError {
    match error {
        JsonPatchError::Decode(text) => refuse(text),
        JsonPatchError::TooManyOperations(_) => ApiError::request_entity_too_large(error),
        JsonPatchError::Operation(_) | JsonPatchError::Test(_) | JsonPatchError::CopyTooLarge(_) => {
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

/// What a patch makes of an object, by way of no more than what it names; nothing where it takes the whole object to tell.
pub(super) fn focused(target: &Target, live: &dyn Object, patch: &PatchBody) -> Option<Box<dyn Object>> {
    let (Form::Merge(Value::Object(named)) | Form::Strategic(Value::Object(named))) = &patch.form else { return None };
    if !patch.problems.is_empty() {
        return None;
    }
    let apply = |document| {
        let patched = patch.apply(document, target.type_node()).ok()?;
        let is_changed = matches!(patch.form, Form::Merge(_)) && still_of_kind(target, &patched).is_err();
        (!is_changed).then_some(patched)
    };
    let mut object = patch_focus::patched(live, named, apply)?;
    if target.rules().misread(&*object).is_some() {
        return None;
    }
    target.rules().set_defaults(&mut *object);
    Some(object)
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
    if matches!(patch.form, Form::Json(_) | Form::Merge(_)) && !target.is_custom() {
        still_of_kind(target, patched).map_err(|why| patch.misfit(patched, why))?;
    }
    let mut object = target.rules().new_object();
    let text = json::encode_value(patched);
    let decoded = json::decode(text.as_bytes(), object.as_reflect_mut())
        .map_err(|error| patch.misfit(patched, patch.why(patched, target.type_node(), &error)))?;
    let mut problems = decoded.problems;
    if let Some(unstructured) = object.downcast_mut::<Unstructured>() {
        still_of_versions(target, &decoded.type_meta, &text).map_err(|why| patch.misfit(patched, why))?;
        let api_version = decoded.type_meta.api_version.clone();
        unstructured.type_meta = TypeMeta { api_version, kind: target.info().kind.to_owned() };
        if let Some(custom) = &target.custom {
            problems.extend(custom.prune(unstructured));
        }
    }
    if let Some(why) = target.rules().misread(&*object) {
        return Err(patch.misread(patched, why));
    }
    patch.enforce(patched, problems, strictness, warnings)?;
    if target.is_custom() {
        target.rules().bring_up_to_date(&mut *object, &decoded.type_meta.api_version);
    }
    target.rules().set_defaults(&mut *object);
    Ok(object)
}

/// Whether a patched document still says that it is of the kind of the path; upstream reads it as what it says, and then
/// finds that it is something else.
fn still_of_kind(target: &Target, patched: &Value) -> Result<(), String> {
    let text = |name: &str| patched.get(name).and_then(Value::as_str).unwrap_or_default();
    let (own, info) = (target.api_version(), target.info());
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let (kind, api_version) =
        (if kind.is_empty() { info.kind } else { kind }, if api_version.is_empty() { &own } else { api_version });
    if kind == info.kind && api_version == own {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = |rules: &&dyn Rules| {
        let info = rules.info();
        (info.group, info.version, info.kind) == (group, version, kind)
    };
    let Some(rules) = kinds::all().find(of_kind) else {
        return Err(format!("no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}"));
    };
    let document = json::encode_value(patched);
    let read = json::decode(document.as_bytes(), rules.new_object().as_reflect_mut());
    read.map_err(|error| error.to_string())?;
    Err(format!("unable to decode {group}/{version}, Kind={kind} into *{}.{}", info.version, info.kind))
}

/// Whether a patched custom object still says that it is of a version of its definition.
fn still_of_versions(target: &Target, found: &TypeMeta, text: &str) -> Result<(), String> {
    let (TypeMeta { api_version, kind }, own) = (found, target.api_version());
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{text}'"));
    }
    let is_known = target.custom.as_ref().is_some_and(|custom| custom.versions.has(api_version));
    if *api_version == own || is_known {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Err(if group == target.info().group {
        format!("request to convert CR from an invalid group/version: {api_version}")
    } else {
        format!("{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to {own:?}")
    })
}

/// Turns a patched document back into a scale; errors as of [`as_object`].
pub(super) fn as_scale(
    patched: &Value,
    patch: &PatchBody,
    strictness: Strictness,
    warnings: &Warnings,
) -> Result<Scale, ApiError> {
    let mut scale = Scale::default();
    let text = json::encode_value(patched);
    let node = TypeNode::of_struct(scale.struct_type());
    let decoded = json::decode(text.as_bytes(), &mut scale)
        .map_err(|error| patch.misfit(patched, patch.why(patched, node, &error)))?;
    patch.enforce(patched, decoded.problems, strictness, warnings)?;
    Ok(scale)
}

#[cfg(test)]
mod tests {
    use super::Strictness::{Ignore, Strict, Warn};
    use super::*;

    #[test]
    fn bad_patches_are_refused() {
        let map = "json: cannot unmarshal array into Go value of type map[string]interface {}";
        let patch = "json: cannot unmarshal object into Go value of type";
        let cases = [
            (PatchType::Json, Warn, "{}", format!("400 error decoding patch: {patch} []handlers.jsonPatchOp")),
            (PatchType::Json, Ignore, "{}", format!("400 {patch} []handlers.jsonPatchOp")),
            (PatchType::Json, Strict, r#"[{"op":"add","foo":1}]"#, String::new()),
            (PatchType::Merge, Warn, "[]", format!("400 error decoding patch: {map}")),
            (PatchType::Merge, Warn, "null", "400 Invalid JSON Patch".to_owned()),
            (PatchType::Merge, Warn, r#"{"a":null}"#, String::new()),
            (PatchType::Strategic, Strict, "[]", format!("400 {map}")),
            (PatchType::Strategic, Ignore, "{", "400 unexpected end of JSON input".to_owned()),
            (PatchType::Strategic, Warn, "null", String::new()),
            (
                PatchType::Apply,
                Strict,
                "a: 1\na: 2",
                "400 error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \
                 \"a\" already set in map"
                    .to_owned(),
            ),
            (
                PatchType::Apply,
                Warn,
                "1",
                format!("400 error decoding YAML: error unmarshaling JSON: while decoding JSON: {}", map.replace("array", "number")),
            ),
            (PatchType::Apply, Strict, "", String::new()),
        ];
        for (kind, strictness, body, expected) in cases {
            assert_eq!(refusal(kind, strictness, body), expected, "{kind:?} {strictness:?} {body}");
        }
        assert!(refusal(PatchType::Apply, Warn, "a: [").starts_with("400 error decoding YAML: "));
        let long = format!("[{}]", vec![r#"{"op":"add","path":"/a","value":1}"#; 10_001].join(","));
        assert_eq!(
            refusal(PatchType::Json, Warn, &long),
            "413 Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    fn refusal(kind: PatchType, strictness: Strictness, body: &str) -> String {
        let read = PatchBody::read(kind, body.as_bytes(), strictness, &Warnings::default());
        read.err().map_or_else(String::new, |error| format!("{} {}", error.code, error.message))
    }

    #[test]
    fn problems_of_patches_are_kept_for_later() {
        let problems =
            |kind, body: &str| PatchBody::read(kind, body.as_bytes(), Strict, &Warnings::default()).unwrap().problems;
        assert_eq!(problems(PatchType::Merge, r#"{"a":{"b":1,"b":2}}"#), ["duplicate field \"a.b\""]);
        assert_eq!(problems(PatchType::Json, r#"[{"op":"add","foo":1}]"#), ["json patch unknown field \"[0].foo\""]);
    }
}
