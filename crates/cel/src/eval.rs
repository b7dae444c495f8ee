//! Evaluation of planned nodes.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ast::Name;
use crate::cost;
use crate::environment::OverloadDecl;
use crate::error::{EvalError, Out};
use crate::function::Args;
use crate::plan::{Call, Node, Operator};
use crate::program::{Activation, Meter};
use crate::value::{Built, Entries, FieldHint, Map, Object, Step, Value};

mod fold;
#[cfg(test)]
mod tests;

/// What an evaluation goes by.
pub(crate) struct Machine<'r, 'm, 'a> {
    pub(crate) activation: &'r dyn Activation<'a>,
    pub(crate) meter: &'r mut Meter<'m>,
}

/// A variable of a macro, and those around it.
pub(crate) struct Scope<'s, 'a> {
    value: Result<'a>,
    outer: Scopes<'s, 'a>,
}

pub(crate) type Scopes<'s, 'a> = Option<&'s Scope<'s, 'a>>;
type Result<'a> = Out<Value<'a>>;
/// What does not hold a value. The error is boxed, so that it fits into registers.
type Short<T> = std::result::Result<T, Box<EvalError>>;

/// Only tells nodes apart: what each needs of the stack, and has to put back, is its own function's.
pub(crate) fn eval<'a>(node: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    match node {
        Node::Const(value) => Ok(value.lent()),
        Node::Folded(value, cost) => folded(value, *cost, machine),
        Node::Local { .. } => copied(node, scope, machine),
        Node::Variable { name, cost } => variable(name, *cost, machine),
        Node::Path { root, steps } => path(root, steps, scope, machine),
        Node::SelectOptional { operand, field, cost } => select_optional(operand, field, *cost, scope, machine),
        Node::Index { operand, index, optional, cost } => index_of([operand, index], *optional, *cost, scope, machine),
        Node::Conditional(args) => conditional(args, scope, machine),
        Node::Binary { operator, args, call } => binary(*operator, args, call, scope, machine),
        Node::Call { args, call } => plain_call(args, call, scope, machine),
        Node::List(items) => list(items, scope, machine),
        Node::Map(entries) => map(entries, scope, machine),
        Node::Struct { name, fields } => structure(name, fields, scope, machine),
        Node::Gather(rounds) => fold::gather(rounds, scope, machine),
        Node::Bind(args) => fold::bind(args, scope, machine),
        Node::Fold(fold) => fold::expanded(fold, scope, machine),
        Node::Append { up, value } => fold::append(*up, value, scope, machine),
        Node::Insert { up, args } => fold::insert(*up, args, scope, machine),
        Node::Failure(error) => Err(error.clone()),
        Node::Has { .. }
        | Node::And(_)
        | Node::Or(_)
        | Node::Not(_)
        | Node::NotStrictlyFalse(_)
        | Node::Equal { .. }
        | Node::Among { .. } => tested(node, scope, machine),
    }
}

/// Evaluates what has to be true or false; anything else fits no overload of whoever asks.
fn test<'a>(node: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Short<bool> {
    match node {
        Node::Has { operand, field, hint } => has(operand, field, hint, scope, machine),
        Node::And(args) => logical(args, false, scope, machine),
        Node::Or(args) => logical(args, true, scope, machine),
        Node::Not(arg) => not(arg, scope, machine),
        Node::NotStrictlyFalse(arg) => not_strictly_false(arg, scope, machine),
        Node::Equal { negated, args } => equal(args, *negated, scope, machine),
        Node::Among { value, set } => among(value, set, scope, machine),
        Node::Gather(rounds) => fold::test(rounds, scope, machine),
        node => untested(node, scope, machine),
    }
}

/// Evaluates what is only looked at: constants and variables of macros are not copied, others are kept in `own`.
fn held<'h, 'a>(
    node: &'a Node,
    scope: Scopes<'h, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
    own: &'h mut Option<Value<'a>>,
) -> Short<&'h Value<'a>>
where
    'a: 'h,
{
    match node {
        Node::Const(value) => Ok(value),
        Node::Local { up, cost } => {
            machine.meter.charge(*cost)?;
            local(*up, scope)
        }
        node => Ok(own.insert(eval(node, scope, machine)?)),
    }
}

#[inline(never)]
fn folded<'a>(value: &'a Value<'static>, cost: u64, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    machine.meter.charge(cost)?;
    Ok(value.lent())
}

