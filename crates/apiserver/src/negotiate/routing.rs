//! What upstream's router asks of a request to a built-in place before any handler sees it: that the client takes what
//! the place can send, and that a patch is of a type that it reads. Its refusals differ in form from those of handlers,
//! and so does what it finds fitting: parameters are not looked at, and `application/*` fits nothing.

use api_machinery::status::{ApiError, ErrorDetails};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::Forms;
use super::accept::CBOR_SEQUENCE;
use super::content_type::patches;

/// What a place can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Produced {
    /// Objects and documents.
    Documents,
    /// Lists, which are watches too.
    Lists,
    /// A document of one form.
    Only(&'static str),
}

impl Produced {
    fn names(self, forms: Forms) -> Vec<&'static str> {
        let mut names: Vec<_> = match self {
            Self::Documents | Self::Lists => forms.media_types().map(|media| media.name()).collect(),
            Self::Only(name) => vec![name],
        };
        if self == Self::Lists {
            names.extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
            names.extend((forms == Forms::WithCbor).then_some(CBOR_SEQUENCE));
        }
        names
    }
}

/// Refuses clients that do not take what a place can send.
///
/// # Errors
/// 406.
pub(crate) fn require_accepted(headers: &HeaderMap, forms: Forms, produced: Produced) -> Result<(), ApiError> {
    let produced = produced.names(forms);
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
pub(crate) fn require_patch(headers: &HeaderMap, forms: Forms) -> Result<(), ApiError> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if names(given).any(|name| patches(forms).any(|(_, own)| own == name)) {
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
        require_accepted(&headers, Forms::Usual, produced).map_err(|error| {
            assert_eq!((error.code, error.details.is_some()), (406, true));
            error.message
        })
    }

    #[test]
    fn the_router_has_its_own_mind_of_what_fits() {
        let fitting = ["", "*/*", "application/json;stream=watch", "text/html, application/yaml;q=0", ";;;,*/*;q=0.1"];
        for accept in fitting {
            assert_eq!(accepting(accept, Produced::Documents), Ok(()), "{accept}");
        }
        let refusal = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf";
        for accept in ["text/plain", "application/*", "nonsense", "application/cbor"] {
            assert_eq!(accepting(accept, Produced::Documents), Err(refusal.to_owned()), "{accept}");
        }
        let lists = accepting("text/plain", Produced::Lists).unwrap_err();
        let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(lists, format!("{refusal}, {streams}"));
        let headers = HeaderMap::from_iter([(ACCEPT, "application/cbor".parse().unwrap())]);
        assert_eq!(require_accepted(&headers, Forms::WithCbor, Produced::Lists), Ok(()));
        let names = Produced::Lists.names(Forms::WithCbor);
        assert_eq!((names[3], names[6]), ("application/cbor", "application/cbor-seq"));
    }

    #[test]
    fn the_router_knows_the_types_of_patches() {
        let patch = |value: &str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value.parse().unwrap())]);
            require_patch(&headers, Forms::Usual).map_err(|error| (error.code, error.message))
        };
        assert_eq!(patch("application/merge-patch+json; charset=utf-8"), Ok(()));
        for unknown in ["application/json", "application/MERGE-PATCH+json", "", "application/apply-patch+cbor"] {
            assert_eq!(patch(unknown), Err((415, "415: Unsupported Media Type".to_owned())), "{unknown}");
        }
    }
}
