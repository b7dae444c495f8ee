//! Arithmetic. What does not fit is an error, never another number.

use crate::error::{EvalError, Out};
use crate::function::Args;
use crate::value::Value;

use super::joined;

type Run<'v> = Out<Value<'v>>;

fn int<'v>(value: Option<i64>) -> Run<'v> {
    value.map(Value::Int).ok_or(EvalError::Overflow)
}

fn uint<'v>(value: Option<u64>) -> Run<'v> {
    value.map(Value::Uint).ok_or(EvalError::UnsignedOverflow)
}

fn duration<'v>(value: Option<i64>) -> Run<'v> {
    value.map(Value::Duration).ok_or(EvalError::Overflow)
}

fn timestamp<'v>(value: Option<crate::Timestamp>) -> Run<'v> {
    value.map(Value::Timestamp).ok_or_else(|| EvalError::failed("timestamp overflow"))
}

pub(super) fn add<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match (args.get(0), args.get(1)) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::text([a.as_str(), b.as_str()].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::blob([a.as_bytes(), b.as_bytes()].concat())),
        (Value::List(a), Value::List(b)) => Ok(joined(a, b)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Timestamp(at), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(at)) => {
            timestamp(at.after(*by))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn subtract<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match (args.get(0), args.get(1)) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => duration(a.since(*b)),
        (Value::Timestamp(at), Value::Duration(by)) => timestamp(by.checked_neg().and_then(|by| at.after(by))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn multiply<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match (args.get(0), args.get(1)) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_mul(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_mul(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn divide<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match (args.get(0), args.get(1)) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::DivisionByZero),
        (Value::Int(a), Value::Int(b)) => int(a.checked_div(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_div(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn modulo<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match (args.get(0), args.get(1)) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::ModulusByZero),
        (Value::Int(a), Value::Int(b)) => int(a.checked_rem(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_rem(*b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn negate<'v>(args: &Args<'_, 'v>) -> Run<'v> {
    match args.get(0) {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        _ => Err(EvalError::NoSuchOverload),
    }
}
