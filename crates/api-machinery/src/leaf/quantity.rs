//! Quantities: their text in both encodings.

use serde_json::Value;

use super::encoding::{Leaf, LeafType, same};
use crate::json::reader::{DecodeError, Reader, Token};
use crate::json::writer::Writer;
use crate::leaf_field;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;
use crate::quantity::Quantity;

static QUANTITY: LeafType = LeafType {
    name: "resource.Quantity",
    model: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    openapi_type: "string",
    openapi_format: "",
    doc: "A fixed-point number with a decimal or binary suffix, such as 500m or 1Gi.",
};
leaf_field!(Quantity, &QUANTITY);

impl Leaf for Quantity {
    fn leaf_type(&self) -> &'static LeafType {
        &QUANTITY
    }
    fn is_zero(&self) -> bool {
        Quantity::is_zero(self)
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        out.string(&self.text());
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let text = match input.token()? {
            Token::Null => None,
            Token::Str(text) => Some(text),
            Token::Number(text) => Some(text.into()),
            // Upstream tries to understand whatever stands there, so that nothing else is told apart.
            _ => Some("[]".into()),
        };
        *self = match text {
            Some(text) => Quantity::parse(text.trim()).map_err(|error| input.leaf_error(&error))?,
            None => Quantity::default(),
        };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        out.bytes(1, self.text().as_bytes());
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            if number == 1 {
                *self = Quantity::parse(&value.text()?).map_err(|error| WireError::Leaf(error.to_string()))?;
            }
        }
        Ok(())
    }
    fn to_value(&self) -> Value {
        Value::String(self.text().into_owned())
    }
}
