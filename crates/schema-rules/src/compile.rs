//! From the text of a rule to programs, and what is wrong with it.

use std::sync::{Arc, LazyLock};

use cel::kubernetes::declared::DeclaredTypes;
use cel::kubernetes::{Minor, environment};
use cel::{Environment, Program, Type};
use schema::structural::ValidationRule;

use crate::site::Typed;

pub(crate) const SELF: &str = "self";
pub(crate) const OLD_SELF: &str = "oldSelf";

/// What expressions may use that are in the store already: all that this release has.
static STORED: LazyLock<Environment> = LazyLock::new(|| environment(Minor(36)));
/// What expressions may use that are new: only what the release before has too, as that may have to read them yet.
static NEW: LazyLock<Environment> = LazyLock::new(|| environment(Minor(35)));

/// What an expression may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Stored,
    New,
}

/// A rule that compiled.
pub(crate) struct Compiled {
    pub(crate) program: Program,
    /// The most that an evaluation may cost.
    pub(crate) most: u64,
    pub(crate) uses_old_self: bool,
    /// The program of the message, and the most that it may cost; or what is wrong with it.
    pub(crate) message: Option<Result<(Program, u64), String>>,
}

/// Compiles the rules of one node.
pub(crate) struct Compiler {
    types: DeclaredTypes,
    self_type: Type,
}

impl Compiler {
    pub(crate) fn of(typed: &Typed) -> Self {
        let declared = &typed.declared;
        let types = DeclaredTypes::default().with(SELF, Arc::clone(declared)).with(OLD_SELF, Arc::clone(declared));
        Self { types, self_type: declared.cel_type() }
    }

    fn environment(&self, known: Known, rule: &ValidationRule) -> Environment {
        let base = match known {
            Known::Stored => &STORED,
            Known::New => &NEW,
        };
        let old = match rule.optional_old_self {
            Some(true) => Type::optional(self.self_type.clone()),
            _ => self.self_type.clone(),
        };
        let env = Environment::clone(base).with_types(Arc::new(self.types.clone()));
        env.with_variable(SELF, self.self_type.clone()).with_variable(OLD_SELF, old)
    }

    /// Compiles a rule and its message; `known` says for each what it may use.
    pub(crate) fn compile(&self, rule: &ValidationRule, known: (Known, Known)) -> Result<Compiled, String> {
        let compiled = self.environment(known.0, rule).compile(&rule.rule);
        let program = compiled.map_err(|issues| format!("compilation failed: {issues}"))?;
        if *program.result_type() != Type::Bool {
            return Err("cel expression must evaluate to a bool".into());
        }
        let message = (!rule.message_expression.is_empty()).then(|| self.message(rule, known.1));
        let most = program.estimate(&self.types).max;
        Ok(Compiled { most, uses_old_self: program.reads(OLD_SELF), program, message })
    }

    fn message(&self, rule: &ValidationRule, known: Known) -> Result<(Program, u64), String> {
        let compiled = self.environment(known, rule).compile(&rule.message_expression);
        let program = compiled.map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
        if *program.result_type() != Type::String {
            return Err("messageExpression must evaluate to a string".into());
        }
        let most = program.estimate(&self.types).max;
        Ok((program, most))
    }
}
