//! Compiled expressions and their evaluation.

use crate::ast::{Expr, Kind, Literal, Name};
use crate::check::Checked;
use crate::environment::Environment;
use crate::error::{EvalError, Out};
use crate::estimate::{self, Hints, Range};
use crate::eval::{self, Machine};
use crate::plan::{self, Node};
use crate::types::Type;
use crate::value::Value;

/// How many rounds of comprehensions pass between two questions whether anybody still waits.
const INTERRUPT_EVERY: u32 = 100;

/// A compiled expression; shared by whoever evaluates it.
#[derive(Debug)]
pub struct Program {
    root: Node,
    checked: Checked,
}

/// The values of variables, which may borrow for `'a`: longer than the activation is looked at, so that it can keep what it
/// computes.
pub trait Activation<'a> {
    /// The value of a variable, if there is one. What it took to compute it may be charged to the expression.
    fn resolve(&self, name: &str, meter: &mut Meter<'_>) -> Option<Out<Value<'a>>>;
}

/// Variables in a list.
#[derive(Debug, Default)]
pub struct Variables<'v>(Vec<(Name, Value<'v>)>);

impl<'v> Variables<'v> {
    /// With one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value<'v>) -> Self {
        self.0.push((name.into(), value));
        self
    }
}

impl<'v> Activation<'v> for Variables<'v> {
    fn resolve(&self, name: &str, _: &mut Meter<'_>) -> Option<Out<Value<'v>>> {
        self.0.iter().find(|(found, _)| &**found == name).map(|(_, value)| Ok(value.clone()))
    }
}

/// What an evaluation may cost, and who may stop it.
#[derive(Clone, Copy, Default)]
pub struct Budget<'m> {
    /// Units; none is without limit.
    pub limit: Option<u64>,
    /// Tells whether nobody waits any more.
    pub interrupted: Option<&'m dyn Fn() -> bool>,
}

impl Budget<'_> {
    /// So many units.
    #[must_use]
    pub fn of(limit: u64) -> Self {
        Self { limit: Some(limit), interrupted: None }
    }
}

/// What an evaluation has cost so far.
pub struct Meter<'m> {
    cost: u64,
    limit: u64,
    rounds: u32,
    interrupted: Option<&'m dyn Fn() -> bool>,
}

impl<'m> Meter<'m> {
    fn new(budget: Budget<'m>) -> Self {
        let limit = budget.limit.unwrap_or(u64::MAX);
        Self { cost: 0, limit, rounds: 0, interrupted: budget.interrupted }
    }

    /// Adds to the cost.
    ///
    /// # Errors
    /// It is more than it may be now; the evaluation ends.
    pub fn charge(&mut self, cost: u64) -> Out<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostLimit) } else { Ok(()) }
    }

    /// Adds so many units one by one: nothing is counted after the one that is too much.
    pub(crate) fn charge_each(&mut self, units: u64) -> Out<()> {
        let cost = self.cost.saturating_add(units);
        if cost > self.limit {
            self.cost = self.cost.max(self.limit).saturating_add(1).min(cost);
            return Err(EvalError::CostLimit);
        }
        self.cost = cost;
        Ok(())
    }

    /// Units that are left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.cost)
    }

    /// Another round of a comprehension.
    pub(crate) fn tick(&mut self) -> Out<()> {
        self.rounds += 1;
        if self.rounds < INTERRUPT_EVERY {
            return Ok(());
        }
        self.rounds = 0;
        if self.interrupted.is_some_and(|interrupted| interrupted()) { Err(EvalError::Interrupted) } else { Ok(()) }
    }
}

/// What came of an evaluation, and what it cost.
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub result: Out<Value<'a>>,
    /// Units, also where there is no value.
    pub cost: u64,
}

impl Program {
    pub(crate) fn new(_: &Environment, checked: Checked) -> Self {
        let root = plan::plan(&checked);
        Self { root, checked }
    }

    /// The same program with macros evaluated as what they stand for.
    #[cfg(test)]
    pub(crate) fn expanded(self) -> Self {
        Self { root: plan::plan_expanded(&self.checked), ..self }
    }

    /// The type of its value.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        self.checked.type_of(self.checked.parsed.expr.id)
    }

    /// The expression as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.checked.parsed.source
    }

    /// Whether the expression reads a variable.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        self.checked.reads(variable)
    }

    /// Whether the expression selects this field of the variable, as `variable.field` or `variable.?field`.
    #[must_use]
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let is_variable = |expr: &Expr| expr.as_ident().is_some_and(|name| &**name == variable);
        self.checked.parsed.expr.any(&mut |expr| match &expr.kind {
            Kind::Select { operand, field: selected, .. } => is_variable(operand) && &**selected == field,
            Kind::Call { function, target: None, args } if &**function == "_?._" => match args.as_slice() {
                [operand, Expr { kind: Kind::Literal(Literal::String(selected)), .. }] => {
                    is_variable(operand) && &**selected == field
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// The variables that the expression reads; one that is read twice may be there twice.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.checked.variables()
    }

    /// What an evaluation may cost at least and at most.
    #[must_use]
    pub fn estimate(&self, hints: &dyn Hints) -> Range {
        estimate::estimate(&self.checked, hints)
    }

    /// Evaluates the expression.
    pub fn evaluate<'a>(&'a self, activation: &dyn Activation<'a>, budget: Budget<'_>) -> Evaluation<'a> {
        let mut meter = Meter::new(budget);
        let result = eval::eval(&self.root, None, &mut Machine { activation, meter: &mut meter });
        let cost = meter.cost;
        Evaluation { result, cost }
    }
}
