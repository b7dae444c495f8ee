//! What upstream's router asks of a request to a built-in place before any handler sees it: that the client takes what
//! the place can send, and that a patch is of a type that it reads. Its refusals differ in form from those of handlers,
//! and so does what it finds fitting: parameters are not looked at, and `application/*` fits nothing.

use api_machinery::status::{ApiError, ErrorDetails};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::content_type::PATCHES;

/// What a place can send.
pub(crate) type Produced = &'static [&'static str];

/// Objects and documents.
pub(crate) const DOCUMENTS: Produced = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Lists, which are watches too.
pub(crate) const LISTS: Produced = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Refuses clients that do not take what a place can send.
///
/// # Errors
/// 406.
pub(crate) fn require_accepted(headers: &HeaderMap, produced: Produced) -> Result<(), ApiError> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    let accept = accept.unwrap_or("*/*");
    if names(accept).any(|name| name == "*/*" || produced.contains(&name)) {
        return Ok(());
    }
    let text = format!("406: Not Acceptable\n\nAvailable representations: {}", produced.join(", "));
    Err(ApiError::not_acceptable(text).with_details(ErrorDetails::default()))
}

/// Refuses patches of types that no built-in place reads.
///
/// # Errors
/// 415.
pub(crate) fn require_patch(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if names(given).any(|name| PATCHES.iter().any(|(_, own)| *own == name)) {
        return Ok(());
    }
    Err(ApiError::unsupported_media_type("415: Unsupported Media Type").with_details(ErrorDetails::default()))
}

/// The media types of a header, without their parameters.
fn names(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(accept: &str, produced: Produced) -> Result<(), String> {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        require_accepted(&headers, produced).map_err(|error| {
            assert_eq!((error.code, error.details.is_some()), (406, true));
            error.message
        })
    }

    #[test]
    fn the_router_has_its_own_mind_of_what_fits() {
        let fitting = ["", "*/*", "application/json;stream=watch", "text/html, application/yaml;q=0", ";;;,*/*;q=0.1"];
        for accept in fitting {
            assert_eq!(accepting(accept, DOCUMENTS), Ok(()), "{accept}");
        }
        let refusal = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf";
        for accept in ["text/plain", "application/*", "nonsense", "application/cbor"] {
            assert_eq!(accepting(accept, DOCUMENTS), Err(refusal.to_owned()), "{accept}");
        }
        let lists = accepting("text/plain", LISTS).unwrap_err();
        assert_eq!(lists, format!("{refusal}, {}, {}", LISTS[3], LISTS[4]));
    }

    #[test]
    fn the_router_knows_the_types_of_patches() {
        let patch = |value: &str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value.parse().unwrap())]);
            require_patch(&headers).map_err(|error| (error.code, error.message))
        };
        assert_eq!(patch("application/merge-patch+json; charset=utf-8"), Ok(()));
        for unknown in ["application/json", "application/MERGE-PATCH+json", "", "application/apply-patch+cbor"] {
            assert_eq!(patch(unknown), Err((415, "415: Unsupported Media Type".to_owned())), "{unknown}");
        }
    }
}
