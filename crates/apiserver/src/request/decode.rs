//! Turning bodies into objects, with upstream's errors and its three ways of treating unknown fields.

use api_machinery::cbor;
use api_machinery::json::{self, Problems, TypeMeta};
use api_machinery::object::{Kind, KindType, Object, Unstructured};
use api_machinery::protobuf;
use api_machinery::reflect::Reflect;
use api_machinery::status::ApiError;
use api_machinery::yaml::{self, YamlError};
use kinds::info::ResourceInfo;
use kinds::rules::Rules;

use crate::custom_kinds::{self, CustomKind};
use crate::negotiate::MediaType;
use crate::warnings::Warnings;

/// How many bytes of an unreadable body are shown.
const SHOWN_BYTES: usize = 30;
/// The name that texts about unknown kinds print for the set of known ones.
pub(crate) const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";
/// The server of definitions has a scheme of its own.
const EXTENSIONS_SCHEME: &str = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// What happens with unknown and duplicate fields (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Strictness {
    /// Nothing.
    Ignore,
    /// Warnings.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// The kind that a body must be of.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl From<&ResourceInfo<'_>> for Expected {
    fn from(info: &ResourceInfo<'_>) -> Self {
        Self { group: info.group.to_owned(), version: info.version.to_owned(), kind: info.kind.to_owned() }
    }
}

impl From<KindType> for Expected {
    fn from(kind: KindType) -> Self {
        Self { group: kind.group.to_owned(), version: kind.version.to_owned(), kind: kind.kind.to_owned() }
    }
}

/// An object and what a strict reader would say of its text.
pub(crate) struct DecodedObject {
    pub(crate) object: Box<dyn Object>,
    pub(crate) problems: Problems,
}

/// Decodes a resource's own kind, prunes custom ones, and sets defaults.
///
/// # Errors
/// 400.
pub(crate) fn decode_object(
    rules: &dyn Rules,
    custom: Option<&CustomKind>,
    media: MediaType,
    body: &[u8],
) -> Result<DecodedObject, ApiError> {
    let expected = Expected::from(rules.info());
    let mut object = rules.new_object();
    let (type_meta, mut problems) = decode_into(&expected, media, body, object.as_reflect_mut(), custom.is_some())?;
    if let Some(unstructured) = object.downcast_mut::<Unstructured>() {
        unstructured.type_meta = type_meta;
        if let Some(custom) = custom {
            problems.extend(custom.prune(unstructured));
        }
    }
    if let Some(error) = rules.misread(&*object) {
        return Err(expected.unhandled(&expected.kind, &expected.version, &error));
    }
    rules.set_defaults(&mut *object);
    Ok(DecodedObject { object, problems })
}

/// Decodes some other kind, such as a review, without defaults.
///
/// # Errors
/// 400; unknown fields as `strictness` wants it.
pub(crate) fn decode_kind<T: Kind>(
    media: MediaType,
    body: &[u8],
    strictness: Strictness,
    warnings: &Warnings,
) -> Result<T, ApiError> {
    let expected = Expected::from(T::TYPE);
    let mut target = T::default();
    let (_, problems) = decode_into(&expected, media, body, &mut target, false)?;
    strictness.enforce(&expected, problems, warnings)?;
    Ok(target)
}

impl Strictness {
    /// Reads the parameter, which was validated; absent means warnings.
    pub(crate) fn of(field_validation: &str) -> Self {
        match field_validation {
            "Ignore" => Self::Ignore,
            "Strict" => Self::Strict,
            _ => Self::Warn,
        }
    }

    /// Deals with what a strict reader had to say.
    ///
    /// # Errors
    /// 400 when strict.
    pub(crate) fn enforce(self, expected: &Expected, problems: Problems, warnings: &Warnings) -> Result<(), ApiError> {
        match self {
            Self::Ignore => Ok(()),
            Self::Warn => {
                warnings.extend(problems);
                Ok(())
            }
            Self::Strict if problems.is_empty() => Ok(()),
            Self::Strict => {
                let problems = format!("strict decoding error: {}", problems.join(", "));
                Err(expected.unhandled(&expected.kind, &expected.version, &problems))
            }
        }
    }
}

