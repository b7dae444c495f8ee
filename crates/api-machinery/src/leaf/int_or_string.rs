//! A number or a string.

use super::encoding::{Leaf, LeafType, same};
use crate::intstr::IntOrString;
use crate::json::reader::{DecodeError, Reader, Token};
use crate::json::writer::Writer;
use crate::leaf_field;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;

static INT_OR_STRING: LeafType = LeafType {
    name: "intstr.IntOrString",
    model: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    openapi_type: "string",
    openapi_format: "int-or-string",
    doc: "A number, or a string such as a percentage or a port name.",
};
leaf_field!(IntOrString, &INT_OR_STRING);

impl Leaf for IntOrString {
    fn leaf_type(&self) -> &'static LeafType {
        &INT_OR_STRING
    }
    fn is_zero(&self) -> bool {
        *self == IntOrString::Int(0)
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        match self {
            IntOrString::Int(number) => out.int(i64::from(*number)),
            IntOrString::Str(text) => out.string(text),
        }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = match input.token()? {
            Token::Null => return Ok(()),
            Token::Str(text) => IntOrString::Str(text.into_owned()),
            Token::Number(text) => {
                let number = text.parse().map_err(|_| input.mismatch_number(text, "int32"))?;
                IntOrString::Int(number)
            }
            other => return Err(input.mismatch(other.kind(), "int32")),
        };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        let (kind, number, text) = match self {
            IntOrString::Int(number) => (0, *number, ""),
            IntOrString::Str(text) => (1, 0, text.as_str()),
        };
        out.bytes(3, text.as_bytes());
        out.int(2, i64::from(number));
        out.int(1, kind);
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        let (mut kind, mut number, mut text) = (0, 0, String::new());
        while let Some((field, value)) = input.next()? {
            match field {
                1 => kind = value.int()?,
                2 => number = value.int32()?,
                3 => text = value.text()?,
                _ => {}
            }
        }
        *self = if kind == 0 { IntOrString::Int(number) } else { IntOrString::Str(text) };
        Ok(())
    }
}
