//! Patches: what to change, in one of four forms.

use api_machinery::cbor;
use api_machinery::json::encode_value;
use api_machinery::value::Value;

use crate::request::APPLY_CBOR;

/// A change to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A list of operations (RFC 6902).
    Json(Value),
    /// A partial object; lists are replaced, null removes (RFC 7386).
    Merge(Value),
    /// A partial object that is merged by the kind's merge keys. Built-in kinds only.
    Strategic(Value),
    /// The whole intent of a field manager; needs a field manager in the options.
    Apply(Value),
}

impl Patch {
    /// The patch as a body, with the media type of it. What is applied may be CBOR.
    pub(crate) fn encode(&self, as_cbor: bool) -> (&'static str, Vec<u8>) {
        match self {
            Self::Apply(value) if as_cbor => (APPLY_CBOR, cbor::encode_value(value)),
            _ => (self.media_type(), self.body()),
        }
    }

    fn media_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json-patch+json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Apply(_) => "application/apply-patch+yaml",
        }
    }

    /// JSON is also YAML, so one encoding does for all.
    fn body(&self) -> Vec<u8> {
        let (Self::Json(value) | Self::Merge(value) | Self::Strategic(value) | Self::Apply(value)) = self;
        encode_value(value).into_bytes()
    }
}
