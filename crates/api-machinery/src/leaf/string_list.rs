//! A list of strings under a name of its own.

use super::encoding::{Leaf, LeafType, same};
use crate::json::reader::{DecodeError, Reader};
use crate::json::writer::Writer;
use crate::leaf_field;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;

/// A named list of strings: a plain list in JSON, a message with `items = 1` in protobuf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringList(pub Vec<String>);

static STRING_LIST: LeafType =
    LeafType { name: "[]string", model: "", openapi_type: "array", openapi_format: "", doc: "A list of strings." };
leaf_field!(StringList, &STRING_LIST);

impl Leaf for StringList {
    fn leaf_type(&self) -> &'static LeafType {
        &STRING_LIST
    }
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        out.field(&self.0);
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        input.read_field(&mut self.0)
    }
    fn write_wire(&self, out: &mut Encoder) {
        for item in self.0.iter().rev() {
            out.bytes(1, item.as_bytes());
        }
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            if number == 1 {
                self.0.push(value.text()?);
            }
        }
        Ok(())
    }
}
