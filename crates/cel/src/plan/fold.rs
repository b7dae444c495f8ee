//! Comprehensions: what macros expand to is recognized by its shape, and has nodes of its own, which cost what the expansion
//! costs ([`crate::eval`] derives it).

use crate::ast::{Comprehension, Expr, Kind, Literal, Name};
use crate::cost;

use super::{Node, Planner};

/// A fold over a list or map.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    /// Whether the body has two variables.
    pub(crate) two: bool,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// A macro over a list or map.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) range: Node,
    /// Whether the body has two variables.
    pub(crate) two: bool,
    pub(crate) gathering: Gathering,
}

/// What comes of the rounds of a macro.
#[derive(Debug)]
pub(crate) enum Gathering {
    /// `all` and `exists`: whether the test was once as `decides` says.
    Any { decides: bool, test: Node },
    /// `exists_one`
    One(Node),
    /// `map`, `filter`, `transformList`: the values where the test holds.
    List { test: Option<Node>, value: Node },
    /// `transformMap`, `transformMapEntry`: the entries where the test holds.
    Map { test: Option<Node>, args: Vec<Node> },
}

/// The same before it is planned.
enum Shape<'e> {
    Any { decides: bool, test: &'e Expr },
    One(&'e Expr),
    List { test: Option<&'e Expr>, value: &'e Expr },
    Map { test: Option<&'e Expr>, args: &'e [Expr] },
}

/// The arguments of a function that is no method.
fn call<'e>(expr: &'e Expr, name: &str) -> Option<&'e [Expr]> {
    match &expr.kind {
        Kind::Call { function, target: None, args } if &**function == name => Some(args),
        _ => None,
    }
}

fn is_literal(expr: &Expr, literal: &Literal) -> bool {
    matches!(&expr.kind, Kind::Literal(found) if found == literal)
}

/// The only element of a list that is written so.
fn only_element(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        Kind::List { elements } => match elements.as_slice() {
            [element] if !element.optional => Some(&element.value),
            _ => None,
        },
        _ => None,
    }
}

fn is_empty_list(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::List { elements } if elements.is_empty())
}

fn is_empty_map(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Map { entries } if entries.is_empty())
}

impl Comprehension {
    fn is_accumulator(&self, expr: &Expr) -> bool {
        expr.as_ident() == Some(&self.accu_var)
    }

    /// Whether a name that no source can write is gathered in, so that the body cannot know of it.
    fn is_of_macro(&self) -> bool {
        self.accu_var.starts_with('@')
    }

    fn shape(&self) -> Option<Shape<'_>> {
        if !self.is_of_macro() {
            return None;
        }
        self.any("_&&_", false).or_else(|| self.any("_||_", true)).or_else(|| self.one()).or_else(|| self.gather())
    }

    /// `all` and `exists`, by their operator.
    fn any(&self, operator: &str, decides: bool) -> Option<Shape<'_>> {
        let [accu, test] = call(&self.loop_step, operator)? else { return None };
        let [goes_on] = call(&self.loop_condition, "@not_strictly_false")? else { return None };
        let goes_on = match (decides, call(goes_on, "!_")) {
            (true, Some([accu])) => accu,
            (false, _) => goes_on,
            _ => return None,
        };
        let accumulators = [accu, goes_on, &self.result];
        let fits = is_literal(&self.accu_init, &Literal::Bool(!decides))
            && accumulators.iter().all(|expr| self.is_accumulator(expr));
        fits.then_some(Shape::Any { decides, test })
    }

    fn one(&self) -> Option<Shape<'_>> {
        let one = Literal::Int(1);
        let [test, more, otherwise] = call(&self.loop_step, "_?_:_")? else { return None };
        let [accu, by] = call(more, "_+_")? else { return None };
        let [total, wanted] = call(&self.result, "_==_")? else { return None };
        let fits = is_literal(&self.accu_init, &Literal::Int(0))
            && is_literal(&self.loop_condition, &Literal::Bool(true))
            && is_literal(by, &one)
            && is_literal(wanted, &one)
            && [otherwise, accu, total].iter().all(|expr| self.is_accumulator(expr));
        fits.then_some(Shape::One(test))
    }

    /// What gathers values or entries.
    fn gather(&self) -> Option<Shape<'_>> {
        let (test, step) = match call(&self.loop_step, "_?_:_") {
            Some([test, step, otherwise]) if self.is_accumulator(otherwise) => (Some(test), step),
            Some(_) => return None,
            None => (None, &self.loop_step),
        };
        if !is_literal(&self.loop_condition, &Literal::Bool(true)) || !self.is_accumulator(&self.result) {
            return None;
        }
        match (call(step, "_+_"), call(step, "cel.@mapInsert")) {
            (Some([accu, list]), _) if self.is_accumulator(accu) && is_empty_list(&self.accu_init) => {
                Some(Shape::List { test, value: only_element(list)? })
            }
            (_, Some([accu, args @ ..])) if self.is_accumulator(accu) && is_empty_map(&self.accu_init) => {
                Some(Shape::Map { test, args })
            }
            _ => None,
        }
    }
}

