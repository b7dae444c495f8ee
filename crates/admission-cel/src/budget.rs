//! What evaluations may cost.

use cel::Value;

use crate::compile::{CompileError, Compiled};
use crate::scene::Scene;

/// Units for all match conditions of a webhook or policy.
pub const MATCH_CONDITIONS: u64 = 2_500_000;
/// Units for all validations of a policy with one binding and one parameter, their messages included.
pub const VALIDATIONS: u64 = cel::kubernetes::RUNTIME_BUDGET;
/// Units for all audit annotations.
pub const AUDIT_ANNOTATIONS: u64 = cel::kubernetes::RUNTIME_BUDGET;
/// Units for one mutation.
pub const MUTATION: u64 = cel::kubernetes::RUNTIME_BUDGET;

/// Units that are left to expressions that share them.
#[derive(Debug, Clone, Copy)]
pub struct Budget(u64);

/// Nothing is left; nothing more is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("validation failed due to running out of cost budget, no further validation rules will be run")]
pub struct OutOfBudget;

/// Why an expression has no value; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is stored, but does not compile.
    #[error("compilation error: {0}")]
    Compile(CompileError),
    /// It failed.
    #[error("expression '{expression}' resulted in error: {error}")]
    Evaluate {
        /// The expression.
        expression: String,
        /// What happened.
        error: cel::EvalError,
    },
}

impl Budget {
    /// So many units.
    #[must_use]
    pub const fn of(units: u64) -> Self {
        Self(units)
    }

    /// Units that are left.
    #[must_use]
    pub const fn left(self) -> u64 {
        self.0
    }

    fn pay(&mut self, cost: u64) -> Result<(), OutOfBudget> {
        let left = self.0.checked_sub(cost);
        self.0 = left.unwrap_or_default();
        left.map(|_| ()).ok_or(OutOfBudget)
    }
}

/// Evaluates an expression, and pays for it.
///
/// # Errors
/// Nothing is left in the budget.
pub fn evaluate<'a>(
    compiled: &'a Compiled,
    scene: &Scene<'a>,
    budget: &mut Budget,
) -> Result<Result<Value<'a>, ExpressionError>, OutOfBudget> {
    let program = match &compiled.program {
        Ok(program) => program,
        Err(error) => return Ok(Err(ExpressionError::Compile(error.clone()))),
    };
    let done = program.evaluate(scene, scene.limits());
    budget.pay(done.cost.saturating_add(scene.take_owed()))?;
    Ok(done.result.map_err(|error| ExpressionError::Evaluate { expression: compiled.source.clone(), error }))
}
