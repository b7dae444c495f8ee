//! Evaluation of planned nodes.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ast::Name;
use crate::cost::{self, Cost};
use crate::environment::OverloadDecl;
use crate::error::{EvalError, Out};
use crate::function::Args;
use crate::plan::{Call, Fold, Node, Operator};
use crate::program::{Activation, Meter};
use crate::value::{Built, Entries, List, Map, Object, Value};

/// What an evaluation goes by.
pub(crate) struct Frame<'r, 'm, 'a> {
    pub(crate) activation: &'r dyn Activation<'a>,
    pub(crate) locals: Vec<Out<Value<'a>>>,
    pub(crate) meter: &'r mut Meter<'m>,
}

type Result<'a> = Out<Value<'a>>;

pub(crate) fn eval<'a>(node: &'a Node, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    match node {
        Node::Const(value) => Ok(value.clone()),
        Node::Folded(value, cost) => {
            frame.meter.charge(*cost)?;
            Ok(value.clone())
        }
        Node::Local { slot, cost } => {
            frame.meter.charge(*cost)?;
            frame.locals.get(*slot).cloned().unwrap_or(Err(EvalError::NoSuchOverload))
        }
        Node::Variable { name, cost } => variable(name, *cost, frame),
        Node::Select { operand, field, hint, optional, cost } => {
            let operand = eval(operand, frame)?;
            frame.meter.charge(*cost)?;
            if *optional { operand.select_optional(field) } else { hint.select(&operand, field) }
        }
        Node::Has { operand, field, hint } => hint.has(&eval(operand, frame)?, field).map(Value::Bool),
        Node::Index { operand, index, optional, cost } => {
            let operand = eval(operand, frame)?;
            let index = eval(index, frame)?;
            frame.meter.charge(*cost)?;
            if *optional { operand.index_optional(&index) } else { operand.index(&index) }
        }
        Node::And(args) => logical(args, false, frame),
        Node::Or(args) => logical(args, true, frame),
        Node::Not(arg) => match eval(arg, frame)? {
            Value::Bool(value) => {
                frame.meter.charge(1)?;
                Ok(Value::Bool(!value))
            }
            _ => Err(EvalError::NoSuchOverload),
        },
        Node::Conditional(args) => conditional(args, frame),
        Node::NotStrictlyFalse(arg) => not_strictly_false(arg, frame),
        Node::Equal { negated, args } => equal(args, *negated, frame),
        Node::Among { value, set } => {
            let value = eval(value, frame)?;
            Ok(Value::Bool(set.has(&value).unwrap_or(false)))
        }
        Node::Binary { operator, args, call } => binary(*operator, args, call, frame),
        Node::Call { args, call } => plain_call(args, call, frame),
        Node::List(items) => list(items, frame),
        Node::Map(entries) => map(entries, frame),
        Node::Struct { name, fields } => structure(name, fields, frame),
        Node::Fold(fold) => run_fold(fold, frame),
        Node::Append { slot, value } => append(*slot, value, frame),
        Node::Insert { slot, args } => insert(*slot, args, frame),
        Node::Failure(error) => Err(error.clone()),
    }
}

fn variable<'a>(name: &Name, cost: u64, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    frame.meter.charge(cost)?;
    let found = frame.activation.resolve(name, frame.meter);
    found.unwrap_or_else(|| Err(EvalError::NoSuchAttribute(name.to_string())))
}

/// `&&` and `||`: what decides wins over an error on the other side.
fn logical<'a>(args: &'a [Node; 2], decides: bool, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let [left, right] = args;
    let first = match eval(left, frame) {
        Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(value)),
        Ok(Value::Bool(_)) => None,
        Ok(_) => Some(EvalError::NoSuchOverload),
        Err(error) if error.is_final() => return Err(error),
        Err(error) => Some(error),
    };
    match (eval(right, frame), first) {
        (Ok(Value::Bool(value)), _) if value == decides => Ok(Value::Bool(value)),
        (Err(error), _) if error.is_final() => Err(error),
        (_, Some(error)) | (Err(error), None) => Err(error),
        (Ok(Value::Bool(value)), None) => Ok(Value::Bool(value)),
        (Ok(_), None) => Err(EvalError::NoSuchOverload),
    }
}

