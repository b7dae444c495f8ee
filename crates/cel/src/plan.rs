//! From checked trees to nodes that evaluate fast: names are resolved, constants computed, costs noted.
//!
//! Upstream reads a chain of selections as one attribute, which decides where a selection costs one more; the notes here
//! say the same of each node.

use std::sync::Arc;

use regex::Regex;

use crate::ast::{Expr, Kind, Literal, Name};
use crate::check::{Checked, Reference};
use crate::cost::{self, Cost};
use crate::environment::OverloadDecl;
use crate::error::{EvalError, Out};
use crate::eval;
use crate::pattern;
use crate::value::{FieldHint, List, Map, Step, Value};

mod fold;

pub(crate) use fold::{Fold, Gathering, Rounds};

/// A node to evaluate.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    /// A constant that was computed, and what that cost.
    Folded(Value<'static>, u64),
    Failure(EvalError),
    /// A variable of a macro, so many scopes further out.
    Local {
        up: usize,
        cost: u64,
    },
    Variable {
        name: Name,
        cost: u64,
    },
    /// Fields that are selected one of the other.
    Path {
        root: Box<Self>,
        steps: Vec<Step>,
    },
    /// A field as an optional.
    SelectOptional {
        operand: Box<Self>,
        field: Name,
        cost: u64,
    },
    Has {
        operand: Box<Self>,
        field: Name,
        hint: FieldHint,
    },
    Index {
        operand: Box<Self>,
        index: Box<Self>,
        optional: bool,
        cost: u64,
    },
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    Not(Box<Self>),
    NotStrictlyFalse(Box<Self>),
    Conditional(Box<[Self; 3]>),
    Equal {
        negated: bool,
        args: Box<[Self; 2]>,
    },
    /// Whether a value is among constants.
    Among {
        value: Box<Self>,
        set: Map<'static>,
    },
    Binary {
        operator: Operator,
        args: Box<[Self; 2]>,
        call: Box<Call>,
    },
    Call {
        args: Vec<Self>,
        call: Box<Call>,
    },
    List(Vec<(Self, bool)>),
    Map(Vec<(Self, Self, bool)>),
    Struct {
        name: Name,
        fields: Vec<(Name, Self, bool)>,
    },
    /// What most macros become.
    Gather(Box<Rounds>),
    /// What `cel.bind` becomes: a value, and what is computed with it.
    Bind(Box<[Self; 2]>),
    /// Any other comprehension.
    Fold(Box<Fold>),
    /// A value is appended to the list so many scopes further out.
    Append {
        up: usize,
        value: Box<Self>,
    },
    /// Entries are added to the map so many scopes further out.
    Insert {
        up: usize,
        args: Vec<Self>,
    },
}

/// Which function a call means.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) overloads: Vec<Arc<OverloadDecl>>,
    /// The pattern, where it is constant.
    pub(crate) regex: Option<Regex>,
}

/// Operators that are done at once for the most frequent types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Other,
}

/// Functions whose last argument is a pattern.
const PATTERN_FUNCTIONS: [&str; 3] = ["matches", "find", "findAll"];
/// Functions that upstream computes before, for nothing, where the argument is constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

pub(crate) fn plan(checked: &Checked) -> Node {
    Planner { checked, scopes: Vec::new(), expands: false }.node(&checked.parsed.expr, cost::SELECT)
}

/// The same with macros evaluated as what they stand for, which the nodes that are made for them must not differ from.
#[cfg(test)]
pub(crate) fn plan_expanded(checked: &Checked) -> Node {
    Planner { checked, scopes: Vec::new(), expands: true }.node(&checked.parsed.expr, cost::SELECT)
}

struct Planner<'c> {
    checked: &'c Checked,
    /// The names of the scopes around a node, as they are when it is evaluated.
    scopes: Vec<Name>,
    expands: bool,
}

