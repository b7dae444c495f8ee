//! Optionals: `optional.of`, `?.`, `orValue`.

use crate::cost::Cost;
use crate::error::{EvalError, Out};
use crate::function::{Args, Overload, overload};
use crate::value::Value;

use super::Library;

/// Optionals.
pub const OPTIONAL: Library =
    Library { name: "optional", functions: FUNCTIONS, types: &[], macros: |macros| macros.optional = true };

const ONE: Cost = Cost::Fixed(1);

const FUNCTIONS: &[Overload] = &[
    overload("optional_of", "optional.of(V) -> optional<V>", ONE, |args| Ok(Value::some(args.get(0).clone()))),
    overload("optional_ofNonZeroValue", "optional.ofNonZeroValue(V) -> optional<V>", ONE, |args| {
        let value = args.get(0);
        Ok(if value.is_zero() { Value::Optional(None) } else { Value::some(value.clone()) })
    }),
    overload("optional_none", "optional.none() -> optional<V>", ONE, |_| Ok(Value::Optional(None))),
    overload("optional_value", "optional<V>::value() -> V", ONE, value),
    overload("optional_hasValue", "optional<V>::hasValue() -> bool", ONE, |args| {
        Ok(Value::Bool(matches!(args.get(0), Value::Optional(Some(_)))))
    }),
    overload("optional_or_optional", "optional<V>::or(optional<V>) -> optional<V>", ONE, |args| {
        Ok(if matches!(args.get(0), Value::Optional(Some(_))) { args.get(0).clone() } else { args.get(1).clone() })
    }),
    overload("optional_orValue_value", "optional<V>::orValue(V) -> V", ONE, |args| match args.get(0) {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        _ => Ok(args.get(1).clone()),
    }),
    overload("optional_list_index_int", "_[_](optional<list<V>>, int) -> optional<V>", ONE, nothing),
    overload("optional_map_index_value", "_[_](optional<map<K, V>>, K) -> optional<V>", ONE, nothing),
    overload("list_optindex_optional_int", "_[?_](list<V>, int) -> optional<V>", ONE, nothing),
    overload("optional_list_optindex_optional_int", "_[?_](optional<list<V>>, int) -> optional<V>", ONE, nothing),
    overload("map_optindex_optional_value", "_[?_](map<K, V>, K) -> optional<V>", ONE, nothing),
    overload("optional_map_optindex_optional_value", "_[?_](optional<map<K, V>>, K) -> optional<V>", ONE, nothing),
    overload("list_first", "list<V>::first() -> optional<V>", ONE, |args| end(args, |_| 0)),
    overload("list_last", "list<V>::last() -> optional<V>", ONE, |args| end(args, |len| len.saturating_sub(1))),
    overload("optional_unwrap", "optional.unwrap(list<optional<V>>) -> list<V>", ONE, unwrap),
    overload("optional_unwrapOpt", "list<optional<V>>::unwrapOpt() -> list<V>", ONE, unwrap),
];

/// The evaluator does it itself; the row says what it takes.
fn nothing<'v>(_: &Args<'_, 'v>) -> Out<Value<'v>> {
    Err(EvalError::NoSuchOverload)
}

fn value<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    match args.get(0) {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        _ => Err(EvalError::failed("optional.none() dereference")),
    }
}

fn end<'v>(args: &Args<'_, 'v>, index: fn(usize) -> usize) -> Out<Value<'v>> {
    let Value::List(list) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    Ok(list.get(index(list.len())).map_or(Value::Optional(None), Value::some))
}

fn unwrap<'v>(args: &Args<'_, 'v>) -> Out<Value<'v>> {
    let Value::List(list) = args.get(0) else { return Err(EvalError::NoSuchOverload) };
    let values = list.iter().filter_map(|item| if let Value::Optional(value) = item { value } else { None });
    Ok(Value::list(values.map(|value| (*value).clone()).collect()))
}
