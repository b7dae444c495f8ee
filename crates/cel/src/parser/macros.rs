//! Macros: calls that stand for other trees.
//!
//! One row for each; an environment says which sets of them it has.

use crate::ast::{Comprehension, Element, Entry, Expr, Kind, Literal, Name};
use crate::issue::Issue;

use super::{Parse, Parser};

/// The variable that macros gather results in; no source can name it.
pub(crate) const ACCUMULATOR: &str = "@result";
const UNUSED: &str = "#unused";

type Expand = fn(&mut Parser<'_>, usize, Expr, Vec<Expr>) -> Parse<Expr>;

struct Macro {
    name: &'static str,
    /// What the receiver has to be.
    receiver: Receiver,
    args: usize,
    set: Set,
    expand: Expand,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    None,
    Any,
    Namespace(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    Standard,
    TwoVariable,
    Optional,
    Bindings,
}

/// Which macros an environment has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MacroSet {
    /// Comprehensions with two variables.
    pub two_variable: bool,
    /// `optMap` and `optFlatMap`.
    pub optional: bool,
    /// `cel.bind`.
    pub bindings: bool,
    /// `sortBy`.
    pub sort_by: bool,
    /// `cel.block` and its kin, which only tests of the language use.
    pub block: bool,
    /// `math.greatest` and `math.least` of any number of arguments.
    pub math: bool,
}

pub(super) enum Expanded {
    Macro(Expr),
    Plain(Option<Expr>, Vec<Expr>),
}

const MACROS: &[Macro] = &[
    Macro { name: "has", receiver: Receiver::None, args: 1, set: Set::Standard, expand: has },
    Macro { name: "all", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: all },
    Macro { name: "exists", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: exists },
    Macro { name: "exists_one", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: exists_one },
    Macro { name: "existsOne", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: exists_one },
    Macro { name: "map", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: map },
    Macro { name: "map", receiver: Receiver::Any, args: 3, set: Set::Standard, expand: map },
    Macro { name: "filter", receiver: Receiver::Any, args: 2, set: Set::Standard, expand: filter },
    Macro { name: "all", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: all },
    Macro { name: "exists", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: exists },
    Macro { name: "exists_one", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: exists_one },
    Macro { name: "existsOne", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: exists_one },
    Macro { name: "transformList", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: transform_list },
    Macro { name: "transformList", receiver: Receiver::Any, args: 4, set: Set::TwoVariable, expand: transform_list },
    Macro { name: "transformMap", receiver: Receiver::Any, args: 3, set: Set::TwoVariable, expand: transform_map },
    Macro { name: "transformMap", receiver: Receiver::Any, args: 4, set: Set::TwoVariable, expand: transform_map },
    Macro {
        name: "transformMapEntry",
        receiver: Receiver::Any,
        args: 3,
        set: Set::TwoVariable,
        expand: transform_entry,
    },
    Macro {
        name: "transformMapEntry",
        receiver: Receiver::Any,
        args: 4,
        set: Set::TwoVariable,
        expand: transform_entry,
    },
    Macro { name: "optMap", receiver: Receiver::Any, args: 2, set: Set::Optional, expand: opt_map },
    Macro { name: "optFlatMap", receiver: Receiver::Any, args: 2, set: Set::Optional, expand: opt_flat_map },
    Macro { name: "bind", receiver: Receiver::Namespace("cel"), args: 3, set: Set::Bindings, expand: bind },
];

impl MacroSet {
    /// Every macro that expressions of users may have.
    #[must_use]
    pub fn all() -> Self {
        Self { two_variable: true, optional: true, bindings: true, sort_by: true, block: false, math: true }
    }

    fn has(self, set: Set) -> bool {
        match set {
            Set::Standard => true,
            Set::TwoVariable => self.two_variable,
            Set::Optional => self.optional,
            Set::Bindings => self.bindings,
        }
    }

    pub(super) fn expand(
        &self,
        parser: &mut Parser<'_>,
        offset: usize,
        name: &str,
        target: Option<Expr>,
        mut args: Vec<Expr>,
    ) -> Parse<Expanded> {
        let namespace = target.as_ref().and_then(Expr::as_ident).map(Name::clone);
        let found = MACROS.iter().find(|entry| {
            let receiver = match entry.receiver {
                Receiver::None => target.is_none(),
                Receiver::Any => target.is_some(),
                Receiver::Namespace(wanted) => namespace.as_deref() == Some(wanted),
            };
            entry.name == name && entry.args == args.len() && receiver && self.has(entry.set)
        });
        if let Some(entry) = found {
            let target = match target {
                Some(target) => target,
                None => args.pop().ok_or_else(|| error(offset, "invalid arguments"))?,
            };
            return (entry.expand)(parser, offset, target, args).map(Expanded::Macro);
        }
        match (namespace.as_deref(), name) {
            (Some("cel"), _) if self.block => block(parser, offset, name, target, args),
            (Some("math"), "greatest" | "least") if self.math => {
                extreme(parser, offset, name, args).map(Expanded::Macro)
            }
            (_, "sortBy") if self.sort_by && args.len() == 2 && target.is_some() => {
                sort_by(parser, offset, target, args).map(Expanded::Macro)
            }
            _ => Ok(Expanded::Plain(target, args)),
        }
    }
}

fn error(offset: usize, message: &str) -> Issue {
    Issue { offset, message: message.to_owned() }
}

impl Parser<'_> {
    fn accu(&mut self, at: usize) -> Parse<Expr> {
        self.node(at, Kind::Ident(ACCUMULATOR.into()))
    }

    fn literal(&mut self, at: usize, literal: Literal) -> Parse<Expr> {
        self.node(at, Kind::Literal(literal))
    }

    fn place(&self, expr: &Expr) -> usize {
        self.offsets.get(expr.id as usize).map_or(0, |offset| *offset as usize)
    }

    /// The arguments without the names of variables in front, and these.
    fn variables(&mut self, args: Vec<Expr>, count: usize) -> Parse<(Vec<Name>, Vec<Expr>)> {
        let mut names: Vec<Name> = Vec::new();
        let mut rest = Vec::new();
        for (index, arg) in args.into_iter().enumerate() {
            if index >= count {
                rest.push(arg);
                continue;
            }
            let at = self.place(&arg);
            let Some(name) = arg.as_ident().filter(|name| !name.starts_with('.')) else {
                return Err(error(at, "argument must be a simple name"));
            };
            if &**name == ACCUMULATOR || &**name == "__result__" {
                return Err(error(at, "iteration variable overwrites accumulator variable"));
            }
            if names.contains(name) {
                return Err(error(at, &format!("duplicate variable name: {name}")));
            }
            names.push(Name::clone(name));
        }
        Ok((names, rest))
    }

    /// The last of the arguments, and the one before it, if there is one.
    fn body(&mut self, at: usize, mut args: Vec<Expr>) -> Parse<(Option<Expr>, Expr)> {
        let body = args.pop().ok_or_else(|| error(at, "invalid arguments"))?;
        Ok((args.pop(), body))
    }

    fn fold(&mut self, at: usize, range: Expr, names: &[Name], accumulation: Accumulation) -> Parse<Expr> {
        let mut names = names.iter().map(Name::clone);
        let fold = Comprehension {
            iter_range: range,
            iter_var: names.next().unwrap_or_else(|| UNUSED.into()),
            iter_var2: names.next(),
            accu_var: ACCUMULATOR.into(),
            accu_init: accumulation.init,
            loop_condition: accumulation.condition,
            loop_step: accumulation.step,
            result: accumulation.result,
        };
        self.node(at, Kind::Comprehension(Box::new(fold)))
    }

    fn bound(&mut self, at: usize, name: Name, value: Expr, result: Expr) -> Parse<Expr> {
        let fold = Comprehension {
            iter_range: self.node(at, Kind::List { elements: Vec::new() })?,
            iter_var: UNUSED.into(),
            iter_var2: None,
            loop_condition: self.literal(at, Literal::Bool(false))?,
            loop_step: self.node(at, Kind::Ident(Name::clone(&name)))?,
            accu_var: name,
            accu_init: value,
            result,
        };
        self.node(at, Kind::Comprehension(Box::new(fold)))
    }
}