impl Planner<'_> {
    /// `root` is what reading the name at the root of a chain costs.
    fn node(&mut self, expr: &Expr, root: u64) -> Node {
        match &expr.kind {
            Kind::Literal(literal) => Node::Const(Value::of_literal(literal)),
            Kind::Ident(name) => self.ident(expr, name, root),
            Kind::Select { operand, field, test_only } => self.select(expr, operand, field, *test_only, root),
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args, root),
            Kind::List { elements } => {
                let items = elements.iter().map(|e| (self.node(&e.value, cost::SELECT), e.optional)).collect();
                folded_list(items)
            }
            Kind::Map { entries } => {
                let entries = entries.iter().map(|entry| {
                    let key = self.node(&entry.key, cost::SELECT);
                    (key, self.node(&entry.value, cost::SELECT), entry.optional)
                });
                folded_map(entries.collect())
            }
            Kind::Struct { fields, .. } => match self.checked.reference(expr.id) {
                Some(Reference::Struct(name)) => {
                    let fields = fields
                        .iter()
                        .map(|field| (Name::clone(&field.name), self.node(&field.value, cost::SELECT), field.optional));
                    Node::Struct { name: Name::clone(name), fields: fields.collect() }
                }
                _ => Node::Failure(EvalError::failed("unknown type")),
            },
            Kind::Comprehension(fold) => self.fold(fold),
        }
    }

    /// How many scopes further out a name is.
    fn up(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().position(|found| &**found == name)
    }

    fn ident(&self, expr: &Expr, name: &Name, cost: u64) -> Node {
        if let Some(up) = self.up(name) {
            return Node::Local { up, cost };
        }
        self.referred(expr, cost).unwrap_or_else(|| Node::Failure(EvalError::NoSuchAttribute(name.to_string())))
    }

    fn referred(&self, expr: &Expr, cost: u64) -> Option<Node> {
        match self.checked.reference(expr.id)? {
            Reference::Variable(name) => Some(Node::Variable { name: Name::clone(name), cost }),
            Reference::Constant(value) => Some(Node::Const(value.clone())),
            _ => None,
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &Name, test_only: bool, root: u64) -> Node {
        if let Some(node) = self.referred(expr, root) {
            return node;
        }
        if test_only {
            // The test costs nothing, and pays for the name at the root.
            let operand = Box::new(self.node(operand, 0));
            return Node::Has { operand, field: Name::clone(field), hint: FieldHint::default() };
        }
        let operand = self.node(operand, root);
        let step = Step::new(field, cost::SELECT + operand.relative(root));
        match operand {
            Node::Path { root, mut steps } => {
                steps.push(step);
                Node::Path { root, steps }
            }
            operand => Node::Path { root: Box::new(operand), steps: vec![step] },
        }
    }

    fn index(&mut self, args: &[Expr], optional: bool, root: u64) -> Node {
        let [operand, index] = args else { return Node::Failure(EvalError::NoSuchOverload) };
        let operand = self.node(operand, root);
        let index = self.node(index, cost::SELECT);
        let by = if index.is_chain() { 0 } else { cost::SELECT };
        let cost = by + operand.relative(root);
        Node::Index { operand: Box::new(operand), index: Box::new(index), optional, cost }
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr], root: u64) -> Node {
        match (function, args) {
            ("_[_]", args) => return self.index(args, false, root),
            ("_[?_]", args) => return self.index(args, true, root),
            ("_?._", [operand, field]) => return self.optional_select(operand, field, root),
            ("_&&_", [a, b]) => return Node::And(self.pair(a, b)),
            ("_||_", [a, b]) => return Node::Or(self.pair(a, b)),
            ("!_", [a]) => return Node::Not(Box::new(self.node(a, cost::SELECT))),
            ("_==_", [a, b]) => return Node::Equal { negated: false, args: self.pair(a, b) },
            ("_!=_", [a, b]) => return Node::Equal { negated: true, args: self.pair(a, b) },
            ("@not_strictly_false", [a]) => {
                return Node::NotStrictlyFalse(Box::new(self.node(a, cost::SELECT)));
            }
            // Branches that are names cost nothing but for what is selected of them.
            ("_?_:_", [c, a, b]) => {
                return Node::Conditional(Box::new([self.node(c, cost::SELECT), self.node(a, 0), self.node(b, 0)]));
            }
            _ => {}
        }
        self.plain_call(expr, function, target, args)
    }

    fn pair(&mut self, a: &Expr, b: &Expr) -> Box<[Node; 2]> {
        Box::new([self.node(a, cost::SELECT), self.node(b, cost::SELECT)])
    }

    fn optional_select(&mut self, operand: &Expr, field: &Expr, root: u64) -> Node {
        let Kind::Literal(Literal::String(field)) = &field.kind else {
            return Node::Failure(EvalError::NoSuchOverload);
        };
        let operand = self.node(operand, root);
        let cost = cost::SELECT + operand.relative(root);
        Node::SelectOptional { operand: Box::new(operand), field: Name::clone(field), cost }
    }

    fn plain_call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Node {
        let (qualified, overloads) = match self.checked.reference(expr.id) {
            Some(Reference::Function { qualified, overloads }) => (*qualified, overloads.clone()),
            _ => return Node::Failure(EvalError::failed(format!("no such overload: {function}"))),
        };
        let target = target.filter(|_| !qualified);
        let all: Vec<Node> = target.into_iter().chain(args).map(|arg| self.node(arg, cost::SELECT)).collect();
        let mut regex = None;
        if PATTERN_FUNCTIONS.contains(&function)
            && let Some(Node::Const(value)) = all.get(1)
        {
            regex = value.as_str().and_then(|text| pattern::compile(text).ok());
        }
        let call = Box::new(Call { overloads, regex });
        if let ("@in", [_, Node::Const(Value::List(list))], [_]) = (function, all.as_slice(), &*call.overloads)
            && let Some(set) = constants(list)
        {
            let value = all.into_iter().next().unwrap_or(Node::Failure(EvalError::NoSuchOverload));
            return Node::Among { value: Box::new(value), set };
        }
        fold_call(function, all, call)
    }
}

