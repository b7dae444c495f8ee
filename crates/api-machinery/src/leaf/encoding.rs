//! What a type with an encoding of its own says of itself, and does.

use std::any::Any;

use serde_json::Value;

use crate::json::reader::{DecodeError, Reader};
use crate::json::writer::Writer;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;

/// What schemas and errors say of a leaf.
pub struct LeafType {
    /// Its name in decode errors, such as `v1.Time`.
    pub name: &'static str,
    /// Its `OpenAPI` name, empty where it has no definition of its own.
    pub model: &'static str,
    /// `OpenAPI` type; empty for anything.
    pub openapi_type: &'static str,
    /// `OpenAPI` format; may be empty.
    pub openapi_format: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// A value with an encoding of its own.
pub trait Leaf: Any + Send + Sync {
    /// What schemas and errors say of it.
    fn leaf_type(&self) -> &'static LeafType;
    /// Whether it is the zero value.
    fn is_zero(&self) -> bool;
    /// Whether `other` is of the same type and means the same.
    fn equal(&self, other: &dyn Leaf) -> bool;
    /// Writes it as JSON.
    fn write_json(&self, out: &mut Writer);
    /// Reads it from JSON.
    ///
    /// # Errors
    /// When the JSON is of another type or cannot be understood.
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError>;
    /// Writes the members of its protobuf message, last first.
    fn write_wire(&self, out: &mut Encoder);
    /// Reads its protobuf message.
    ///
    /// # Errors
    /// When the bytes are not such a message.
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError>;

    /// The value that its JSON stands for.
    fn to_value(&self) -> Value {
        let mut out = Writer::default();
        self.write_json(&mut out);
        serde_json::from_str(&out.into_string()).unwrap_or_default()
    }
}

impl dyn Leaf {
    /// The leaf as its own type, if it is a `T`.
    #[must_use]
    pub fn downcast_ref<T: Leaf>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Equality of leaves by the type's own `PartialEq`.
pub fn same<T: Leaf + PartialEq>(one: &T, other: &dyn Leaf) -> bool {
    other.downcast_ref::<T>().is_some_and(|other| one == other)
}
