//! JSON, straight between bytes and objects, by the tables of [`crate::reflect`].
//!
//! Reading follows Go's rules as upstream shows them: names are case-sensitive, the last of several equal names wins,
//! unknown names are dropped; both are reported where strictness is asked for. Nesting is bounded.

mod decode;
mod document;
mod encode;
pub(crate) mod reader;
pub(crate) mod writer;

pub use decode::read_type_meta;
pub use document::{Decoded, MAX_DEPTH, MAX_PROBLEMS, Problems, TypeMeta};
pub use reader::{DecodeError, Reader, Token};
pub use writer::Writer;

use std::borrow::Cow;

use serde_json::Value;

use crate::reflect::Reflect;

/// Decodes a document into `target`, which should be a default value.
///
/// # Errors
/// When the bytes are not JSON or do not fit the type; upstream's wording.
pub fn decode(bytes: &[u8], target: &mut dyn Reflect) -> Result<Decoded, DecodeError> {
    // Almost all texts are valid, and checking that is faster than looking for what is not.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let mut reader = Reader::new(&text).strict();
    reader.read_struct(target)?;
    reader.end()?;
    Ok(reader.into_decoded())
}

/// Whether the text is JSON.
///
/// # Errors
/// When it is not, in the words of [`parse_value`].
pub fn check(text: &str) -> Result<(), DecodeError> {
    let mut reader = Reader::new(text);
    reader.skip_value()?;
    reader.end()
}

/// The document as a free-form value.
///
/// # Errors
/// When the text is not JSON.
pub fn parse_value(text: &str) -> Result<Value, DecodeError> {
    parse_value_strict(text).map(|(value, _)| value)
}

/// The document as a free-form value, with the duplicate names that it held.
///
/// # Errors
/// When the text is not JSON.
pub fn parse_value_strict(text: &str) -> Result<(Value, Problems), DecodeError> {
    let mut reader = Reader::new(text).strict();
    let value = reader.read_value()?;
    reader.end()?;
    Ok((value, reader.into_decoded().problems))
}

/// The struct as JSON text.
#[must_use]
pub fn encode(value: &dyn Reflect) -> String {
    let mut out = Writer::default();
    out.structure(value);
    out.into_string()
}

/// The struct as JSON text for logs, panics and the like: fields that are marked `secret` only show that they are set.
#[must_use]
pub fn encode_redacted(value: &dyn Reflect) -> String {
    let mut out = Writer::redacting();
    out.structure(value);
    out.into_string()
}

/// The object as clients are shown it: it starts with `kind` and `apiVersion`, and so do kinds of the core group within.
#[must_use]
pub(crate) fn encode_object(kind: &str, api_version: &str, value: &dyn Reflect) -> String {
    let mut out = Writer::of_object();
    out.typed_structure(kind, api_version, value);
    out.into_string()
}

/// The object as clients are shown it in a list, which says what its items are.
#[must_use]
pub(crate) fn encode_item(value: &dyn Reflect) -> String {
    let mut out = Writer::of_object();
    out.structure(value);
    out.into_string()
}

/// The struct as JSON text that starts with `kind` and `apiVersion`.
#[must_use]
pub fn encode_typed(kind: &str, api_version: &str, value: &dyn Reflect) -> String {
    let mut out = Writer::default();
    out.typed_structure(kind, api_version, value);
    out.into_string()
}

/// The value as JSON text, written as upstream writes it.
#[must_use]
pub fn encode_value(value: &Value) -> String {
    let mut out = Writer::default();
    out.value(value);
    out.into_string()
}

/// Padded standard base64, as bytes are written.
#[must_use]
pub fn base64_text(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests;
