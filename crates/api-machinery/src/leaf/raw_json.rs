//! JSON as it came.

use serde_json::Value;

use super::encoding::{Leaf, LeafType};
use crate::json;
use crate::json::reader::{DecodeError, Reader};
use crate::json::writer::Writer;
use crate::leaf_field;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;

/// JSON text that is kept as it came, without spaces: extension objects and field sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Keeps `value` as text.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let mut out = Writer::default();
        out.value(value);
        Self(out.into_string().into())
    }

    /// Keeps JSON text that is known to be valid.
    #[must_use]
    pub fn from_text(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text; empty when nothing was set.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that the text stands for; null when nothing was set or the text is not JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        json::parse_value(&self.0).unwrap_or_default()
    }
}

static RAW: LeafType = LeafType {
    name: "runtime.RawExtension",
    model: "io.k8s.apimachinery.pkg.runtime.RawExtension",
    openapi_type: "object",
    openapi_format: "",
    doc: "Any JSON value.",
};
leaf_field!(RawJson, &RAW);

impl Leaf for RawJson {
    fn leaf_type(&self) -> &'static LeafType {
        &RAW
    }
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other || self.value() == other.value())
    }
    fn write_json(&self, out: &mut Writer) {
        if self.0.is_empty() { out.null() } else { out.compacted(&self.0) }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let text = input.read_raw()?;
        self.0 = if text == "null" { Box::default() } else { text.into() };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        if !self.0.is_empty() {
            out.bytes(1, self.0.as_bytes());
        }
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            if number == 1 {
                let text = value.text()?;
                json::check(&text).map_err(|error| WireError::Leaf(error.to_string()))?;
                self.0 = text.into();
            }
        }
        Ok(())
    }
    fn to_value(&self) -> Value {
        self.value()
    }
}