impl Node {
    /// Whether upstream sees it as part of a chain of selections.
    fn is_chain(&self) -> bool {
        matches!(
            self,
            Self::Local { .. }
                | Self::Variable { .. }
                | Self::Path { .. }
                | Self::SelectOptional { .. }
                | Self::Index { .. }
                | Self::Conditional(_)
                | Self::Const(_)
                | Self::Has { .. }
        ) && !matches!(self, Self::Const(_))
    }

    /// What it costs to select from something that is no chain.
    fn relative(&self, root: u64) -> u64 {
        if self.is_chain() { 0 } else { root }
    }

    fn is_const(&self) -> bool {
        matches!(self, Self::Const(_))
    }
}

fn folded_list(items: Vec<(Node, bool)>) -> Node {
    if !items.iter().all(|(node, optional)| node.is_const() && !optional) {
        return Node::List(items);
    }
    let values =
        items.into_iter().filter_map(|(node, _)| if let Node::Const(value) = node { Some(value) } else { None });
    Node::Const(Value::list(values.collect()))
}

fn folded_map(entries: Vec<(Node, Node, bool)>) -> Node {
    let mut pairs = Vec::new();
    for (key, value, optional) in &entries {
        match (key, value, optional) {
            (Node::Const(key), Node::Const(value), false) => pairs.push((key.clone(), value.clone())),
            _ => return Node::Map(entries),
        }
    }
    Value::map(pairs).map_or(Node::Map(entries), Node::Const)
}

/// Constants as a set to look values up in, if all of them can be in one.
fn constants(list: &List<'static>) -> Option<Map<'static>> {
    let mut set = crate::value::Entries::default();
    for item in list.iter() {
        match set.insert(item, Value::Null) {
            Ok(()) | Err(EvalError::RepeatedKey(_)) => {}
            Err(_) => return None,
        }
    }
    Some(Map::Shared(Arc::new(set)))
}

fn operator(function: &str) -> Operator {
    match function {
        "_+_" => Operator::Add,
        "_-_" => Operator::Subtract,
        "_<_" => Operator::Less,
        "_<=_" => Operator::LessOrEqual,
        "_>_" => Operator::Greater,
        "_>=_" => Operator::GreaterOrEqual,
        _ => Operator::Other,
    }
}

/// A call, computed at once where all arguments are constant.
fn fold_call(function: &str, args: Vec<Node>, call: Box<Call>) -> Node {
    let values: Option<Vec<Value<'static>>> =
        args.iter().map(|arg| if let Node::Const(value) = arg { Some(value.clone()) } else { None }).collect();
    if let Some(values) = values
        && let Some((value, cost)) = fold_values(&call, &values)
    {
        return if CONVERSIONS.contains(&function) { Node::Const(value) } else { Node::Folded(value, cost) };
    }
    match <[Node; 2]>::try_from(args) {
        Ok(args) if operator(function) != Operator::Other => {
            Node::Binary { operator: operator(function), args: Box::new(args), call }
        }
        Ok(args) => Node::Call { args: args.into(), call },
        Err(args) => Node::Call { args, call },
    }
}

fn fold_values(call: &Call, values: &[Value<'static>]) -> Option<(Value<'static>, u64)> {
    let (overload, result): (_, Out<Value<'static>>) = eval::dispatch(call, values)?;
    let value = result.ok()?;
    let cost = call.cost(overload).count(values, Some(&value));
    Some((value, cost))
}

impl Call {
    /// The rule by which the call costs.
    pub(crate) fn cost(&self, overload: &OverloadDecl) -> Cost {
        if overload.cost.needs_overload() && self.overloads.len() > 1 { Cost::Fixed(1) } else { overload.cost }
    }
}
