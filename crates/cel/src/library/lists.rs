//! Lists: `slice`, `flatten`, `range`, `distinct`, `reverse`, `sort`, `sortBy`.

use std::cmp::Ordering;

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::value::{List, Value};

use super::Library;

/// Lists.
pub const LISTS: Library =
    Library { name: "lists", functions: FUNCTIONS, types: &[], macros: |macros| macros.sort_by = true };

/// How many elements `lists.range` makes at most.
const MAX_RANGE: i64 = 100_000;
const ONE: Cost = Cost::Fixed(1);

const FUNCTIONS: &[Overload] = &[
    overload("list_slice", "list<T>::slice(int, int) -> list<T>", ONE, slice),
    overload("list_flatten", "list<list<T>>::flatten() -> list<T>", ONE, |args| flat(args, 1)),
    overload("list_flatten_int", "list<dyn>::flatten(int) -> list<dyn>", ONE, |args| flat(args, args.int(1))),
    overload("lists_range", "lists.range(int) -> list<int>", ONE, |args| {
        let end = args.int(0);
        if end > MAX_RANGE {
            return Err(EvalError::failed(format!("lists.range() size {end} is above the limit {MAX_RANGE}")));
        }
        Ok(Value::list((0..end).map(Value::Int).collect()))
    }),
    overload("list_distinct", "list<T>::distinct() -> list<T>", Cost::Traverses, distinct),
    overload("list_reverse", "list<T>::reverse() -> list<T>", ONE, |args| {
        let mut items: Vec<_> = list(args, 0)?.iter().collect();
        items.reverse();
        Ok(Value::list(items))
    }),
    overload("list_sort", "list<T>::sort() -> list<T>", Cost::Traverses, |args| {
        let list = list(args, 0)?;
        sorted(list, list)
    }),
    overload("list_sort_by", "list<T>::@sortByAssociatedKeys(list<U>) -> list<T>", Cost::Traverses, |args| {
        sorted(list(args, 0)?, list(args, 1)?)
    }),
];

fn list<'c, 'v>(args: &'c Args<'_, 'v>, index: usize) -> Out<&'c List<'v>> {
    if let Value::List(list) = args.get(index) { Ok(list) } else { Err(EvalError::NoSuchOverload) }
}

fn slice<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let list = list(args, 0)?;
    let (start, end) = (args.int(1), args.int(2));
    let fail = |text: String| Err(EvalError::Failed(text));
    if start < 0 || end < 0 {
        return fail(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return fail(format!("cannot slice({start}, {end}), start index must be less than or equal to end index"));
    }
    let (from, to) = (usize::try_from(start).unwrap_or(usize::MAX), usize::try_from(end).unwrap_or(usize::MAX));
    if to > list.len() {
        return fail(format!("cannot slice({start}, {end}), list is length {}", list.len()));
    }
    Ok(Value::list((from..to).filter_map(|index| list.get(index)).collect()))
}

fn flat<'v>(args: &Args<'_, 'v>, depth: i64) -> Out<Value<'v>> {
    if depth < 0 {
        return Err(EvalError::failed("level must be non-negative"));
    }
    let mut out = Vec::new();
    flatten(list(args, 0)?, depth, &mut out);
    Ok(Value::list(out))
}

/// Values are nested no deeper than trees are, so the recursion ends.
fn flatten<'v>(list: &List<'v>, depth: i64, out: &mut Vec<Value<'v>>) {
    for item in list.iter() {
        match item {
            Value::List(inner) if depth > 0 => flatten(&inner, depth - 1, out),
            item => out.push(item),
        }
    }
}

fn distinct<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let mut out: Vec<Value<'v>> = Vec::new();
    for item in list(args, 0)?.iter() {
        if !out.iter().any(|other| other.equals(&item)) {
            out.push(item);
        }
    }
    Ok(Value::list(out))
}

fn sorted<'v>(list: &List<'v>, keys: &List<'v>) -> Out<Value<'v>> {
    let keys: Vec<Value<'v>> = keys.iter().collect();
    let Some(first) = keys.first() else { return Ok(Value::list(Vec::new())) };
    if keys.iter().any(|key| key.type_of() != first.type_of()) {
        return Err(EvalError::failed("list elements must have the same type"));
    }
    if first.order(first).is_none() {
        return Err(EvalError::failed("list elements must be comparable"));
    }
    let mut pairs: Vec<(Value<'v>, Value<'v>)> = keys.into_iter().zip(list.iter()).collect();
    pairs.sort_by(|(a, _), (b, _)| a.order(b).flatten().unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}
