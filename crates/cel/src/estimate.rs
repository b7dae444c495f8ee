//! What an evaluation may cost at least and at most, told from the checked tree and what is known of sizes.
//!
//! Upstream decides by this which rules a custom resource definition may have, so figures are its, also where one could
//! know better.

use std::collections::HashMap;

use crate::ast::{Comprehension, Expr, ExprId, Kind, Literal, Name};
use crate::check::{Checked, Reference};
use crate::cost::{self, Cost};
use crate::types::Type;

/// Least and most of a cost or size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    /// Anything.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// From one figure to another.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// One figure.
    #[must_use]
    pub const fn exactly(value: u64) -> Self {
        Self { min: value, max: value }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// One for each of the other.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        let scale = |value: u64| {
            #[expect(clippy::cast_precision_loss, reason = "costs are rounded up anyway")]
            let scaled = (value as f64 * factor).ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
            let scaled = scaled as u64;
            scaled
        };
        let max = if self.max == u64::MAX && factor >= 1.0 { u64::MAX } else { scale(self.max) };
        Self { min: scale(self.min), max }
    }
}

/// What the caller knows of sizes.
pub trait Hints {
    /// The size of what is at a path: a variable, then fields, `@items`, `@keys` or `@values`.
    fn size(&self, path: &[Name]) -> Option<Range>;
}

/// Nothing is known.
pub struct NoHints;

impl Hints for NoHints {
    fn size(&self, _: &[Name]) -> Option<Range> {
        None
    }
}

/// What an estimate of a call may look at.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) size: Range,
    pub(crate) is_text: bool,
    /// The elements, if it is a list.
    pub(crate) item: Option<Box<Self>>,
}

/// What a call may cost, and how large its result may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEstimate {
    pub(crate) cost: Range,
    pub(crate) result: Option<Range>,
}

pub(crate) fn estimate(checked: &Checked, hints: &dyn Hints) -> Range {
    let mut walk = Walk { checked, hints, seen: HashMap::new(), locals: Vec::new() };
    walk.cost(&checked.parsed.expr)
}

/// What is known of a node's value.
#[derive(Debug, Clone, Default)]
struct Known {
    path: Vec<Name>,
    size: Option<Range>,
    key: Option<Range>,
    value: Option<Range>,
}

struct Walk<'c> {
    checked: &'c Checked,
    hints: &'c dyn Hints,
    seen: HashMap<ExprId, Known>,
    locals: Vec<(Name, Known)>,
}