fn conditional<'a>(args: &'a [Node; 3], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let [condition, then, otherwise] = args;
    match eval(condition, frame)? {
        Value::Bool(true) => eval(then, frame),
        Value::Bool(false) => eval(otherwise, frame),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn not_strictly_false<'a>(arg: &'a Node, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let value = match eval(arg, frame) {
        Ok(Value::Bool(value)) => value,
        Err(error) if error.is_final() => return Err(error),
        _ => true,
    };
    frame.meter.charge(1)?;
    Ok(Value::Bool(value))
}

fn equal<'a>(args: &'a [Node; 2], negated: bool, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let [left, right] = args;
    let values = [eval(left, frame)?, eval(right, frame)?];
    frame.meter.charge(Cost::Compares.count(&values, None))?;
    let [left, right] = &values;
    Ok(Value::Bool(left.equals(right) != negated))
}

fn binary<'a>(operator: Operator, args: &'a [Node; 2], call: &'a Call, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let [left, right] = args;
    let values = [eval(left, frame)?, eval(right, frame)?];
    if let [Value::Int(a), Value::Int(b)] = &values
        && let Some(value) = integers(operator, *a, *b)
    {
        frame.meter.charge(1)?;
        return Ok(value);
    }
    apply(call, &values, frame)
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

fn plain_call<'a>(args: &'a [Node], call: &'a Call, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    // Nearly all calls have one or two arguments.
    match args {
        [one] => {
            let values = [eval(one, frame)?];
            apply(call, &values, frame)
        }
        [one, two] => {
            let values = [eval(one, frame)?, eval(two, frame)?];
            apply(call, &values, frame)
        }
        args => {
            let values = args.iter().map(|arg| eval(arg, frame)).collect::<Out<Vec<_>>>()?;
            apply(call, &values, frame)
        }
    }
}

fn apply<'a>(call: &'a Call, values: &[Value<'a>], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let (overload, result) = dispatch(call, values).ok_or(EvalError::NoSuchOverload)?;
    frame.meter.charge(call.cost(overload).count(values, result.as_ref().ok()))?;
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
fn part<'a>(node: &'a Node, optional: bool, frame: &mut Frame<'_, '_, 'a>) -> Out<Option<Value<'a>>> {
    match eval(node, frame)? {
        value if !optional => Ok(Some(value)),
        Value::Optional(value) => Ok(value.map(Arc::unwrap_or_clone)),
        value => Err(EvalError::failed(format!("cannot initialize optional entry from non-optional value {value:?}"))),
    }
}

fn list<'a>(items: &'a [(Node, bool)], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let mut values = Vec::with_capacity(items.len());
    for (node, optional) in items {
        values.extend(part(node, *optional, frame)?);
    }
    frame.meter.charge(cost::LIST)?;
    Ok(Value::list(values))
}

fn map<'a>(entries: &'a [(Node, Node, bool)], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let mut out = Entries::default();
    for (key, value, optional) in entries {
        let key = eval(key, frame)?;
        if let Some(value) = part(value, *optional, frame)? {
            out.insert(key, value)?;
        }
    }
    frame.meter.charge(cost::MAP)?;
    Ok(Value::Map(Map::Shared(Arc::new(out))))
}

fn structure<'a>(name: &Name, fields: &'a [(Name, Node, bool)], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let mut out = Vec::with_capacity(fields.len());
    for (name, value, optional) in fields {
        if let Some(value) = part(value, *optional, frame)? {
            out.push((Name::clone(name), value));
        }
    }
    frame.meter.charge(cost::STRUCT)?;
    Ok(Value::Object(Object::Built(Arc::new(Built { type_name: Name::clone(name), fields: out }))))
}

