//! Lists as Kubernetes has them: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use std::cmp::Ordering;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::library::{Library, NO_MACROS};
use crate::value::{List, Value};

/// Lists.
pub const LISTS: Library = Library { name: "kubernetes lists", functions: FUNCTIONS, types: &[], macros: NO_MACROS };

const ALL: Cost = Cost::Traverses;

const FUNCTIONS: &[Overload] = &[
    overload("list_is_sorted_bool", "list<T>::isSorted() -> bool", ALL, is_sorted),
    overload("list_int_sum_int", "list<int>::sum() -> int", ALL, |args| {
        let add = |sum: i64, item: &Value<'_>| if let Value::Int(item) = item { sum.checked_add(*item) } else { None };
        total(args, 0, add).map(Value::Int)
    }),
    overload("list_uint_sum_uint", "list<uint>::sum() -> uint", ALL, |args| {
        let add = |sum: u64, item: &Value<'_>| if let Value::Uint(item) = item { sum.checked_add(*item) } else { None };
        total(args, 0, add).map(Value::Uint)
    }),
    overload("list_double_sum_double", "list<double>::sum() -> double", ALL, |args| {
        let add = |sum: f64, item: &Value<'_>| if let Value::Double(item) = item { Some(sum + item) } else { None };
        total(args, 0.0, add).map(Value::Double)
    }),
    overload("list_duration_sum_duration", "list<duration>::sum() -> duration", ALL, |args| {
        let add = |sum: i64, item: &Value<'_>| if let Value::Duration(d) = item { sum.checked_add(*d) } else { None };
        total(args, 0, add).map(Value::Duration)
    }),
    overload("list_min", "list<T>::min() -> T", ALL, |args| extreme(args, Ordering::Less, "min")),
    overload("list_max", "list<T>::max() -> T", ALL, |args| extreme(args, Ordering::Greater, "max")),
    overload("list_a_index_of_int", "list<T>::indexOf(T) -> int", ALL, |args| position(args, false)),
    overload("list_a_last_index_of_int", "list<T>::lastIndexOf(T) -> int", ALL, |args| position(args, true)),
];

fn list<'c, 'v>(args: &'c Args<'_, 'v>) -> Out<&'c List<'v>> {
    if let Value::List(list) = args.get(0) { Ok(list) } else { Err(EvalError::NoSuchOverload) }
}

fn is_sorted<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let mut before: Option<Value<'v>> = None;
    for item in list(args)?.iter() {
        if let Some(before) = &before
            && before.order(&item).ok_or(EvalError::NoSuchOverload)? == Some(Ordering::Greater)
        {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn total<T>(args: &Args<'_, '_>, zero: T, add: fn(T, &Value<'_>) -> Option<T>) -> Out<T> {
    list(args)?.iter().try_fold(zero, |sum, item| add(sum, &item).ok_or(EvalError::Overflow))
}

fn extreme<'v>(args: &Args<'_, 'v>, wanted: Ordering, name: &str) -> Out<Value<'v>> {
    let mut best: Option<Value<'v>> = None;
    for item in list(args)?.iter() {
        let better = match &best {
            Some(best) => item.order(best).ok_or(EvalError::NoSuchOverload)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

fn position<'v>(args: &Args<'_, 'v>, last: bool) -> Out<Value<'v>> {
    let list = list(args)?;
    let is_it = |index: &usize| list.get(*index).is_some_and(|item| item.equals(args.get(1)));
    let found = if last { (0..list.len()).rev().find(is_it) } else { (0..list.len()).find(is_it) };
    Ok(Value::Int(found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
}
