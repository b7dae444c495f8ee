//! Mathematics: extremes, rounding, signs, bits.

use std::cmp::Ordering;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::value::Value;

use super::Library;

/// Mathematics.
pub const MATH: Library =
    Library { name: "math", functions: FUNCTIONS, types: &[], macros: |macros| macros.math = true };

const ONE: Cost = Cost::Fixed(1);

/// The rows of one of the extremes.
macro_rules! extremes {
    ($id:literal, $name:literal, $order:expr) => {
        [
            overload(concat!($id, "_double"), concat!($name, "(double) -> double"), ONE, |a| Ok(a.get(0).clone())),
            overload(concat!($id, "_int"), concat!($name, "(int) -> int"), ONE, |a| Ok(a.get(0).clone())),
            overload(concat!($id, "_uint"), concat!($name, "(uint) -> uint"), ONE, |a| Ok(a.get(0).clone())),
            overload(concat!($id, "_double_double"), concat!($name, "(double, double) -> double"), ONE, |a| {
                pick(a, $order)
            }),
            overload(concat!($id, "_int_int"), concat!($name, "(int, int) -> int"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_uint_uint"), concat!($name, "(uint, uint) -> uint"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_int_uint"), concat!($name, "(int, uint) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_int_double"), concat!($name, "(int, double) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_double_int"), concat!($name, "(double, int) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_double_uint"), concat!($name, "(double, uint) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_uint_int"), concat!($name, "(uint, int) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_uint_double"), concat!($name, "(uint, double) -> dyn"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_list_double"), concat!($name, "(list<double>) -> double"), ONE, |a| {
                pick(a, $order)
            }),
            overload(concat!($id, "_list_int"), concat!($name, "(list<int>) -> int"), ONE, |a| pick(a, $order)),
            overload(concat!($id, "_list_uint"), concat!($name, "(list<uint>) -> uint"), ONE, |a| pick(a, $order)),
        ]
    };
}

const MAX: [Overload; 15] = extremes!("math_@max", "math.@max", Ordering::Greater);
const MIN: [Overload; 15] = extremes!("math_@min", "math.@min", Ordering::Less);

const OTHERS: [Overload; 34] = [
    overload("math_ceil_double", "math.ceil(double) -> double", ONE, |a| double(a, f64::ceil)),
    overload("math_floor_double", "math.floor(double) -> double", ONE, |a| double(a, f64::floor)),
    overload("math_round_double", "math.round(double) -> double", ONE, |a| double(a, f64::round)),
    overload("math_trunc_double", "math.trunc(double) -> double", ONE, |a| double(a, f64::trunc)),
    overload("math_abs_double", "math.abs(double) -> double", ONE, |a| double(a, f64::abs)),
    overload("math_abs_int", "math.abs(int) -> int", ONE, |args| {
        args.int(0).checked_abs().map(Value::Int).ok_or(EvalError::Overflow)
    }),
    overload("math_abs_uint", "math.abs(uint) -> uint", ONE, |args| Ok(args.get(0).clone())),
    overload("math_sign_double", "math.sign(double) -> double", ONE, |a| {
        double(a, |value| if value == 0.0 || value.is_nan() { value } else { value.signum() })
    }),
    overload("math_sign_int", "math.sign(int) -> int", ONE, |args| Ok(Value::Int(args.int(0).signum()))),
    overload("math_sign_uint", "math.sign(uint) -> uint", ONE, |args| Ok(Value::Uint(args.uint(0).min(1)))),
    overload("math_isInf_double", "math.isInf(double) -> bool", ONE, |a| test(a, f64::is_infinite)),
    overload("math_isNaN_double", "math.isNaN(double) -> bool", ONE, |a| test(a, f64::is_nan)),
    overload("math_isFinite_double", "math.isFinite(double) -> bool", ONE, |a| test(a, f64::is_finite)),
    overload("math_sqrt_double", "math.sqrt(double) -> double", ONE, root),
    overload("math_sqrt_int", "math.sqrt(int) -> double", ONE, root),
    overload("math_sqrt_uint", "math.sqrt(uint) -> double", ONE, root),
    overload("math_bitAnd_int_int", "math.bitAnd(int, int) -> int", ONE, |a| bits(a, |x, y| x & y)),
    overload("math_bitAnd_uint_uint", "math.bitAnd(uint, uint) -> uint", ONE, |a| bits(a, |x, y| x & y)),
    overload("math_bitOr_int_int", "math.bitOr(int, int) -> int", ONE, |a| bits(a, |x, y| x | y)),
    overload("math_bitOr_uint_uint", "math.bitOr(uint, uint) -> uint", ONE, |a| bits(a, |x, y| x | y)),
    overload("math_bitXor_int_int", "math.bitXor(int, int) -> int", ONE, |a| bits(a, |x, y| x ^ y)),
    overload("math_bitXor_uint_uint", "math.bitXor(uint, uint) -> uint", ONE, |a| bits(a, |x, y| x ^ y)),
    overload("math_bitNot_int_int", "math.bitNot(int) -> int", ONE, |args| Ok(Value::Int(!args.int(0)))),
    overload("math_bitNot_uint_uint", "math.bitNot(uint) -> uint", ONE, |args| Ok(Value::Uint(!args.uint(0)))),
    overload("math_bitShiftLeft_int_int", "math.bitShiftLeft(int, int) -> int", ONE, |a| shift(a, u64::checked_shl)),
    overload("math_bitShiftLeft_uint_int", "math.bitShiftLeft(uint, int) -> uint", ONE, |a| shift(a, u64::checked_shl)),
    overload("math_bitShiftRight_int_int", "math.bitShiftRight(int, int) -> int", ONE, |a| shift(a, u64::checked_shr)),
    overload("math_bitShiftRight_uint_int", "math.bitShiftRight(uint, int) -> uint", ONE, |a| {
        shift(a, u64::checked_shr)
    }),
    overload("math_@max_list_dyn", "math.@max(list<dyn>) -> dyn", ONE, |a| pick(a, Ordering::Greater)),
    overload("math_@min_list_dyn", "math.@min(list<dyn>) -> dyn", ONE, |a| pick(a, Ordering::Less)),
    overload("math_@max_uint_uint_dyn", "math.@max(dyn, dyn) -> dyn", ONE, |a| pick(a, Ordering::Greater)),
    overload("math_@min_uint_uint_dyn", "math.@min(dyn, dyn) -> dyn", ONE, |a| pick(a, Ordering::Less)),
    overload("math_@max_dyn", "math.@max(dyn) -> dyn", ONE, |a| pick(a, Ordering::Greater)),
    overload("math_@min_dyn", "math.@min(dyn) -> dyn", ONE, |a| pick(a, Ordering::Less)),
];

