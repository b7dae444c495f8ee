//! Lists as sets.

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::value::{List, Value};

use super::{Library, NO_MACROS};

/// `sets.contains`, `sets.equivalent`, `sets.intersects`.
pub const SETS: Library = Library { name: "sets", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const FUNCTIONS: &[Overload] = &[
    overload("list_sets_contains_list", "sets.contains(list<T>, list<T>) -> bool", Cost::Pairs, |args| {
        lists(args, contains)
    }),
    overload("list_sets_equivalent_list", "sets.equivalent(list<T>, list<T>) -> bool", Cost::Pairs, |args| {
        lists(args, |a, b| contains(a, b) && contains(b, a))
    }),
    overload("list_sets_intersects_list", "sets.intersects(list<T>, list<T>) -> bool", Cost::Pairs, |args| {
        lists(args, |a, b| b.iter().any(|item| has(a, &item)))
    }),
];

fn lists<'v>(args: &Args<'_, 'v>, test: fn(&List<'v>, &List<'v>) -> bool) -> Out<Value<'v>> {
    match (args.get(0), args.get(1)) {
        (Value::List(a), Value::List(b)) => Ok(Value::Bool(test(a, b))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn has(list: &List<'_>, item: &Value<'_>) -> bool {
    list.iter().any(|other| other.equals(item))
}

fn contains(all: &List<'_>, some: &List<'_>) -> bool {
    some.iter().all(|item| has(all, &item))
}