/// What a comprehension gathers, from its first value to its last.
struct Accumulation {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

fn has(parser: &mut Parser<'_>, at: usize, target: Expr, _: Vec<Expr>) -> Parse<Expr> {
    match target.kind {
        Kind::Select { operand, field, test_only: false } => {
            parser.node(at, Kind::Select { operand, field, test_only: true })
        }
        _ => Err(error(parser.place(&target), "invalid argument to has() macro")),
    }
}

fn all(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let count = args.len() - 1;
    let (names, rest) = p.variables(args, count)?;
    let (_, test) = p.body(at, rest)?;
    let accu = p.accu(at)?;
    let condition = p.call(at, "@not_strictly_false", vec![accu])?;
    let accu = p.accu(at)?;
    let accumulation = Accumulation {
        init: p.literal(at, Literal::Bool(true))?,
        condition,
        step: p.call(at, "_&&_", vec![accu, test])?,
        result: p.accu(at)?,
    };
    p.fold(at, range, &names, accumulation)
}

fn exists(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let count = args.len() - 1;
    let (names, rest) = p.variables(args, count)?;
    let (_, test) = p.body(at, rest)?;
    let accu = p.accu(at)?;
    let not = p.call(at, "!_", vec![accu])?;
    let condition = p.call(at, "@not_strictly_false", vec![not])?;
    let accu = p.accu(at)?;
    let accumulation = Accumulation {
        init: p.literal(at, Literal::Bool(false))?,
        condition,
        step: p.call(at, "_||_", vec![accu, test])?,
        result: p.accu(at)?,
    };
    p.fold(at, range, &names, accumulation)
}

fn exists_one(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let count = args.len() - 1;
    let (names, rest) = p.variables(args, count)?;
    let (_, test) = p.body(at, rest)?;
    let (accu, one) = (p.accu(at)?, p.literal(at, Literal::Int(1))?);
    let more = p.call(at, "_+_", vec![accu, one])?;
    let accu = p.accu(at)?;
    let step = p.call(at, "_?_:_", vec![test, more, accu])?;
    let (accu, one) = (p.accu(at)?, p.literal(at, Literal::Int(1))?);
    let accumulation = Accumulation {
        init: p.literal(at, Literal::Int(0))?,
        condition: p.literal(at, Literal::Bool(true))?,
        step,
        result: p.call(at, "_==_", vec![accu, one])?,
    };
    p.fold(at, range, &names, accumulation)
}

/// A fold that appends `value` for each element that passes `test`.
fn gather(p: &mut Parser<'_>, at: usize, range: Expr, names: &[Name], test: Option<Expr>, value: Expr) -> Parse<Expr> {
    let accu = p.accu(at)?;
    let one = p.node(at, Kind::List { elements: vec![Element { value, optional: false }] })?;
    let step = p.call(at, "_+_", vec![accu, one])?;
    let init = p.node(at, Kind::List { elements: Vec::new() })?;
    conditionally(p, at, range, names, test, init, step)
}

fn conditionally(
    p: &mut Parser<'_>,
    at: usize,
    range: Expr,
    names: &[Name],
    test: Option<Expr>,
    init: Expr,
    step: Expr,
) -> Parse<Expr> {
    let step = match test {
        None => step,
        Some(test) => {
            let accu = p.accu(at)?;
            p.call(at, "_?_:_", vec![test, step, accu])?
        }
    };
    let accumulation = Accumulation { init, condition: p.literal(at, Literal::Bool(true))?, step, result: p.accu(at)? };
    p.fold(at, range, names, accumulation)
}

fn map(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (names, rest) = p.variables(args, 1)?;
    let (test, value) = p.body(at, rest)?;
    gather(p, at, range, &names, test, value)
}

fn filter(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (names, rest) = p.variables(args, 1)?;
    let (_, test) = p.body(at, rest)?;
    let name = names.first().map_or_else(|| UNUSED.into(), Name::clone);
    let value = p.node(at, Kind::Ident(name))?;
    gather(p, at, range, &names, Some(test), value)
}

fn transform_list(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (names, rest) = p.variables(args, 2)?;
    let (test, value) = p.body(at, rest)?;
    gather(p, at, range, &names, test, value)
}

fn transform_map(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (names, rest) = p.variables(args, 2)?;
    let (test, value) = p.body(at, rest)?;
    let key = p.node(at, Kind::Ident(names.first().map_or_else(|| UNUSED.into(), Name::clone)))?;
    let accu = p.accu(at)?;
    let step = p.call(at, "cel.@mapInsert", vec![accu, key, value])?;
    let init = p.node(at, Kind::Map { entries: Vec::<Entry>::new() })?;
    conditionally(p, at, range, &names, test, init, step)
}

fn transform_entry(p: &mut Parser<'_>, at: usize, range: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (names, rest) = p.variables(args, 2)?;
    let (test, value) = p.body(at, rest)?;
    let accu = p.accu(at)?;
    let step = p.call(at, "cel.@mapInsert", vec![accu, value])?;
    let init = p.node(at, Kind::Map { entries: Vec::<Entry>::new() })?;
    conditionally(p, at, range, &names, test, init, step)
}

fn method(p: &mut Parser<'_>, at: usize, target: Expr, function: &str) -> Parse<Expr> {
    p.node(at, Kind::Call { function: function.into(), target: Some(Box::new(target)), args: Vec::new() })
}

fn opt_map(p: &mut Parser<'_>, at: usize, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
    optional(p, at, target, args, true)
}

fn opt_flat_map(p: &mut Parser<'_>, at: usize, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
    optional(p, at, target, args, false)
}

fn optional(p: &mut Parser<'_>, at: usize, target: Expr, args: Vec<Expr>, wrapped: bool) -> Parse<Expr> {
    let (mut names, rest) = p.variables(args, 1)?;
    let (_, result) = p.body(at, rest)?;
    let name = names.pop().unwrap_or_else(|| UNUSED.into());
    let tested = p.copy(&target)?;
    let test = method(p, at, tested, "hasValue")?;
    let value = method(p, at, target, "value")?;
    let mut then = p.bound(at, name, value, result)?;
    if wrapped {
        then = p.call(at, "optional.of", vec![then])?;
    }
    let none = p.call(at, "optional.none", Vec::new())?;
    p.call(at, "_?_:_", vec![test, then, none])
}

fn bind(p: &mut Parser<'_>, at: usize, _: Expr, args: Vec<Expr>) -> Parse<Expr> {
    let (mut names, rest) = p.variables(args, 1)?;
    let (value, result) = p.body(at, rest)?;
    let (Some(name), Some(value)) = (names.pop(), value) else { return Err(error(at, "invalid arguments")) };
    p.bound(at, name, value, result)
}

/// `l.sortBy(e, key)` sorts by the keys that a fold over the same list gives.
fn sort_by(p: &mut Parser<'_>, at: usize, target: Option<Expr>, args: Vec<Expr>) -> Parse<Expr> {
    const LIST: &str = "@__sortBy_input__";
    let (names, rest) = p.variables(args, 1)?;
    let (_, key) = p.body(at, rest)?;
    let target = target.ok_or_else(|| error(at, "invalid arguments"))?;
    let range = p.node(at, Kind::Ident(LIST.into()))?;
    let keys = gather(p, at, range, &names, None, key)?;
    let list = p.node(at, Kind::Ident(LIST.into()))?;
    let function = "@sortByAssociatedKeys".into();
    let sorted = p.node(at, Kind::Call { function, target: Some(Box::new(list)), args: vec![keys] })?;
    p.bound(at, LIST.into(), target, sorted)
}

/// `math.greatest(a, b, c)` is a call of one list where there are more than two arguments.
fn extreme(p: &mut Parser<'_>, at: usize, name: &str, args: Vec<Expr>) -> Parse<Expr> {
    let (function, least) = if name == "greatest" { ("math.@max", false) } else { ("math.@min", true) };
    let word = if least { "math.least()" } else { "math.greatest()" };
    if args.is_empty() {
        return Err(error(at, &format!("{word} requires at least one argument")));
    }
    for arg in &args {
        if is_no_number(arg) {
            let what = if args.len() == 1 { "single argument value" } else { "simple literal arguments" };
            let single = matches!(arg.kind, Kind::List { .. }) && args.len() == 1;
            if !single {
                return Err(error(p.place(arg), &format!("{word} invalid {what}")));
            }
            let Kind::List { elements } = &arg.kind else { continue };
            if elements.is_empty() || elements.iter().any(|element| is_no_number(&element.value)) {
                return Err(error(p.place(arg), &format!("{word} invalid single argument value")));
            }
        }
    }
    if args.len() <= 2 {
        return p.call(at, function, args);
    }
    let elements = args.into_iter().map(|value| Element { value, optional: false }).collect();
    let list = p.node(at, Kind::List { elements })?;
    p.call(at, function, vec![list])
}

fn is_no_number(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(literal) => !matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)),
        Kind::List { .. } | Kind::Map { .. } | Kind::Struct { .. } => true,
        _ => false,
    }
}

