//! Types with an encoding of their own: times, quantities, int-or-string, raw JSON and the like.

use std::any::Any;

use crate::intstr::IntOrString;
use crate::json::{DecodeError, Reader, Token, Writer};
use crate::protobuf::{Decoder, Encoder, WireError};
use crate::quantity::Quantity;
use crate::reflect::Shape;
use crate::time::{GoDuration, MicroTime, Time};
use crate::value::Value;

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

/// Writes the [`Field`] implementation of a leaf.
#[macro_export]
macro_rules! leaf_field {
    ($type:ty, $leaf_type:expr) => {
        impl $crate::reflect::Field for $type {
            fn view(&self) -> $crate::reflect::View<'_> {
                $crate::reflect::View::Leaf(self)
            }
            fn view_mut(&mut self) -> $crate::reflect::ViewMut<'_> {
                $crate::reflect::ViewMut::Leaf(self)
            }
            fn shape() -> $crate::reflect::Shape {
                $crate::reflect::Shape::Leaf($leaf_type)
            }
        }
    };
}

/// Equality of leaves by the type's own `PartialEq`.
pub fn same<T: Leaf + PartialEq>(one: &T, other: &dyn Leaf) -> bool {
    other.downcast_ref::<T>().is_some_and(|other| one == other)
}

static TIME: LeafType = LeafType {
    name: "v1.Time",
    model: "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    openapi_type: "string",
    openapi_format: "date-time",
    doc: "A moment as RFC 3339 text with whole seconds.",
};
leaf_field!(Time, &TIME);

impl Leaf for Time {
    fn leaf_type(&self) -> &'static LeafType {
        &TIME
    }
    fn is_zero(&self) -> bool {
        Time::is_zero(*self)
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        if Time::is_zero(*self) { out.null() } else { out.string(&self.to_string()) }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = match input.read_text()? {
            Some(text) => Time::parse(&text).map_err(|error| input.leaf_error(&error))?,
            None => Time::default(),
        };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        if let Some(seconds) = self.unix_seconds() {
            out.int(2, 0);
            out.int(1, seconds);
        }
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        let (seconds, _nanos, present) = read_timestamp(input)?;
        *self = if present { Time::from_unix_seconds(seconds) } else { Time::default() };
        Ok(())
    }
    fn to_value(&self) -> Value {
        if Time::is_zero(*self) { Value::Null } else { Value::String(self.to_string()) }
    }
}

static MICRO_TIME: LeafType = LeafType {
    name: "v1.MicroTime",
    model: "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    openapi_type: "string",
    openapi_format: "date-time",
    doc: "A moment as RFC 3339 text with microseconds.",
};
leaf_field!(MicroTime, &MICRO_TIME);

impl Leaf for MicroTime {
    fn leaf_type(&self) -> &'static LeafType {
        &MICRO_TIME
    }
    fn is_zero(&self) -> bool {
        MicroTime::is_zero(*self)
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        if MicroTime::is_zero(*self) { out.null() } else { out.string(&self.to_string()) }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = match input.read_text()? {
            Some(text) => MicroTime::parse(&text).map_err(|error| input.leaf_error(&error))?,
            None => MicroTime::default(),
        };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        if let Some(micros) = self.unix_micros() {
            out.int(2, micros.rem_euclid(1_000_000) * 1_000);
            out.int(1, micros.div_euclid(1_000_000));
        }
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        let (seconds, nanos, present) = read_timestamp(input)?;
        *self = if present {
            MicroTime::from_unix_micros(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000))
        } else {
            MicroTime::default()
        };
        Ok(())
    }
}

/// Seconds, nanoseconds and whether any member was there, of a `Timestamp` message.
fn read_timestamp(input: &mut Decoder<'_>) -> Result<(i64, i64, bool), WireError> {
    let (mut seconds, mut nanos, mut present) = (0, 0, false);
    while let Some((number, value)) = input.next()? {
        present = true;
        match number {
            1 => seconds = value.int()?,
            2 => nanos = value.int()?,
            _ => {}
        }
    }
    Ok((seconds, nanos, present))
}

static DURATION: LeafType = LeafType {
    name: "v1.Duration",
    model: "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
    openapi_type: "string",
    openapi_format: "",
    doc: "A length of time as text such as 1h30m0s.",
};
leaf_field!(GoDuration, &DURATION);

impl Leaf for GoDuration {
    fn leaf_type(&self) -> &'static LeafType {
        &DURATION
    }
    fn is_zero(&self) -> bool {
        self.nanos() == 0
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        out.string(&self.to_string());
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        if let Some(text) = input.read_text()? {
            *self = GoDuration::parse(&text).map_err(|error| input.leaf_error(&error))?;
        }
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        out.int(1, self.nanos());
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            if number == 1 {
                *self = GoDuration::from_nanos(value.int()?);
            }
        }
        Ok(())
    }
}

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
                let number = text.parse().map_err(|_| input.mismatch_number(text, Shape::Int32))?;
                IntOrString::Int(number)
            }
            other => return Err(input.mismatch(other.kind(), Shape::Int32)),
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
        crate::json::parse_value(&self.0).unwrap_or_default()
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
        if self.0.is_empty() { out.null() } else { out.raw(&self.0) }
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
                crate::json::check(&text).map_err(|error| WireError::Leaf(error.to_string()))?;
                self.0 = text.into();
            }
        }
        Ok(())
    }
    fn to_value(&self) -> Value {
        self.value()
    }
}

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
