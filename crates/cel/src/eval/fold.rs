//! Comprehensions. What macros expand to is evaluated without its accumulator, and costs what the expansion costs: a variable
//! costs one where it is read, a logical operator nothing, `!`, `@not_strictly_false`, `+` and `==` of numbers one each.
//! So the accumulator of
//! - `all` costs two in the condition of each round (read, tested), one in its step, and one as the result;
//! - `exists` costs one more in the condition, for the `!`, which is not paid where the accumulator is an error;
//! - `exists_one` costs two where the test holds (read, added to; only one where it is an error), nothing where it does not,
//!   and two as the result (read, compared; only one where it is an error);
//! - those that gather costs what `accu + [value]` and `cel.@mapInsert(accu, ..)` do where the test holds, nothing where it
//!   does not, and one as the result.
//!
//! Conditions that are constant cost nothing.

use std::sync::Arc;

use crate::cost;
use crate::error::{EvalError, Out};
use crate::plan::{Fold, Gathering, Node, Rounds};
use crate::value::{Entries, Map, Value};

use super::{Machine, Result, Scope, Scopes, Short, eval};

/// One round, with the variables of the body in scope; tells whether there may be another.
type Round<'r, 'a> = dyn FnMut(Scopes<'_, 'a>, &mut Machine<'_, '_, 'a>) -> Short<bool> + 'r;

/// Rounds over the elements of a list or the entries of a map.
fn each_round<'a>(
    range: &Value<'a>,
    two: bool,
    outer: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
    round: &mut Round<'_, 'a>,
) -> Short<()> {
    let mut one = |first, second: Option<Result<'a>>, machine: &mut Machine<'_, '_, 'a>| {
        machine.meter.tick()?;
        let first = Scope { value: Ok(first), outer };
        match second {
            Some(value) => round(Some(&Scope { value, outer: Some(&first) }), machine),
            None => round(Some(&first), machine),
        }
    };
    match range {
        Value::List(list) if two => {
            for (index, item) in list.iter().enumerate() {
                let index = Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
                if !one(index, Some(Ok(item)), machine)? {
                    break;
                }
            }
        }
        Value::List(list) => {
            for item in list.iter() {
                if !one(item, None, machine)? {
                    break;
                }
            }
        }
        Value::Map(map) => {
            for key in map.keys() {
                let mut second = None;
                if two {
                    let found = map.get(&key)?;
                    second = Some(found.ok_or_else(|| EvalError::NoSuchKey(key.to_display())));
                }
                if !one(key, second, machine)? {
                    break;
                }
            }
        }
        _ => return Err(EvalError::NoSuchOverload.into()),
    }
    Ok(())
}

/// An outcome that is kept until all is decided; what ends the evaluation is not.
fn kept<T>(outcome: Short<T>) -> Short<Short<T>> {
    match outcome {
        Err(error) if error.is_final() => Err(error),
        outcome => Ok(outcome),
    }
}

/// The value of a macro over a list or map.
#[inline(never)]
pub(super) fn gather<'a>(rounds: &'a Rounds, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let value = match &rounds.gathering {
        Gathering::Any { .. } | Gathering::One(_) => test(rounds, scope, machine).map(Value::Bool),
        Gathering::List { test, value } => values(rounds, test.as_ref(), value, scope, machine),
        Gathering::Map { test, args } => entries(rounds, test.as_ref(), args, scope, machine),
    };
    value.map_err(|error| *error)
}

/// The same where it has to be true or false.
#[inline(never)]
pub(super) fn test<'a>(rounds: &'a Rounds, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Short<bool> {
    match &rounds.gathering {
        Gathering::Any { decides, test } => any(rounds, *decides, test, scope, machine),
        Gathering::One(test) => exactly_one(rounds, test, scope, machine),
        Gathering::List { .. } | Gathering::Map { .. } => {
            gather(rounds, scope, machine)?;
            Err(EvalError::NoSuchOverload.into())
        }
    }
}

#[inline(never)]
fn any<'a>(
    rounds: &'a Rounds,
    decides: bool,
    test: &'a Node,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let range = eval(&rounds.range, scope, machine)?;
    let mut outcome = Ok(!decides);
    each_round(&range, rounds.two, scope, machine, &mut |scope, machine| {
        // What the condition costs; the step costs one more.
        let condition = if decides && outcome.is_ok() { 3 } else { 2 };
        if matches!(outcome, Ok(value) if value == decides) {
            machine.meter.charge_each(condition)?;
            return Ok(false);
        }
        machine.meter.charge_each(condition + 1)?;
        match kept(super::test(test, scope, machine))? {
            Ok(value) if value == decides => outcome = Ok(value),
            Err(error) if outcome.is_ok() => outcome = Err(error),
            _ => {}
        }
        Ok(true)
    })?;
    machine.meter.charge(cost::SELECT)?;
    outcome
}

#[inline(never)]
fn exactly_one<'a>(
    rounds: &'a Rounds,
    test: &'a Node,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let range = eval(&rounds.range, scope, machine)?;
    let mut count = Ok(0_usize);
    each_round(&range, rounds.two, scope, machine, &mut |scope, machine| {
        match kept(super::test(test, scope, machine))? {
            Ok(true) => {
                machine.meter.charge_each(if count.is_ok() { 2 } else { 1 })?;
                if let Ok(count) = &mut count {
                    *count += 1;
                }
            }
            Ok(false) => machine.meter.charge(0)?,
            Err(error) => count = Err(error),
        }
        Ok(true)
    })?;
    machine.meter.charge_each(if count.is_ok() { 2 } else { 1 })?;
    Ok(count? == 1)
}

