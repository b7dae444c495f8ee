//! Conversions between types.

use crate::error::{EvalError, Out};
use crate::function::Args;
use crate::library::print_double;
use crate::time::{self, Timestamp};
use crate::value::Value;

type Run<'v> = Out<Value<'v>>;

/// Doubles from here on are no integers; upstream leaves the last one out, which no double tells from the next.
const INT_END: f64 = 9_223_372_036_854_775_807.0;
const UINT_END: f64 = 18_446_744_073_709_551_615.0;

fn invalid<'v>(text: &str, to: &str) -> Run<'v> {
    Err(EvalError::failed(format!("type conversion error from 'string' to '{to}': {text}")))
}

pub(super) fn to_bool<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            text => invalid(text, "bool"),
        },
        other => Ok(other.clone()),
    }
}

pub(super) fn to_bytes<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::String(text) => Ok(Value::blob(text.as_str().as_bytes())),
        other => Ok(other.clone()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
pub(super) fn to_double<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => match text.as_str().parse() {
            Ok(value) => Ok(Value::Double(value)),
            Err(_) => invalid(text.as_str(), "double"),
        },
        other => Ok(other.clone()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range was looked at")]
pub(super) fn to_int<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| EvalError::Overflow),
        Value::Double(value) if *value > -INT_END && *value < INT_END => Ok(Value::Int(*value as i64)),
        Value::Double(_) => Err(EvalError::Overflow),
        Value::String(text) => match text.as_str().parse() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => invalid(text.as_str(), "int"),
        },
        Value::Timestamp(at) => Ok(Value::Int(at.seconds())),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        other => Ok(other.clone()),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was looked at")]
pub(super) fn to_uint<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| EvalError::UnsignedOverflow),
        Value::Double(value) if *value >= 0.0 && *value < UINT_END => Ok(Value::Uint(*value as u64)),
        Value::Double(_) => Err(EvalError::UnsignedOverflow),
        Value::String(text) => match text.as_str().parse() {
            Ok(value) => Ok(Value::Uint(value)),
            Err(_) => invalid(text.as_str(), "uint"),
        },
        other => Ok(other.clone()),
    }
}

pub(super) fn to_string<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Bool(value) => Ok(Value::text(value.to_string())),
        Value::Int(value) => Ok(Value::text(value.to_string())),
        Value::Uint(value) => Ok(Value::text(value.to_string())),
        Value::Double(value) => Ok(Value::text(print_double(*value))),
        Value::Timestamp(at) => Ok(Value::text(at.to_string())),
        Value::Duration(nanos) => Ok(Value::text(time::print_duration(*nanos))),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes.as_bytes()) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err(EvalError::failed("invalid UTF-8 in bytes, cannot convert to string")),
        },
        other => Ok(other.clone()),
    }
}

pub(super) fn to_timestamp<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Int(seconds) => {
            let at = Timestamp::new(*seconds, 0).map(Value::Timestamp);
            at.ok_or_else(|| EvalError::failed("timestamp overflow"))
        }
        Value::String(text) => match Timestamp::parse(text.as_str()) {
            Some(at) => Ok(Value::Timestamp(at)),
            None => invalid(text.as_str(), "google.protobuf.Timestamp"),
        },
        other => Ok(other.clone()),
    }
}

pub(super) fn to_duration<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Int(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => match time::parse_duration(text.as_str()) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => invalid(text.as_str(), "google.protobuf.Duration"),
        },
        other => Ok(other.clone()),
    }
}

pub(super) fn to_type<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    Ok(Value::Type(args.get(0).type_of()))
}