/// The forms that the language's tests use to write what an optimizer would make.
fn block(p: &mut Parser<'_>, at: usize, name: &str, target: Option<Expr>, mut args: Vec<Expr>) -> Parse<Expanded> {
    let numbers: Vec<i64> = args
        .iter()
        .filter_map(|arg| if let Kind::Literal(Literal::Int(number)) = arg.kind { Some(number) } else { None })
        .collect();
    let ident = match (name, numbers.as_slice()) {
        ("index", [index]) => format!("@index{index}"),
        ("iterVar", [depth, index]) => format!("@it:{depth}:{index}"),
        ("accuVar", [depth, index]) => format!("@ac:{depth}:{index}"),
        ("block", _) if args.len() == 2 => {
            let (Some(result), Some(slots)) = (args.pop(), args.pop()) else {
                return Err(error(at, "invalid arguments"));
            };
            let Kind::List { elements } = slots.kind else { return Err(error(at, "cel.block needs a list")) };
            let mut out = result;
            for (index, element) in elements.into_iter().enumerate().rev() {
                out = p.bound(at, format!("@index{index}").into(), element.value, out)?;
            }
            return Ok(Expanded::Macro(out));
        }
        _ => return Ok(Expanded::Plain(target, args)),
    };
    p.node(at, Kind::Ident(ident.into())).map(Expanded::Macro)
}
