//! The `Content-Type` of bodies and patches.

use api_machinery::status::ApiError;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::Forms;
use super::media_type::MediaType;

/// The kind of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Upstream's own, by the kind's merge keys.
    Strategic,
    /// Server-side apply.
    Apply,
    /// Server-side apply of CBOR.
    ApplyCbor,
}

impl PatchType {
    /// Whether it is server-side apply.
    pub(crate) fn is_apply(self) -> bool {
        matches!(self, Self::Apply | Self::ApplyCbor)
    }
}

const PATCHES: [(PatchType, &str); 5] = [
    (PatchType::Json, "application/json-patch+json"),
    (PatchType::Merge, "application/merge-patch+json"),
    (PatchType::Strategic, "application/strategic-merge-patch+json"),
    (PatchType::Apply, "application/apply-patch+yaml"),
    (PatchType::ApplyCbor, "application/apply-patch+cbor"),
];

/// The patches that are read, and what they are called.
pub(super) fn patches(forms: Forms) -> impl Iterator<Item = (PatchType, &'static str)> {
    PATCHES.into_iter().filter(move |(patch, _)| forms == Forms::WithCbor || *patch != PatchType::ApplyCbor)
}

fn unknown<'a>(accepted: impl Iterator<Item = &'a str>) -> ApiError {
    let list = accepted.collect::<Vec<_>>().join(", ");
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {list}"
    ))
}

/// The form of a body; JSON when the client does not say.
///
/// # Errors
/// 415.
pub(crate) fn body_type(headers: &HeaderMap, forms: Forms, is_custom: bool) -> Result<MediaType, ApiError> {
    let known = || forms.media_types().filter(move |media| !(is_custom && *media == MediaType::Protobuf));
    let refusal = || unknown(known().map(MediaType::name));
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(MediaType::Json) };
    let value = value.to_str().map_err(|_| refusal())?;
    let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if name.is_empty() && value.trim().is_empty() {
        return Ok(MediaType::Json);
    }
    known().find(|media| media.name() == name).ok_or_else(refusal)
}

/// The kind of a patch; custom kinds have no strategic one.
///
/// # Errors
/// 415.
pub(crate) fn patch_type(headers: &HeaderMap, forms: Forms, is_custom: bool) -> Result<PatchType, ApiError> {
    let known = || patches(forms).filter(move |(patch, _)| !(is_custom && *patch == PatchType::Strategic));
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = match value.split_once(';') {
        Some((name, _)) if !name.is_empty() => name.trim_end(),
        _ => value,
    };
    known().find(|(_, own)| *own == name).map(|(patch, _)| patch).ok_or_else(|| unknown(known().map(|(_, own)| own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, value.parse().unwrap())])
    }

    #[test]
    fn bodies_and_patches() {
        assert_eq!(body_type(&HeaderMap::new(), Forms::Usual, false), Ok(MediaType::Json));
        assert_eq!(body_type(&headers("application/json; charset=utf-8"), Forms::Usual, false), Ok(MediaType::Json));
        assert_eq!(
            body_type(&headers("application/vnd.kubernetes.protobuf"), Forms::Usual, false),
            Ok(MediaType::Protobuf)
        );
        let error = body_type(&headers("application/vnd.kubernetes.protobuf"), Forms::Usual, true).unwrap_err();
        assert!(error.message.ends_with("include: application/json, application/yaml"), "{}", error.message);
        assert_eq!(body_type(&headers("text/plain"), Forms::Usual, false).unwrap_err().code, 415);
        assert_eq!(
            patch_type(&headers("application/apply-patch+yaml; x=y"), Forms::Usual, false),
            Ok(PatchType::Apply)
        );
        let strategic = headers("application/strategic-merge-patch+json");
        assert_eq!(patch_type(&strategic, Forms::Usual, false), Ok(PatchType::Strategic));
        let error = patch_type(&strategic, Forms::Usual, true).unwrap_err();
        assert!(!error.message.contains("strategic"), "{}", error.message);
        assert_eq!(patch_type(&HeaderMap::new(), Forms::Usual, false).unwrap_err().code, 415);
    }

    #[test]
    fn cbor_is_read_where_it_is_spoken() {
        let (body, patch) = (headers("application/cbor"), headers("application/apply-patch+cbor"));
        assert_eq!(body_type(&body, Forms::WithCbor, true), Ok(MediaType::Cbor));
        assert_eq!(patch_type(&patch, Forms::WithCbor, true), Ok(PatchType::ApplyCbor));
        for error in [body_type(&body, Forms::Usual, false).err(), patch_type(&patch, Forms::Usual, false).err()] {
            let error = error.expect("a refusal");
            assert!(error.code == 415 && !error.message.contains("cbor"), "{}", error.message);
        }
        let error = body_type(&headers("text/plain"), Forms::WithCbor, true).unwrap_err();
        let listed = "include: application/json, application/yaml, application/cbor";
        assert!(error.message.ends_with(listed), "{}", error.message);
    }
}
