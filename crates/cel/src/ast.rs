//! The syntax tree of an expression, after macros were expanded.
//!
//! Operators are calls with upstream's names for them (`_+_`, `_?_:_`, `@in`), so that checker, planner and error texts
//! know one kind of call. Every node has a number, by which types, references and positions are kept beside the tree.

use std::sync::Arc;

/// A name that several nodes and tables share.
pub type Name = Arc<str>;

/// The number of a node; 0 is no node.
pub type ExprId = u32;

/// How deep a tree may be. Whoever walks it may recurse.
pub const MAX_DEPTH: u16 = 250;

/// A node.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Its number.
    pub id: ExprId,
    /// How many levels it has, itself included.
    pub depth: u16,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A constant.
    Literal(Literal),
    /// A name; one with a dot in front is looked up outside every container.
    Ident(Name),
    /// `operand.field`, or the test whether it is there.
    Select { operand: Box<Expr>, field: Name, test_only: bool },
    /// A function or operator, with the receiver if it is called as a method.
    Call { function: Name, target: Option<Box<Expr>>, args: Vec<Expr> },
    /// `[a, ?b]`.
    List { elements: Vec<Element> },
    /// `{a: b, ?c: d}`.
    Map { entries: Vec<Entry> },
    /// `name{a: b}`.
    Struct { name: Name, fields: Vec<FieldInit> },
    /// What macros over lists and maps become.
    Comprehension(Box<Comprehension>),
}

/// A constant as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Name),
    Bytes(Arc<[u8]>),
}

/// An element of a list literal.
#[derive(Debug, Clone)]
pub struct Element {
    pub value: Expr,
    /// The value is an optional; none adds no element.
    pub optional: bool,
}

/// An entry of a map literal.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: ExprId,
    pub key: Expr,
    pub value: Expr,
    /// The value is an optional; none adds no entry.
    pub optional: bool,
}

/// A field of a struct literal.
#[derive(Debug, Clone)]
pub struct FieldInit {
    pub id: ExprId,
    pub name: Name,
    pub value: Expr,
    /// The value is an optional; none leaves the field unset.
    pub optional: bool,
}

/// A fold over a list or map.
#[derive(Debug, Clone)]
pub struct Comprehension {
    pub iter_range: Expr,
    pub iter_var: Name,
    /// The second variable: the element beside its index, or the value beside its key.
    pub iter_var2: Option<Name>,
    pub accu_var: Name,
    pub accu_init: Expr,
    pub loop_condition: Expr,
    pub loop_step: Expr,
    pub result: Expr,
}

impl Comprehension {
    /// Whether it only gives a value a name (`cel.bind`).
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.iter_range.kind, Kind::List { elements } if elements.is_empty())
            && matches!(self.loop_condition.kind, Kind::Literal(Literal::Bool(false)))
    }

    fn parts(&self) -> [&Expr; 5] {
        [&self.iter_range, &self.accu_init, &self.loop_condition, &self.loop_step, &self.result]
    }
}

impl Expr {
    /// A node over its children.
    pub fn new(id: ExprId, kind: Kind) -> Self {
        let mut depth = 0;
        kind.each_child(&mut |child| depth = depth.max(child.depth));
        Self { id, depth: depth.saturating_add(1), kind }
    }

    /// The name, if the node is nothing else.
    #[must_use]
    pub fn as_ident(&self) -> Option<&Name> {
        if let Kind::Ident(name) = &self.kind { Some(name) } else { None }
    }

    /// `a.b.c` as one name, if the node is names and selections only.
    #[must_use]
    pub fn as_qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test_only: false } => {
                operand.as_qualified_name().map(|name| format!("{name}.{field}"))
            }
            _ => None,
        }
    }

    /// Whether a node of the tree satisfies `test`.
    pub fn any(&self, test: &mut dyn FnMut(&Self) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.kind.each_child(&mut |child| found = found || child.any(test));
        found
    }
}

impl Kind {
    /// Calls `visit` with each child.
    pub fn each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            Self::Literal(_) | Self::Ident(_) => {}
            Self::Select { operand, .. } => visit(operand),
            Self::Call { target, args, .. } => {
                target.iter().for_each(|target| visit(target));
                args.iter().for_each(visit);
            }
            Self::List { elements } => elements.iter().for_each(|element| visit(&element.value)),
            Self::Map { entries } => entries.iter().for_each(|entry| {
                visit(&entry.key);
                visit(&entry.value);
            }),
            Self::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
            Self::Comprehension(fold) => fold.parts().into_iter().for_each(visit),
        }
    }
}