#[inline(never)]
fn copied<'a>(node: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    held(node, scope, machine, &mut None).cloned().map_err(|error| *error)
}

#[inline(never)]
fn tested<'a>(node: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    test(node, scope, machine).map(Value::Bool).map_err(|error| *error)
}

#[inline(never)]
fn untested<'a>(node: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Short<bool> {
    match eval(node, scope, machine)? {
        Value::Bool(value) => Ok(value),
        _ => Err(EvalError::NoSuchOverload.into()),
    }
}

/// A variable of a macro.
fn local<'s, 'a>(up: usize, mut scope: Scopes<'s, 'a>) -> Short<&'s Value<'a>> {
    for _ in 0..up {
        scope = scope.and_then(|scope| scope.outer);
    }
    match scope.map(|scope| &scope.value) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(error.clone().into()),
        None => Err(EvalError::NoSuchOverload.into()),
    }
}

#[inline(never)]
fn has<'a>(
    operand: &'a Node,
    field: &str,
    hint: &FieldHint,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let mut own = None;
    Ok(hint.has(held(operand, scope, machine, &mut own)?, field)?)
}

#[inline(never)]
fn among<'a>(
    value: &'a Node,
    set: &Map<'static>,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let mut own = None;
    let value = held(value, scope, machine, &mut own)?;
    Ok(set.has(value).unwrap_or(false))
}

#[inline(never)]
fn not<'a>(arg: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Short<bool> {
    let value = test(arg, scope, machine)?;
    machine.meter.charge(1)?;
    Ok(!value)
}

#[inline(never)]
fn not_strictly_false<'a>(arg: &'a Node, scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Short<bool> {
    let value = match test(arg, scope, machine) {
        Err(error) if error.is_final() => return Err(error),
        value => value.unwrap_or(true),
    };
    machine.meter.charge(1)?;
    Ok(value)
}

#[inline(never)]
fn variable<'a>(name: &Name, cost: u64, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    machine.meter.charge(cost)?;
    let found = machine.activation.resolve(name, machine.meter);
    found.unwrap_or_else(|| Err(EvalError::NoSuchAttribute(name.to_string())))
}

#[inline(never)]
fn select_optional<'a>(
    operand: &'a Node,
    field: &str,
    cost: u64,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let mut own = None;
    let operand = held(operand, scope, machine, &mut own).map_err(|error| *error)?;
    machine.meter.charge(cost)?;
    operand.select_optional(field)
}

#[inline(never)]
fn conditional<'a>(args: &'a [Node; 3], scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let [condition, then, otherwise] = args;
    let chosen = if test(condition, scope, machine).map_err(|error| *error)? { then } else { otherwise };
    eval(chosen, scope, machine)
}

#[inline(never)]
fn path<'a>(root: &'a Node, steps: &'a [Step], scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let mut own = None;
    let root = held(root, scope, machine, &mut own).map_err(|error| *error)?;
    root.follow(steps, machine.meter)
}

#[inline(never)]
fn index_of<'a>(
    [operand, index]: [&'a Node; 2],
    optional: bool,
    cost: u64,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let (mut left, mut right) = (None, None);
    let operand = held(operand, scope, machine, &mut left).map_err(|error| *error)?;
    let index = held(index, scope, machine, &mut right).map_err(|error| *error)?;
    machine.meter.charge(cost)?;
    if optional { operand.index_optional(index) } else { operand.index(index) }
}

/// `&&` and `||`: what decides wins over an error on the other side.
#[inline(never)]
fn logical<'a>(
    args: &'a [Node; 2],
    decides: bool,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let [left, right] = args;
    let first = match test(left, scope, machine) {
        Ok(value) if value == decides => return Ok(value),
        Ok(_) => return test(right, scope, machine),
        Err(error) if error.is_final() => return Err(error),
        Err(error) => error,
    };
    match test(right, scope, machine) {
        Ok(value) if value == decides => Ok(value),
        Err(error) if error.is_final() => Err(error),
        _ => Err(first),
    }
}

#[inline(never)]
fn equal<'a>(
    args: &'a [Node; 2],
    negated: bool,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Short<bool> {
    let (mut left, mut right) = (None, None);
    let [one, other] = args;
    let one = held(one, scope, machine, &mut left)?;
    let other = held(other, scope, machine, &mut right)?;
    machine.meter.charge(cost::comparison(one, other))?;
    Ok(one.equals(other) != negated)
}