impl Planner<'_> {
    pub(super) fn fold(&mut self, fold: &Comprehension) -> Node {
        if !self.expands && fold.is_bind() {
            let value = self.node(&fold.accu_init, cost::SELECT);
            let result = self.within(&[&fold.accu_var], |planner| planner.node(&fold.result, cost::SELECT));
            return Node::Bind(Box::new([value, result]));
        }
        let range = self.node(&fold.iter_range, cost::SELECT);
        let two = fold.iter_var2.is_some();
        match fold.shape().filter(|_| !self.expands) {
            Some(shape) => {
                let names: Vec<&Name> = std::iter::once(&fold.iter_var).chain(&fold.iter_var2).collect();
                let gathering = self.within(&names, |planner| planner.gathering(&shape));
                Node::Gather(Box::new(Rounds { range, two, gathering }))
            }
            None => Node::Fold(Box::new(self.expanded(fold, range, two))),
        }
    }

    /// Plans what is evaluated with more names in scope.
    fn within<T>(&mut self, names: &[&Name], plan: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.scopes.len();
        self.scopes.extend(names.iter().map(|name| Name::clone(name)));
        let planned = plan(self);
        self.scopes.truncate(depth);
        planned
    }

    fn gathering(&mut self, shape: &Shape<'_>) -> Gathering {
        let mut node = |expr: &Expr| self.node(expr, cost::SELECT);
        match shape {
            Shape::Any { decides, test } => Gathering::Any { decides: *decides, test: node(test) },
            Shape::One(test) => Gathering::One(node(test)),
            Shape::List { test, value } => Gathering::List { test: test.map(&mut node), value: node(value) },
            Shape::Map { test, args } => {
                Gathering::Map { test: test.map(&mut node), args: args.iter().map(node).collect() }
            }
        }
    }

    /// Within the body the accumulator is the innermost variable.
    fn expanded(&mut self, fold: &Comprehension, range: Node, two: bool) -> Fold {
        let init = self.node(&fold.accu_init, cost::SELECT);
        let names: Vec<&Name> =
            std::iter::once(&fold.iter_var).chain(&fold.iter_var2).chain([&fold.accu_var]).collect();
        let (condition, step) = self.within(&names, |planner| {
            let condition = planner.node(&fold.loop_condition, cost::SELECT);
            (condition, planner.step(&fold.loop_step, fold, cost::SELECT))
        });
        let result = self.within(&[&fold.accu_var], |planner| planner.node(&fold.result, cost::SELECT));
        Fold { range, two, init, condition, step, result }
    }

    /// A step that only adds to the accumulator evaluates what it adds in any case.
    fn step(&mut self, step: &Expr, fold: &Comprehension, root: u64) -> Node {
        let is_accu = |expr: &Expr| fold.is_accumulator(expr) && fold.is_of_macro();
        let Kind::Call { function, args, .. } = &step.kind else { return self.node(step, root) };
        let up = self.up(&fold.accu_var).unwrap_or_default();
        match (&**function, args.as_slice()) {
            ("_+_", [a, b]) if is_accu(a) => {
                if let Some(element) = only_element(b) {
                    return Node::Append { up, value: Box::new(self.node(element, cost::SELECT)) };
                }
            }
            ("cel.@mapInsert", [a, rest @ ..]) if is_accu(a) => {
                let args = rest.iter().map(|arg| self.node(arg, cost::SELECT)).collect();
                return Node::Insert { up, args };
            }
            ("_?_:_", [test, then, otherwise]) if is_accu(otherwise) => {
                let test = self.node(test, cost::SELECT);
                let then = self.step(then, fold, 0);
                return Node::Conditional(Box::new([test, then, self.node(otherwise, 0)]));
            }
            _ => {}
        }
        self.node(step, root)
    }
}