/// Whether the test of a round holds; an error of it is what has been gathered from then on.
fn holds<'a, T>(
    test: Option<&'a Node>,
    gathered: &mut Short<T>,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let Some(test) = test else { return Ok(true) };
    match kept(super::test(test, scope, machine))? {
        Ok(true) => Ok(true),
        Ok(false) => {
            machine.meter.charge(0)?;
            Ok(false)
        }
        Err(error) => {
            *gathered = Err(error);
            Ok(false)
        }
    }
}

#[inline(never)]
fn values<'a>(
    rounds: &'a Rounds,
    test: Option<&'a Node>,
    value: &'a Node,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<Value<'a>> {
    let range = eval(&rounds.range, scope, machine)?;
    let mut gathered = Ok(Vec::new());
    each_round(&range, rounds.two, scope, machine, &mut |scope, machine| {
        if !holds(test, &mut gathered, scope, machine)? {
            return Ok(true);
        }
        let value = eval(value, scope, machine);
        // The error that came first stays, whatever comes of the value.
        if let Ok(values) = &mut gathered {
            match kept(value.map_err(Box::new))? {
                Ok(value) => {
                    machine.meter.charge(cost::APPEND)?;
                    values.push(value);
                }
                Err(error) => gathered = Err(error),
            }
        }
        Ok(true)
    })?;
    machine.meter.charge(cost::SELECT)?;
    gathered.map(Value::list)
}

#[inline(never)]
fn entries<'a>(
    rounds: &'a Rounds,
    test: Option<&'a Node>,
    args: &'a [Node],
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<Value<'a>> {
    let range = eval(&rounds.range, scope, machine)?;
    let mut gathered = Ok(Entries::default());
    each_round(&range, rounds.two, scope, machine, &mut |scope, machine| {
        if !holds(test, &mut gathered, scope, machine)? {
            return Ok(true);
        }
        let args = args.iter().map(|arg| eval(arg, scope, machine)).collect::<Out<Vec<_>>>();
        if let Ok(entries) = &mut gathered {
            let added = match kept(args.map_err(Box::new))? {
                Ok(args) => {
                    machine.meter.charge(cost::INSERT)?;
                    add(entries, args)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = added {
                gathered = Err(error);
            }
        }
        Ok(true)
    })?;
    machine.meter.charge(cost::SELECT)?;
    gathered.map(|entries| Value::Map(Map::Shared(Arc::new(entries))))
}

/// Adds what `cel.@mapInsert` is given: a key and its value, or a map.
fn add<'a>(entries: &mut Entries<'a>, args: Vec<Value<'a>>) -> Short<()> {
    match <[Value<'a>; 2]>::try_from(args) {
        Ok([key, value]) => entries.insert(key, value)?,
        Err(args) => match args.as_slice() {
            [Value::Map(more)] => {
                for (key, value) in more.iter() {
                    entries.insert(key, value)?;
                }
            }
            _ => return Err(EvalError::NoSuchOverload.into()),
        },
    }
    Ok(())
}

/// `cel.bind`: a value that fails does so where it is used.
#[inline(never)]
pub(super) fn bind<'a>(args: &'a [Node; 2], scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let [value, result] = args;
    let value = match eval(value, scope, machine) {
        Err(error) if error.is_final() => return Err(error),
        value => value,
    };
    eval(result, Some(&Scope { value, outer: scope }), machine)
}

/// A comprehension that is none of the macros. Within its body the accumulator is the innermost variable.
#[inline(never)]
pub(super) fn expanded<'a>(fold: &'a Fold, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let range = eval(&fold.range, scope, machine)?;
    let mut accu = match eval(&fold.init, scope, machine) {
        Err(error) if error.is_final() => return Err(error),
        init => init,
    };
    let done = each_round(&range, fold.two, scope, machine, &mut |scope, machine| {
        let scope = Scope { value: std::mem::replace(&mut accu, Ok(Value::Null)), outer: scope };
        let goes_on = !matches!(eval(&fold.condition, Some(&scope), machine)?, Value::Bool(false));
        accu = if !goes_on {
            scope.value
        } else {
            match eval(&fold.step, Some(&scope), machine) {
                Err(error) if error.is_final() => return Err(error.into()),
                value => value,
            }
        };
        Ok(goes_on)
    });
    done.map_err(|error| *error)?;
    eval(&fold.result, Some(&Scope { value: accu, outer: scope }), machine)
}

/// `accu + [value]`
#[inline(never)]
pub(super) fn append<'a>(
    up: usize,
    value: &'a Node,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let value = eval(value, scope, machine);
    let accu = super::local(up, scope).map_err(|error| *error)?;
    let value = value?;
    machine.meter.charge(cost::APPEND)?;
    let Value::List(list) = accu else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::list(list.iter().chain([value]).collect()))
}

/// `cel.@mapInsert(accu, ..)`
#[inline(never)]
pub(super) fn insert<'a>(
    up: usize,
    args: &'a [Node],
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let args = args.iter().map(|arg| eval(arg, scope, machine)).collect::<Out<Vec<_>>>();
    let accu = super::local(up, scope).map_err(|error| *error)?;
    let args = args?;
    machine.meter.charge(cost::INSERT)?;
    let Value::Map(Map::Shared(map)) = accu else { return Err(EvalError::NoSuchOverload) };
    let mut entries = Entries::clone(map);
    add(&mut entries, args).map_err(|error| *error)?;
    Ok(Value::Map(Map::Shared(Arc::new(entries))))
}