fn run_fold<'a>(fold: &'a Fold, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let range = eval(&fold.range, frame)?;
    let init = match eval(&fold.init, frame) {
        Err(error) if error.is_final() => return Err(error),
        init => init,
    };
    set(frame, fold.accu, init);
    match &range {
        Value::List(list) => over_list(fold, list, frame)?,
        Value::Map(map) => over_map(fold, map, frame)?,
        _ => return Err(EvalError::NoSuchOverload),
    }
    eval(&fold.result, frame)
}

fn set<'a>(frame: &mut Frame<'_, '_, 'a>, slot: usize, value: Result<'a>) {
    if let Some(place) = frame.locals.get_mut(slot) {
        *place = value;
    }
}

fn over_list<'a>(fold: &'a Fold, list: &List<'a>, frame: &mut Frame<'_, '_, 'a>) -> Out<()> {
    for index in 0..list.len() {
        let Some(item) = list.get(index) else { break };
        match fold.second {
            Some(second) => {
                set(frame, fold.first, Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))));
                set(frame, second, Ok(item));
            }
            None => set(frame, fold.first, Ok(item)),
        }
        if !step(fold, frame)? {
            break;
        }
    }
    Ok(())
}

fn over_map<'a>(fold: &'a Fold, map: &Map<'a>, frame: &mut Frame<'_, '_, 'a>) -> Out<()> {
    for key in map.keys() {
        if let Some(second) = fold.second {
            let value = map.get(&key)?.ok_or_else(|| EvalError::NoSuchKey(key.to_display()));
            set(frame, second, value);
        }
        set(frame, fold.first, Ok(key));
        if !step(fold, frame)? {
            break;
        }
    }
    Ok(())
}

/// One round; tells whether there may be another.
fn step<'a>(fold: &'a Fold, frame: &mut Frame<'_, '_, 'a>) -> Out<bool> {
    frame.meter.tick()?;
    if matches!(eval(&fold.condition, frame)?, Value::Bool(false)) {
        return Ok(false);
    }
    let value = match eval(&fold.step, frame) {
        Err(error) if error.is_final() => return Err(error),
        value => value,
    };
    set(frame, fold.accu, value);
    Ok(true)
}

/// Takes what is in a slot, so that nobody else holds it.
fn take<'a>(frame: &mut Frame<'_, '_, 'a>, slot: usize) -> Result<'a> {
    let place = frame.locals.get_mut(slot).ok_or(EvalError::NoSuchOverload)?;
    std::mem::replace(place, Ok(Value::Null))
}

fn append<'a>(slot: usize, value: &'a Node, frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let value = eval(value, frame);
    let accu = take(frame, slot)?;
    let value = value?;
    frame.meter.charge(cost::SELECT + cost::LIST + 1)?;
    let Value::List(List::Shared(mut items)) = accu else { return Err(EvalError::NoSuchOverload) };
    Arc::make_mut(&mut items).push(value);
    Ok(Value::List(List::Shared(items)))
}

fn insert<'a>(slot: usize, args: &'a [Node], frame: &mut Frame<'_, '_, 'a>) -> Result<'a> {
    let args = args.iter().map(|arg| eval(arg, frame)).collect::<Out<Vec<_>>>();
    let accu = take(frame, slot)?;
    let args = args?;
    frame.meter.charge(cost::SELECT + 1)?;
    let Value::Map(Map::Shared(mut map)) = accu else { return Err(EvalError::NoSuchOverload) };
    let entries = Arc::make_mut(&mut map);
    match args.as_slice() {
        [key, value] => entries.insert(key.clone(), value.clone())?,
        [Value::Map(more)] => {
            for (key, value) in more.iter() {
                entries.insert(key, value)?;
            }
        }
        _ => return Err(EvalError::NoSuchOverload),
    }
    Ok(Value::Map(Map::Shared(map)))
}