impl Walk<'_> {
    fn known(&self, expr: &Expr) -> Known {
        self.seen.get(&expr.id).cloned().unwrap_or_default()
    }

    fn note(&mut self, expr: &Expr, known: Known) {
        self.seen.insert(expr.id, known);
    }

    fn size(&self, expr: &Expr) -> Option<Range> {
        let known = self.known(expr);
        if known.size.is_some() {
            return known.size;
        }
        let counted = match &expr.kind {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count()),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Kind::Literal(_) => Some(1),
            Kind::List { elements } => Some(elements.len()),
            Kind::Map { entries } => Some(entries.len()),
            _ => None,
        };
        if let Some(count) = counted {
            return Some(Range::exactly(count as u64));
        }
        let hinted = if known.path.is_empty() { None } else { self.hints.size(&known.path) };
        hinted.or_else(|| is_scalar(self.checked.type_of(expr.id)).then_some(Range::exactly(1)))
    }

    fn size_or_unknown(&self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.kind {
            Kind::Literal(_) => Range::exactly(0),
            Kind::Ident(name) => {
                let local = self.locals.iter().rev().find(|(found, _)| found == name);
                let known = match local {
                    Some((_, known)) => known.clone(),
                    None => Known { path: vec![Name::clone(name)], ..Known::default() },
                };
                self.note(expr, known);
                Range::exactly(cost::SELECT)
            }
            Kind::Select { operand, field, test_only } => self.select(expr, operand, field, *test_only),
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { elements } => {
                let costs =
                    elements.iter().map(|element| self.cost(&element.value)).fold(Range::exactly(0), Range::plus);
                let value = elements.iter().map(|element| self.size_or_unknown(&element.value)).reduce(Range::or);
                let value = Some(value.unwrap_or(Range::exactly(0)));
                self.note(expr, Known { key: Some(Range::exactly(1)), value, ..Known::default() });
                costs.plus(Range::exactly(cost::LIST))
            }
            Kind::Map { entries } => {
                let mut costs = Range::exactly(cost::MAP);
                let (mut key, mut value) = (None, None);
                for entry in entries {
                    costs = costs.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = wider(key, self.size_or_unknown(&entry.key));
                    value = wider(value, self.size_or_unknown(&entry.value));
                }
                let or_none = |size: Option<Range>| Some(size.unwrap_or(Range::exactly(0)));
                self.note(expr, Known { key: or_none(key), value: or_none(value), ..Known::default() });
                costs
            }
            Kind::Struct { fields, .. } => {
                let costs = fields.iter().map(|field| self.cost(&field.value)).fold(Range::exactly(0), Range::plus);
                costs.plus(Range::exactly(cost::STRUCT))
            }
            Kind::Comprehension(fold) if fold.is_bind() => self.bind(expr, fold),
            Kind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &Name, test_only: bool) -> Range {
        if let Some(Reference::Variable(name)) = self.checked.reference(expr.id) {
            self.note(expr, Known { path: vec![Name::clone(name)], ..Known::default() });
            return Range::exactly(cost::SELECT);
        }
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let mut path = self.known(operand).path;
        if !path.is_empty() {
            path.push(Name::clone(field));
        }
        self.note(expr, Known { path, ..Known::default() });
        let counts = matches!(self.checked.type_of(operand.id), Type::Map(_) | Type::Object(_) | Type::Param(_));
        if counts { cost.plus(Range::exactly(cost::SELECT)) } else { cost }
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Range {
        let reference = self.checked.reference(expr.id).cloned();
        let (qualified, overloads) = match reference {
            Some(Reference::Function { qualified, overloads }) => (qualified, overloads),
            _ => (false, Vec::new()),
        };
        let target = target.filter(|_| !qualified);
        let costs: Vec<Range> = args.iter().map(|arg| self.cost(arg)).collect();
        let before = target.map_or(Range::exactly(0), |target| self.cost(target));
        let sum = costs.iter().copied().fold(before, Range::plus);
        if let Some(cost) = self.operator(expr, function, args, &costs) {
            return cost;
        }
        let receiver = target.map(|target| self.node(target));
        let nodes: Vec<Node> = args.iter().map(|arg| self.node(arg)).collect();
        let mut cost: Option<Range> = None;
        let mut size: Option<Range> = None;
        for overload in &overloads {
            let estimate = overload.cost.estimate(receiver.as_ref(), &nodes);
            cost = wider(cost, estimate.cost);
            size = estimate.result.or(size);
        }
        let mut known = self.known(expr);
        known.size = known.size.or(size);
        if overloads.iter().any(|overload| overload.cost == Cost::Chains)
            && let [a, b] = args
        {
            let (a, b) = (self.known(a), self.known(b));
            known.key = both(a.key, b.key);
            known.value = both(a.value, b.value);
        }
        self.note(expr, known);
        sum.plus(cost.unwrap_or(Range::exactly(1)))
    }

    /// What is not by the rule of an overload.
    fn operator(&mut self, expr: &Expr, function: &str, args: &[Expr], costs: &[Range]) -> Option<Range> {
        match (function, args, costs) {
            ("_&&_" | "_||_", _, [a, b]) => Some(Range::new(a.min, a.plus(*b).max)),
            ("_?_:_", [_, a, b], [test, then, otherwise]) => {
                let size = Some(self.size_or_unknown(a).or(self.size_or_unknown(b)));
                let (a, b) = (self.known(a), self.known(b));
                let known = Known { size, key: both(a.key, b.key), value: both(a.value, b.value), path: Vec::new() };
                self.note(expr, known);
                Some(test.plus(then.or(*otherwise)))
            }
            ("_==_" | "_!=_", [a, b], [left, right]) => {
                let nodes = [self.node(a), self.node(b)];
                Some(Cost::Compares.estimate(None, &nodes).cost.plus(*left).plus(*right))
            }
            ("dyn", [arg], [cost]) => {
                let known = self.known(arg);
                let size = self.size(arg);
                self.note(expr, Known { size, path: Vec::new(), ..known });
                Some(cost.plus(Range::exactly(1)))
            }
            ("_[_]", [operand, _], [left, right]) => {
                let known = self.known(operand);
                let mut path = known.path;
                if !path.is_empty() {
                    let list = matches!(self.checked.type_of(operand.id), Type::List(_));
                    path.push(if list { "@items" } else { "@values" }.into());
                }
                self.note(expr, Known { path, size: known.value, ..Known::default() });
                Some(left.plus(*right).plus(Range::exactly(1)))
            }
            _ => None,
        }
    }

    fn node(&self, expr: &Expr) -> Node {
        let known = self.known(expr);
        let ty = self.checked.type_of(expr.id);
        let is_text = matches!(ty, Type::String | Type::Bytes);
        let item = if let Type::List(item) = ty {
            let mut path = known.path.clone();
            path.push("@items".into());
            let hinted = if known.path.is_empty() { None } else { self.hints.size(&path) };
            let scalar = is_scalar(item).then_some(Range::exactly(1));
            let size = known.value.or(hinted).or(scalar).unwrap_or(Range::UNKNOWN);
            Some(Box::new(Node { size, is_text: matches!(**item, Type::String | Type::Bytes), item: None }))
        } else {
            None
        };
        Node { size: self.size_or_unknown(expr), is_text, item }
    }

    fn bind(&mut self, expr: &Expr, fold: &Comprehension) -> Range {
        let before = self.cost(&fold.iter_range).plus(self.cost(&fold.accu_init));
        let known = Known { size: self.size(&fold.accu_init), ..self.known(&fold.accu_init) };
        self.locals.push((Name::clone(&fold.accu_var), known));
        let cost = before.plus(self.cost(&fold.result));
        let known = Known { size: self.size(&fold.result), path: Vec::new(), ..self.known(&fold.result) };
        self.locals.pop();
        self.note(expr, known);
        cost
    }

    fn fold(&mut self, expr: &Expr, fold: &Comprehension) -> Range {
        let before = self.cost(&fold.iter_range).plus(self.cost(&fold.accu_init));
        let depth = self.locals.len();
        let init = self.known(&fold.accu_init);
        let accu = Known { size: self.size(&fold.accu_init), path: Vec::new(), ..init };
        self.locals.push((Name::clone(&fold.accu_var), accu));
        let range = self.known(&fold.iter_range);
        let list = matches!(self.checked.type_of(fold.iter_range.id), Type::List(_));
        let part = |name: &str, size: Option<Range>| {
            let mut path = range.path.clone();
            if !path.is_empty() {
                path.push(name.into());
            }
            Known { path, size, ..Known::default() }
        };
        let keys = part(if list { "@indices" } else { "@keys" }, range.key);
        let values = part(if list { "@items" } else { "@values" }, range.value);
        match &fold.iter_var2 {
            Some(second) => {
                self.locals.push((Name::clone(&fold.iter_var), keys));
                self.locals.push((Name::clone(second), values));
            }
            None => self.locals.push((Name::clone(&fold.iter_var), if list { values } else { keys })),
        }
        let round = self.cost(&fold.loop_condition).plus(self.cost(&fold.loop_step));
        self.locals.truncate(depth + 1);
        let result = self.cost(&fold.result);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.iter_range);
        let known = match &fold.accu_init.kind {
            Kind::Literal(_) => Known { size: self.size(&fold.accu_init), ..Known::default() },
            Kind::List { .. } | Kind::Map { .. } => {
                Known { size: Some(count), path: Vec::new(), ..self.known(&fold.loop_step) }
            }
            _ => Known::default(),
        };
        self.note(expr, known);
        before.plus(result).plus(count.times(round))
    }
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        ty => ty.as_optional().is_some_and(is_scalar),
    }
}

fn wider(before: Option<Range>, more: Range) -> Option<Range> {
    Some(before.map_or(more, |before| before.or(more)))
}

fn both(a: Option<Range>, b: Option<Range>) -> Option<Range> {
    Some(a?.or(b?))
}
