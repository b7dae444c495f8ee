//! The `Content-Type` of bodies and patches.

use api_machinery::status::ApiError;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

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
}

pub(super) const PATCHES: [(PatchType, &str); 4] = [
    (PatchType::Json, "application/json-patch+json"),
    (PatchType::Merge, "application/merge-patch+json"),
    (PatchType::Strategic, "application/strategic-merge-patch+json"),
    (PatchType::Apply, "application/apply-patch+yaml"),
];

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
pub(crate) fn body_type(headers: &HeaderMap, is_custom: bool) -> Result<MediaType, ApiError> {
    let known = || MediaType::ALL.into_iter().filter(move |media| !(is_custom && *media == MediaType::Protobuf));
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
pub(crate) fn patch_type(headers: &HeaderMap, is_custom: bool) -> Result<PatchType, ApiError> {
    let known = || PATCHES.into_iter().filter(move |(patch, _)| !(is_custom && *patch == PatchType::Strategic));
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
        assert_eq!(body_type(&HeaderMap::new(), false), Ok(MediaType::Json));
        assert_eq!(body_type(&headers("application/json; charset=utf-8"), false), Ok(MediaType::Json));
        assert_eq!(body_type(&headers("application/vnd.kubernetes.protobuf"), false), Ok(MediaType::Protobuf));
        let error = body_type(&headers("application/vnd.kubernetes.protobuf"), true).unwrap_err();
        assert!(error.message.ends_with("include: application/json, application/yaml"), "{}", error.message);
        assert_eq!(body_type(&headers("text/plain"), false).unwrap_err().code, 415);
        assert_eq!(patch_type(&headers("application/apply-patch+yaml; x=y"), false), Ok(PatchType::Apply));
        let strategic = headers("application/strategic-merge-patch+json");
        assert_eq!(patch_type(&strategic, false), Ok(PatchType::Strategic));
        let error = patch_type(&strategic, true).unwrap_err();
        assert!(!error.message.contains("strategic"), "{}", error.message);
        assert_eq!(patch_type(&HeaderMap::new(), false).unwrap_err().code, 415);
    }
}
