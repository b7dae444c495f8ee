//! The standard library: operators, conversions, sizes, times.
//!
//! <https://github.com/google/cel-spec/blob/master/doc/langdef.md#standard-definitions>

use std::cmp::Ordering;
use std::sync::Arc;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::pattern;
use crate::time;
use crate::value::{List, Value};

use super::{Library, NO_MACROS};

mod arithmetic;
mod convert;

use arithmetic::{add, divide, modulo, multiply, negate, subtract};
use convert::{to_bool, to_bytes, to_double, to_duration, to_int, to_string, to_timestamp, to_type, to_uint};

const ONE: Cost = Cost::Fixed(1);

/// Operators, conversions, sizes, times.
pub const STANDARD: Library = Library { name: "standard", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

macro_rules! orders {
    ($operator:literal, $name:literal, $run:expr) => {
        [
            overload(concat!($name, "_bool"), concat!($operator, "(bool, bool) -> bool"), ONE, $run),
            overload(concat!($name, "_int64"), concat!($operator, "(int, int) -> bool"), ONE, $run),
            overload(concat!($name, "_int64_double"), concat!($operator, "(int, double) -> bool"), ONE, $run),
            overload(concat!($name, "_int64_uint64"), concat!($operator, "(int, uint) -> bool"), ONE, $run),
            overload(concat!($name, "_uint64"), concat!($operator, "(uint, uint) -> bool"), ONE, $run),
            overload(concat!($name, "_uint64_double"), concat!($operator, "(uint, double) -> bool"), ONE, $run),
            overload(concat!($name, "_uint64_int64"), concat!($operator, "(uint, int) -> bool"), ONE, $run),
            overload(concat!($name, "_double"), concat!($operator, "(double, double) -> bool"), ONE, $run),
            overload(concat!($name, "_double_int64"), concat!($operator, "(double, int) -> bool"), ONE, $run),
            overload(concat!($name, "_double_uint64"), concat!($operator, "(double, uint) -> bool"), ONE, $run),
            overload(concat!($name, "_string"), concat!($operator, "(string, string) -> bool"), Cost::Compares, $run),
            overload(concat!($name, "_bytes"), concat!($operator, "(bytes, bytes) -> bool"), Cost::Compares, $run),
            overload(concat!($name, "_timestamp"), concat!($operator, "(timestamp, timestamp) -> bool"), ONE, $run),
            overload(concat!($name, "_duration"), concat!($operator, "(duration, duration) -> bool"), ONE, $run),
        ]
    };
}

const LESS: [Overload; 14] = orders!("_<_", "less", |args| ordered(args, |order| order == Ordering::Less));
const LESS_EQUAL: [Overload; 14] = orders!("_<=_", "less_equals", |args| ordered(args, |o| o != Ordering::Greater));
const GREATER: [Overload; 14] = orders!("_>_", "greater", |args| ordered(args, |order| order == Ordering::Greater));
const GREATER_EQUAL: [Overload; 14] = orders!("_>=_", "greater_equals", |args| ordered(args, |o| o != Ordering::Less));

const OTHERS: [Overload; 108] = [
    // The evaluator does these itself; the rows say what they take.
    overload("conditional", "_?_:_(bool, A, A) -> A", ONE, unreachable),
    overload("logical_and", "_&&_(bool, bool) -> bool", ONE, unreachable),
    overload("logical_or", "_||_(bool, bool) -> bool", ONE, unreachable),
    overload("logical_not", "!_(bool) -> bool", ONE, unreachable),
    overload("not_strictly_false", "@not_strictly_false(bool) -> bool", ONE, unreachable),
    overload("equals", "_==_(A, A) -> bool", Cost::Compares, unreachable),
    overload("not_equals", "_!=_(A, A) -> bool", Cost::Compares, unreachable),
    overload("index_list", "_[_](list<A>, int) -> A", ONE, unreachable),
    overload("index_map", "_[_](map<A, B>, A) -> B", ONE, unreachable),
    overload("add_int64", "_+_(int, int) -> int", ONE, add),
    overload("add_uint64", "_+_(uint, uint) -> uint", ONE, add),
    overload("add_double", "_+_(double, double) -> double", ONE, add),
    overload("add_string", "_+_(string, string) -> string", Cost::Concatenates, add),
    overload("add_bytes", "_+_(bytes, bytes) -> bytes", Cost::Concatenates, add),
    overload("add_list", "_+_(list<A>, list<A>) -> list<A>", Cost::Chains, add),
    overload("add_duration_duration", "_+_(duration, duration) -> duration", ONE, add),
    overload("add_timestamp_duration", "_+_(timestamp, duration) -> timestamp", ONE, add),
    overload("add_duration_timestamp", "_+_(duration, timestamp) -> timestamp", ONE, add),
    overload("subtract_int64", "_-_(int, int) -> int", ONE, subtract),
    overload("subtract_uint64", "_-_(uint, uint) -> uint", ONE, subtract),
    overload("subtract_double", "_-_(double, double) -> double", ONE, subtract),
    overload("subtract_timestamp_timestamp", "_-_(timestamp, timestamp) -> duration", ONE, subtract),
    overload("subtract_timestamp_duration", "_-_(timestamp, duration) -> timestamp", ONE, subtract),
    overload("subtract_duration_duration", "_-_(duration, duration) -> duration", ONE, subtract),
    overload("multiply_int64", "_*_(int, int) -> int", ONE, multiply),
    overload("multiply_uint64", "_*_(uint, uint) -> uint", ONE, multiply),
    overload("multiply_double", "_*_(double, double) -> double", ONE, multiply),
    overload("divide_int64", "_/_(int, int) -> int", ONE, divide),
    overload("divide_uint64", "_/_(uint, uint) -> uint", ONE, divide),
    overload("divide_double", "_/_(double, double) -> double", ONE, divide),
    overload("modulo_int64", "_%_(int, int) -> int", ONE, modulo),
    overload("modulo_uint64", "_%_(uint, uint) -> uint", ONE, modulo),
    overload("negate_int64", "-_(int) -> int", ONE, negate),
    overload("negate_double", "-_(double) -> double", ONE, negate),
    overload("in_list", "@in(A, list<A>) -> bool", Cost::Scans, is_in),
    overload("in_map", "@in(A, map<A, B>) -> bool", ONE, is_in),
    overload("size_string", "size(string) -> int", ONE, size),
    overload("size_bytes", "size(bytes) -> int", ONE, size),
    overload("size_list", "size(list<A>) -> int", ONE, size),
    overload("size_map", "size(map<A, B>) -> int", ONE, size),
    overload("string_size", "string::size() -> int", ONE, size),
    overload("bytes_size", "bytes::size() -> int", ONE, size),
    overload("list_size", "list<A>::size() -> int", ONE, size),
    overload("map_size", "map<A, B>::size() -> int", ONE, size),
    overload("contains_string", "string::contains(string) -> bool", Cost::Searches, |args| {
        Ok(Value::Bool(args.str(0).contains(args.str(1))))
    }),
    overload("starts_with_string", "string::startsWith(string) -> bool", Cost::Prefix, |args| {
        Ok(Value::Bool(args.str(0).starts_with(args.str(1))))
    }),
    overload("ends_with_string", "string::endsWith(string) -> bool", Cost::Prefix, |args| {
        Ok(Value::Bool(args.str(0).ends_with(args.str(1))))
    }),
    overload("matches", "matches(string, string) -> bool", Cost::Matches, matches),
    overload("matches_string", "string::matches(string) -> bool", Cost::Matches, matches),
    overload("to_dyn", "dyn(A) -> dyn", ONE, |args| Ok(args.get(0).clone())),
    overload("type", "type(A) -> type<A>", ONE, to_type),
    overload("bool_to_bool", "bool(bool) -> bool", ONE, to_bool),
    overload("string_to_bool", "bool(string) -> bool", ONE, to_bool),
    overload("bytes_to_bytes", "bytes(bytes) -> bytes", ONE, to_bytes),
    overload("string_to_bytes", "bytes(string) -> bytes", Cost::Encodes(4), to_bytes),
    overload("double_to_double", "double(double) -> double", ONE, to_double),
    overload("int64_to_double", "double(int) -> double", ONE, to_double),
    overload("uint64_to_double", "double(uint) -> double", ONE, to_double),
    overload("string_to_double", "double(string) -> double", ONE, to_double),
    overload("int64_to_int64", "int(int) -> int", ONE, to_int),
    overload("uint64_to_int64", "int(uint) -> int", ONE, to_int),
    overload("double_to_int64", "int(double) -> int", ONE, to_int),
    overload("string_to_int64", "int(string) -> int", ONE, to_int),
    overload("timestamp_to_int64", "int(timestamp) -> int", ONE, to_int),
    overload("duration_to_int64", "int(duration) -> int", ONE, to_int),
    overload("uint64_to_uint64", "uint(uint) -> uint", ONE, to_uint),
    overload("int64_to_uint64", "uint(int) -> uint", ONE, to_uint),
    overload("double_to_uint64", "uint(double) -> uint", ONE, to_uint),
    overload("string_to_uint64", "uint(string) -> uint", ONE, to_uint),
    overload("string_to_string", "string(string) -> string", ONE, to_string),
    overload("bool_to_string", "string(bool) -> string", ONE, to_string),
    overload("bytes_to_string", "string(bytes) -> string", Cost::Decodes, to_string),
    overload("double_to_string", "string(double) -> string", ONE, to_string),
    overload("int64_to_string", "string(int) -> string", ONE, to_string),
    overload("uint64_to_string", "string(uint) -> string", ONE, to_string),
    overload("timestamp_to_string", "string(timestamp) -> string", ONE, to_string),
    overload("duration_to_string", "string(duration) -> string", ONE, to_string),
    overload("timestamp_to_timestamp", "timestamp(timestamp) -> timestamp", ONE, to_timestamp),
    overload("int64_to_timestamp", "timestamp(int) -> timestamp", ONE, to_timestamp),
    overload("string_to_timestamp", "timestamp(string) -> timestamp", ONE, to_timestamp),
    overload("duration_to_duration", "duration(duration) -> duration", ONE, to_duration),
    overload("int64_to_duration", "duration(int) -> duration", ONE, to_duration),
    overload("string_to_duration", "duration(string) -> duration", ONE, to_duration),
    overload("timestamp_to_year", "timestamp::getFullYear() -> int", ONE, |a| civil(a, |at| at.year)),
    overload("timestamp_to_year_with_tz", "timestamp::getFullYear(string) -> int", ONE, |a| civil(a, |at| at.year)),
    overload("timestamp_to_month", "timestamp::getMonth() -> int", ONE, |a| civil(a, |at| at.month - 1)),
    overload("timestamp_to_month_with_tz", "timestamp::getMonth(string) -> int", ONE, |a| civil(a, |at| at.month - 1)),
    overload("timestamp_to_day_of_year", "timestamp::getDayOfYear() -> int", ONE, |a| civil(a, |at| at.day_of_year())),
    overload("timestamp_to_day_of_year_with_tz", "timestamp::getDayOfYear(string) -> int", ONE, |a| {
        civil(a, |at| at.day_of_year())
    }),
    overload("timestamp_to_day_of_month", "timestamp::getDayOfMonth() -> int", ONE, |a| civil(a, |at| at.day - 1)),
    overload("timestamp_to_day_of_month_with_tz", "timestamp::getDayOfMonth(string) -> int", ONE, |a| {
        civil(a, |at| at.day - 1)
    }),
    overload("timestamp_to_day_of_month_1_based", "timestamp::getDate() -> int", ONE, |a| civil(a, |at| at.day)),
    overload("timestamp_to_day_of_month_1_based_with_tz", "timestamp::getDate(string) -> int", ONE, |a| {
        civil(a, |at| at.day)
    }),
    overload("timestamp_to_day_of_week", "timestamp::getDayOfWeek() -> int", ONE, |a| civil(a, |at| at.day_of_week())),
    overload("timestamp_to_day_of_week_with_tz", "timestamp::getDayOfWeek(string) -> int", ONE, |a| {
        civil(a, |at| at.day_of_week())
    }),
    overload("timestamp_to_hours", "timestamp::getHours() -> int", ONE, |a| civil(a, |at| at.seconds_of_day / 3600)),
    overload("timestamp_to_hours_with_tz", "timestamp::getHours(string) -> int", ONE, |a| {
        civil(a, |at| at.seconds_of_day / 3600)
    }),
    overload("timestamp_to_minutes", "timestamp::getMinutes() -> int", ONE, |a| {
        civil(a, |at| at.seconds_of_day / 60 % 60)
    }),
    overload("timestamp_to_minutes_with_tz", "timestamp::getMinutes(string) -> int", ONE, |a| {
        civil(a, |at| at.seconds_of_day / 60 % 60)
    }),
    overload("timestamp_to_seconds", "timestamp::getSeconds() -> int", ONE, |a| civil(a, |at| at.seconds_of_day % 60)),
    overload("timestamp_to_seconds_tz", "timestamp::getSeconds(string) -> int", ONE, |a| {
        civil(a, |at| at.seconds_of_day % 60)
    }),
    overload("timestamp_to_milliseconds", "timestamp::getMilliseconds() -> int", ONE, milliseconds),
    overload("timestamp_to_milliseconds_with_tz", "timestamp::getMilliseconds(string) -> int", ONE, milliseconds),
    overload("duration_to_hours", "duration::getHours() -> int", ONE, |a| whole(a, 3600 * time::NANOS_PER_SECOND)),
    overload("duration_to_minutes", "duration::getMinutes() -> int", ONE, |a| whole(a, 60 * time::NANOS_PER_SECOND)),
    overload("duration_to_seconds", "duration::getSeconds() -> int", ONE, |a| whole(a, time::NANOS_PER_SECOND)),
    overload("duration_to_milliseconds", "duration::getMilliseconds() -> int", ONE, |args| {
        let Value::Duration(nanos) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
        Ok(Value::Int(nanos / NANOS_PER_MILLISECOND % 1000))
    }),
    overload("error", "@error() -> dyn", ONE, unreachable),
];

const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// All rows, operators of order last.
const FUNCTIONS: &[Overload] = &{
    const NONE: Overload = overload("", "", ONE, unreachable);
    let mut out = [NONE; OTHERS.len() + 4 * LESS.len()];
    let mut at = 0;
    while at < OTHERS.len() {
        out[at] = OTHERS[at];
        at += 1;
    }
    let mut row = 0;
    while row < LESS.len() {
        out[at] = LESS[row];
        out[at + 1] = LESS_EQUAL[row];
        out[at + 2] = GREATER[row];
        out[at + 3] = GREATER_EQUAL[row];
        at += 4;
        row += 1;
    }
    out
};

fn unreachable<'v>(_: &Args<'_, 'v>) -> Out<Value<'v>> {
    Err(EvalError::NoSuchOverload)
}

fn ordered<'v>(args: &Args<'_, 'v>, test: fn(Ordering) -> bool) -> Out<Value<'v>> {
    let order = args.get(0).order(args.get(1)).ok_or(EvalError::NoSuchOverload)?;
    // A comparison with what is not a number is false.
    Ok(Value::Bool(order.is_some_and(test)))
}

fn is_in<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let value = args.get(0);
    match args.get(1) {
        Value::List(list) => Ok(Value::Bool(list.iter().any(|item| item.equals(value)))),
        Value::Map(map) => Ok(Value::Bool(map.has(value).unwrap_or(false))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn size<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    Ok(Value::Int(i64::try_from(args.get(0).size()).unwrap_or(i64::MAX)))
}

fn matches<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let found = match args.regex {
        Some(regex) => regex.is_match(args.str(0)),
        None => pattern::compile(args.str(1)).map_err(EvalError::Failed)?.is_match(args.str(0)),
    };
    Ok(Value::Bool(found))
}

fn civil<'v>(args: &Args<'_, 'v>, part: fn(&time::Civil) -> i64) -> Out<Value<'v>> {
    let Value::Timestamp(at) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Int(part(&at.civil(args.str(1))?)))
}

fn milliseconds<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let Value::Timestamp(at) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    at.civil(args.str(1))?;
    Ok(Value::Int(at.nanos() / NANOS_PER_MILLISECOND))
}

fn whole<'v>(args: &Args<'_, 'v>, unit: i64) -> Out<Value<'v>> {
    let Value::Duration(nanos) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Int(nanos / unit))
}

/// Two lists in a row.
fn joined<'v>(left: &List<'v>, right: &List<'v>) -> Value<'v> {
    if let List::Declared(_, of) = left
        && let Some(merged) = of.lists_merged(left, right)
    {
        return Value::list(merged);
    }
    Value::List(List::Shared(Arc::new(left.iter().chain(right.iter()).collect())))
}
