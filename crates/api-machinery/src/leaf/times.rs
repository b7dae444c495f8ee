//! Moments and lengths of time: texts in JSON, messages of numbers in protobuf.

use serde_json::Value;

use super::encoding::{Leaf, LeafType, same};
use crate::json::reader::{DecodeError, Reader};
use crate::json::writer::Writer;
use crate::leaf_field;
use crate::protobuf::decoder::{Decoder, WireError};
use crate::protobuf::encoder::Encoder;
use crate::time::{GoDuration, MicroTime, Time};

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