/// Decodes a body into an empty target.
///
/// # Errors
/// 400.
pub(crate) fn decode_into(
    expected: &Expected,
    media: MediaType,
    body: &[u8],
    target: &mut dyn Reflect,
    needs_type: bool,
) -> Result<(TypeMeta, Problems), ApiError> {
    match media {
        MediaType::Json => decode_json(expected, Text { json: body, sent: body }, target, needs_type),
        MediaType::Yaml => {
            let text = String::from_utf8_lossy(body);
            let document = yaml::parse(&text).map_err(|error| expected.unrecognized(&not_yaml(&error), body))?;
            let json = json::encode_value(&document.value);
            let text = Text { json: json.as_bytes(), sent: body };
            let (type_meta, mut problems) = decode_json(expected, text, target, needs_type)?;
            problems.splice(0..0, document.duplicates);
            Ok((type_meta, problems))
        }
        MediaType::Cbor => {
            let text = cbor::to_json(body).map_err(|error| expected.unrecognized(&error.to_string(), body))?;
            decode_json(expected, Text { json: text.as_bytes(), sent: body }, target, needs_type)
        }
        MediaType::Protobuf => {
            let envelope = protobuf::open(body).map_err(|error| expected.unrecognized(&error.to_string(), body))?;
            let type_meta = TypeMeta { api_version: envelope.api_version, kind: envelope.kind };
            expected.check_type(&type_meta, body)?;
            protobuf::decode(envelope.raw, target)
                .map_err(|error| expected.unhandled(&expected.kind, &expected.version, &error.to_string()))?;
            Ok((type_meta, Vec::new()))
        }
    }
}

/// Why a body is not YAML: without what files are told of beside that.
pub(crate) fn not_yaml(error: &YamlError) -> String {
    let place = if error.line == 0 { String::new() } else { format!("line {}: ", error.line) };
    format!("yaml: {place}{}", error.message)
}

/// A body as JSON, and as it was sent, which is what errors show.
#[derive(Clone, Copy)]
struct Text<'a> {
    json: &'a [u8],
    sent: &'a [u8],
}

fn decode_json(
    expected: &Expected,
    text: Text<'_>,
    target: &mut dyn Reflect,
    needs_type: bool,
) -> Result<(TypeMeta, Problems), ApiError> {
    let unhandled = |error: json::DecodeError| {
        let mut text = error.to_string();
        if needs_type {
            // The metadata of custom objects is read apart from the rest, and told so.
            text = text.replace("Go struct field ObjectMeta.metadata.", "Go struct field ObjectMeta.");
        }
        expected.unhandled(&expected.kind, &expected.version, &text)
    };
    // Nothing leaves everything as it is, as Go's null does.
    if text.json.trim_ascii() == b"null" {
        let missing = || expected.unrecognized("Object 'Kind' is missing in 'null'", text.sent);
        return if needs_type { Err(missing()) } else { Ok((TypeMeta::default(), Vec::new())) };
    }
    match json::decode(text.json, target) {
        Ok(decoded) if expected.is_named_by(&decoded.type_meta) => Ok((decoded.type_meta, decoded.problems)),
        // What is wrong with the kind is said before anything else, wherever in the text it stands.
        other => {
            let type_meta = named_kind(expected, text, needs_type)?;
            let decoded = other.map_err(unhandled)?;
            Ok((type_meta, decoded.problems))
        }
    }
}