#[inline(never)]
fn binary<'a>(
    operator: Operator,
    args: &'a [Node; 2],
    call: &'a Call,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let [left, right] = args;
    let values = [eval(left, scope, machine)?, eval(right, scope, machine)?];
    if let [Value::Int(a), Value::Int(b)] = &values
        && let Some(value) = integers(operator, *a, *b)
    {
        machine.meter.charge(1)?;
        return Ok(value);
    }
    apply(call, &values, machine)
}

/// Overflow is left to the general road, which knows its error.
fn integers<'a>(operator: Operator, a: i64, b: i64) -> Option<Value<'a>> {
    let order = a.cmp(&b);
    Some(match operator {
        Operator::Add => Value::Int(a.checked_add(b)?),
        Operator::Subtract => Value::Int(a.checked_sub(b)?),
        Operator::Less => Value::Bool(order == Ordering::Less),
        Operator::LessOrEqual => Value::Bool(order != Ordering::Greater),
        Operator::Greater => Value::Bool(order == Ordering::Greater),
        Operator::GreaterOrEqual => Value::Bool(order != Ordering::Less),
        Operator::Other => return None,
    })
}

#[inline(never)]
fn plain_call<'a>(
    args: &'a [Node],
    call: &'a Call,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    // Nearly all calls have one or two arguments.
    match args {
        [one] => {
            let values = [eval(one, scope, machine)?];
            apply(call, &values, machine)
        }
        [one, two] => {
            let values = [eval(one, scope, machine)?, eval(two, scope, machine)?];
            apply(call, &values, machine)
        }
        args => {
            let values = args.iter().map(|arg| eval(arg, scope, machine)).collect::<Out<Vec<_>>>()?;
            apply(call, &values, machine)
        }
    }
}

fn apply<'a>(call: &'a Call, values: &[Value<'a>], machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let (overload, result) = dispatch(call, values).ok_or(EvalError::NoSuchOverload)?;
    machine.meter.charge(call.cost(overload).count(values, result.as_ref().ok()))?;
    result
}

/// The overload that the arguments fit, and what it makes of them.
pub(crate) fn dispatch<'c, 'a>(call: &'c Call, values: &[Value<'a>]) -> Option<(&'c OverloadDecl, Result<'a>)> {
    let overload = call.overloads.iter().find(|overload| {
        let params = &overload.signature.params;
        params.len() == values.len() && params.iter().zip(values).all(|(ty, value)| value.is_of(ty))
    })?;
    let args = Args { values, regex: call.regex.as_ref() };
    Some((overload, (overload.run)(&args)))
}

/// What an optional part adds; nothing for none.
fn part<'a>(
    node: &'a Node,
    optional: bool,
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Out<Option<Value<'a>>> {
    match eval(node, scope, machine)? {
        value if !optional => Ok(Some(value)),
        Value::Optional(value) => Ok(value.map(Arc::unwrap_or_clone)),
        value => Err(EvalError::failed(format!("cannot initialize optional entry from non-optional value {value:?}"))),
    }
}

#[inline(never)]
fn list<'a>(items: &'a [(Node, bool)], scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let mut values = Vec::with_capacity(items.len());
    for (node, optional) in items {
        values.extend(part(node, *optional, scope, machine)?);
    }
    machine.meter.charge(cost::LIST)?;
    Ok(Value::list(values))
}

#[inline(never)]
fn map<'a>(entries: &'a [(Node, Node, bool)], scope: Scopes<'_, 'a>, machine: &mut Machine<'_, '_, 'a>) -> Result<'a> {
    let mut out = Entries::default();
    for (key, value, optional) in entries {
        let key = eval(key, scope, machine)?;
        if let Some(value) = part(value, *optional, scope, machine)? {
            out.insert(key, value)?;
        }
    }
    machine.meter.charge(cost::MAP)?;
    Ok(Value::Map(Map::Shared(Arc::new(out))))
}

#[inline(never)]
fn structure<'a>(
    name: &Name,
    fields: &'a [(Name, Node, bool)],
    scope: Scopes<'_, 'a>,
    machine: &mut Machine<'_, '_, 'a>,
) -> Result<'a> {
    let mut out = Vec::with_capacity(fields.len());
    for (name, value, optional) in fields {
        if let Some(value) = part(value, *optional, scope, machine)? {
            out.push((Name::clone(name), value));
        }
    }
    machine.meter.charge(cost::STRUCT)?;
    Ok(Value::Object(Object::Built(Arc::new(Built { type_name: Name::clone(name), fields: out }))))
}
