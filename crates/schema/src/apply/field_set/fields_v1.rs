//! The text of a set: `FieldsV1`, whose members are steps and a dot for the place itself.

use api_machinery::json::{self, DecodeError, Reader, Token, Writer};
use serde_json::Value;

use super::{Entry, FieldSet};
use crate::apply::path::Element;

/// The member that says that a place with others below it is itself in the set.
pub(in crate::apply) const OWN_DOT: &str = r#"".":{}"#;

/// A text that is no field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error decoding set: {0}")]
pub struct FieldSetError(pub String);

impl Entry {
    /// As it is written: without a dot, an entry with nothing below it is itself in the set, also where that is only what
    /// is not known.
    fn read(has_dot: bool, below: FieldSet) -> Self {
        Self { owned: has_dot || below.is_empty(), below }
    }
}

impl FieldSet {
    /// What is written of a set without places.
    pub const NOTHING: &str = "{}";

    /// The `FieldsV1` form, as text: its order of keys is not that of ordinary maps.
    pub fn to_fields_v1(&self) -> String {
        let mut out = Writer::default();
        self.write(&mut out, false);
        out.into_string()
    }

    pub(in crate::apply) fn write(&self, out: &mut Writer, owned: bool) {
        out.symbol('{');
        let mut first = true;
        if owned && !self.is_empty() {
            out.raw(OWN_DOT);
            first = false;
        }
        for (step, entry) in &self.entries {
            if !std::mem::take(&mut first) {
                out.symbol(',');
            }
            step.write_key(out);
            entry.below.write(out, entry.owned);
        }
        out.symbol('}');
    }

    /// Reads the `FieldsV1` form.
    ///
    /// # Errors
    /// Names what is no part of a set.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldSetError> {
        if !value.is_object() {
            return Err(FieldSetError("expected an object".into()));
        }
        Self::from_fields_v1_text(&json::encode_value(value))
    }

    /// Reads the `FieldsV1` form from its text; what is no JSON, or null, says nothing.
    ///
    /// # Errors
    /// As [`from_fields_v1`](Self::from_fields_v1).
    pub fn from_fields_v1_text(text: &str) -> Result<Self, FieldSetError> {
        let mut reader = Reader::new(text);
        match read_set(&mut reader).and_then(|set| Ok(reader.end().map(|()| set)?)) {
            Ok(set) => Ok(set.unwrap_or_default()),
            Err(ReadError::NoJson) => Ok(Self::default()),
            Err(ReadError::Set(error)) => Err(error),
        }
    }
}

/// Why a text is no field set.
enum ReadError {
    NoJson,
    Set(FieldSetError),
}

impl From<DecodeError> for ReadError {
    fn from(_: DecodeError) -> Self {
        Self::NoJson
    }
}

/// The set that stands next; nothing for null.
fn read_set(reader: &mut Reader<'_>) -> Result<Option<FieldSet>, ReadError> {
    match reader.token()? {
        Token::Object => read_entries(reader).map(|(_, set)| Some(set)),
        Token::Null => Ok(None),
        _ => Err(ReadError::Set(FieldSetError("expected an object".into()))),
    }
}

/// The entries of an object that has begun, and whether a dot is among them.
fn read_entries(reader: &mut Reader<'_>) -> Result<(bool, FieldSet), ReadError> {
    let (mut first, mut has_dot, mut entries) = (true, false, Vec::new());
    while let Some(key) = reader.key(&mut first)? {
        if key == "." {
            has_dot = true;
            reader.skip_value()?;
            continue;
        }
        match read_step(&key).map_err(ReadError::Set)? {
            None => reader.skip_value()?,
            Some(step) => {
                let Token::Object = reader.token()? else { return Err(ReadError::Set(nothing_below(&key))) };
                let (has_dot, below) = read_entries(reader)?;
                entries.push((step, Entry::read(has_dot, below)));
            }
        }
    }
    Ok((has_dot, entries.into_iter().collect()))
}

fn nothing_below(key: &str) -> FieldSetError {
    FieldSetError(format!("expected an object below {key}"))
}

impl Element {
    /// Writes the step as a key of the `FieldsV1` form.
    pub(in crate::apply) fn write_key(&self, out: &mut Writer) {
        match self {
            Self::Field(name) => out.prefixed_key("f:", name),
            Self::Key(members) => {
                let mut text = Writer::default();
                text.object_of(members.iter().map(|(name, value)| (name.as_str(), value)));
                out.prefixed_key("k:", &text.into_string());
            }
            Self::Value(value) => out.prefixed_key("v:", &json::encode_value(value)),
            Self::Index(index) => out.prefixed_key("i:", &index.to_string()),
        }
    }
}

/// One key of the `FieldsV1` form; `None` for kinds of steps that are not known.
fn read_step(key: &str) -> Result<Option<Element>, FieldSetError> {
    let bad = |problem: String| FieldSetError(format!("{problem}: {key}"));
    let (prefix, text) = key.split_once(':').ok_or_else(|| bad("missing colon".into()))?;
    let parse = || json::parse_value(text).map_err(|error| bad(error.to_string()));
    match prefix {
        "f" => Ok(Some(Element::field(text))),
        "v" => Ok(Some(Element::value(parse()?))),
        "k" => match parse()? {
            Value::Object(members) => Ok(Some(Element::key(members))),
            _ => Err(bad("expected an object".into())),
        },
        "i" => text.parse().map(|index| Some(Element::Index(index))).map_err(|_| bad("expected a number".into())),
        _ if prefix.len() == 1 => Ok(None),
        _ => Err(bad("unknown prefix".into())),
    }
}