/// What the text says it is, which fits what is expected.
fn named_kind(expected: &Expected, text: Text<'_>, needs_type: bool) -> Result<TypeMeta, ApiError> {
    let (text, body) = (String::from_utf8_lossy(text.json), text.sent);
    let type_meta = json::read_type_meta(&text).map_err(|error| {
        expected.unrecognized(&format!("couldn't get version/kind; json parse error: {error}"), body)
    })?;
    for (name, value) in [("Kind", &type_meta.kind), ("apiVersion", &type_meta.api_version)] {
        if needs_type && value.is_empty() {
            let error = format!("Object '{name}' is missing in '{}'", text.trim_end());
            return Err(expected.unrecognized(&error, body));
        }
    }
    if needs_type {
        expected.check_custom_type(&type_meta, &text)?;
    }
    expected.check_type(&type_meta, body)?;
    Ok(type_meta)
}

impl Expected {
    /// Whether a custom object is of the version and kind of its path: of these, upstream reads any.
    fn check_custom_type(&self, found: &TypeMeta, text: &str) -> Result<(), ApiError> {
        let own = self.api_version();
        if found.api_version != own {
            let version = &found.api_version;
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({own})"
            )));
        }
        if found.kind == self.kind {
            return Ok(());
        }
        let object = json::parse_value(text).unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(custom_kinds::of_other_kind(&self.group, &found.kind, &self.kind, name))
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether the body says that it is of this kind, leaving nothing out.
    fn is_named_by(&self, found: &TypeMeta) -> bool {
        let same_version = match found.api_version.split_once('/') {
            Some((group, version)) => !group.is_empty() && group == self.group && version == self.version,
            None => self.group.is_empty() && found.api_version == self.version,
        };
        same_version && found.kind == self.kind
    }

    /// Whether the body is of this kind; what it leaves out is taken from here.
    fn check_type(&self, found: &TypeMeta, body: &[u8]) -> Result<(), ApiError> {
        let (own, api_version) = (self.api_version(), found.api_version.as_str());
        let (same_kind, same_version) =
            (found.kind.is_empty() || found.kind == self.kind, api_version.is_empty() || api_version == own);
        if same_kind && same_version {
            return Ok(());
        }
        let (group, version) = match api_version.split_once('/') {
            _ if api_version.is_empty() => (self.group.as_str(), self.version.as_str()),
            Some((_, version)) if version.contains('/') => {
                let error = format!("unexpected GroupVersion string: {api_version}");
                return Err(self.unrecognized(&error, body));
            }
            Some(parts) => parts,
            None => ("", api_version),
        };
        let kind = if found.kind.is_empty() { &self.kind } else { &found.kind };
        let known = kinds::all().any(|rules| {
            let info = rules.info();
            info.kind == kind && info.group == group && info.version == version
        });
        Err(if !known {
            let scheme = if self.group == EXTENSIONS { EXTENSIONS_SCHEME } else { SCHEME };
            let error = format!("no kind {kind:?} is registered for version {api_version:?} in scheme {scheme:?}");
            self.unhandled(kind, version, &error)
        } else if same_version {
            let short = |group: &str| group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core").to_owned();
            let (from, to) = (format!("{version}.{kind}"), format!("{}.{}", short(&self.group), self.kind));
            self.unhandled(kind, version, &format!("converting ({from}) to ({to}): unknown conversion"))
        } else {
            ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({own})"
            ))
        })
    }

    fn unhandled(&self, kind: &str, version: &str, error: &str) -> ApiError {
        let text = format!("{kind} in version {version:?} cannot be handled as a {}: {error}", self.kind);
        ApiError::bad_request(text)
    }

    fn unrecognized(&self, error: &str, body: &[u8]) -> ApiError {
        let summary = summary(body);
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error} ({summary})",
            self.kind
        ))
    }
}

/// The start of a body, as errors show it.
fn summary(body: &[u8]) -> String {
    let shown = body.get(..SHOWN_BYTES).unwrap_or(body);
    let more = if body.len() > SHOWN_BYTES { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => format!("{}{more}", base::hex(shown)),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