const FUNCTIONS: &[Overload] = &{
    let mut out = [OTHERS[0]; OTHERS.len() + MAX.len() + MIN.len()];
    let mut at = 0;
    while at < MAX.len() {
        out[at] = MAX[at];
        out[at + MAX.len()] = MIN[at];
        at += 1;
    }
    let mut row = 0;
    while row < OTHERS.len() {
        out[MAX.len() + MIN.len() + row] = OTHERS[row];
        row += 1;
    }
    out
};

impl Args<'_, '_> {
    fn uint(&self, index: usize) -> u64 {
        if let Value::Uint(value) = self.get(index) { *value } else { 0 }
    }
}

fn double<'v>(args: &Args<'_, 'v>, run: fn(f64) -> f64) -> Out<Value<'v>> {
    if let Value::Double(value) = args.get(0) { Ok(Value::Double(run(*value))) } else { Err(EvalError::NoSuchOverload) }
}

fn test<'v>(args: &Args<'_, 'v>, run: fn(f64) -> bool) -> Out<Value<'v>> {
    if let Value::Double(value) = args.get(0) { Ok(Value::Bool(run(*value))) } else { Err(EvalError::NoSuchOverload) }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
fn root<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    match args.get(0) {
        Value::Int(value) => Ok(Value::Double((*value as f64).sqrt())),
        Value::Uint(value) => Ok(Value::Double((*value as f64).sqrt())),
        _ => double(args, f64::sqrt),
    }
}

/// The first of the most extreme: of the arguments, or of the list that is the only one.
fn pick<'v>(args: &Args<'_, 'v>, wanted: Ordering) -> Out<Value<'v>> {
    let list = if let (Value::List(list), 1) = (args.get(0), args.values.len()) { Some(list) } else { None };
    let values = list.map_or_else(|| args.values.to_vec(), |list| list.iter().collect());
    let mut values = values.into_iter();
    let name = if wanted == Ordering::Greater { "math.@max" } else { "math.@min" };
    let mut best =
        values.next().ok_or_else(|| EvalError::failed(format!("{name}(list) argument must not be empty")))?;
    let is_number = |value: &Value<'_>| matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    if !is_number(&best) {
        return Err(EvalError::NoSuchOverload);
    }
    for value in values {
        if !is_number(&value) {
            return Err(EvalError::NoSuchOverload);
        }
        if value.order(&best).flatten() == Some(wanted) {
            best = value;
        }
    }
    Ok(best)
}

fn bits<'v>(args: &Args<'_, 'v>, run: fn(u64, u64) -> u64) -> Out<Value<'v>> {
    match (args.get(0), args.get(1)) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(run(a.cast_unsigned(), b.cast_unsigned()).cast_signed())),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(run(*a, *b))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// What is shifted out is gone, and the sign is a bit like the others.
fn shift<'v>(args: &Args<'_, 'v>, run: fn(u64, u32) -> Option<u64>) -> Out<Value<'v>> {
    let by = args.int(1);
    if by < 0 {
        return Err(EvalError::failed(format!("math.bitShift() negative offset: {by}")));
    }
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    match args.get(0) {
        Value::Int(value) => Ok(Value::Int(run(value.cast_unsigned(), by).unwrap_or(0).cast_signed())),
        Value::Uint(value) => Ok(Value::Uint(run(*value, by).unwrap_or(0))),
        _ => Err(EvalError::NoSuchOverload),
    }
}
