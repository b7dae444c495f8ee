//! Validation of the expressions of policies and match conditions. One that is stored already is held against all that
//! this release knows, so that what a newer one wrote can still be updated; a new one against what the release before
//! knows.

use std::collections::BTreeSet;

use admission_cel::{CompileError, Composition, Origin, Scope, Wanted, compile, environment};
use api_machinery::field_path::{ErrorList, Path};
use api_types::admissionregistration_v1::{MatchCondition, Variable};
use cel::kubernetes::declared::is_reserved;

/// What an expression is about, in a policy: which of its stored ones it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExpressionRole {
    Condition,
    Variable,
    Validation,
    Message,
    Annotation,
    Mutation,
}

/// The expressions of the stored object.
pub(super) type Stored<'a> = BTreeSet<(ExpressionRole, &'a str)>;

/// The expressions of conditions.
pub(super) fn of_conditions(conditions: &[MatchCondition]) -> impl Iterator<Item = (ExpressionRole, &str)> {
    conditions.iter().map(|own| (ExpressionRole::Condition, own.expression.as_str()))
}

fn origin(stored: &Stored<'_>, role: ExpressionRole, source: &str) -> Origin {
    if stored.contains(&(role, source)) { Origin::Stored } else { Origin::New }
}

fn told(path: &Path, source: &str, outcome: Result<(), CompileError>, errors: &mut ErrorList) {
    if let Err(error) = outcome {
        errors.push(path.invalid(source, error.to_string()));
    }
}

/// Checks the expression of a condition, which knows no variables.
pub(super) fn condition(
    path: &Path,
    condition: &MatchCondition,
    scope: Scope,
    stored: &Stored<'_>,
    errors: &mut ErrorList,
) {
    let source = condition.expression.trim();
    let env = environment(scope, origin(stored, ExpressionRole::Condition, &condition.expression));
    told(path, source, compile(&env, source, Wanted::Bool).map(|_| ()), errors);
}

/// The expressions of a policy, which know its variables.
pub(super) struct Expressions<'a> {
    new: Composition,
    /// As the stored object may have been written by a newer release.
    lenient: Option<Composition>,
    stored: Stored<'a>,
}

impl<'a> Expressions<'a> {
    pub(super) fn new(scope: Scope, stored: Stored<'a>) -> Self {
        let lenient = (!stored.is_empty()).then(|| Composition::new(scope, Origin::Stored));
        Self { new: Composition::new(scope, Origin::New), lenient, stored }
    }

    pub(super) fn stored(&self) -> &Stored<'a> {
        &self.stored
    }

    fn composition(&self, role: ExpressionRole, source: &str) -> &Composition {
        match origin(&self.stored, role, source) {
            Origin::Stored => self.lenient.as_ref().unwrap_or(&self.new),
            Origin::New => &self.new,
        }
    }

    /// Checks variables, which the expressions that follow may use.
    pub(super) fn variables(&mut self, path: &Path, variables: &[Variable], errors: &mut ErrorList) {
        for (index, variable) in variables.iter().enumerate() {
            let (path, name) = (path.index(index), &variable.name);
            let at = path.child("name");
            if name.trim().is_empty() {
                errors.push(at.required("name is not specified"));
            } else if !is_identifier(name) {
                errors.push(at.invalid(name, "must be a valid CEL identifier"));
            }
            let (at, source) = (path.child("expression"), variable.expression.trim());
            if source.is_empty() {
                errors.push(at.required("expression is not specified"));
                continue;
            }
            let lenient = self.lenient.as_mut().map(|lenient| lenient.add(name, source));
            let strict = self.new.add(name, source);
            let outcome = match origin(&self.stored, ExpressionRole::Variable, &variable.expression) {
                Origin::Stored => lenient.unwrap_or(strict),
                Origin::New => strict,
            };
            told(&at, source, outcome, errors);
        }
    }

    /// Checks an expression of the policy.
    pub(super) fn check(
        &self,
        path: &Path,
        role: ExpressionRole,
        source: &str,
        wanted: Wanted,
        errors: &mut ErrorList,
    ) {
        let composition = self.composition(role, source);
        // Upstream shows those of annotations as they were written.
        let shown = if role == ExpressionRole::Annotation { source } else { source.trim() };
        let source = source.trim();
        let compiled = if role == ExpressionRole::Message {
            compile(composition.without_authorizer(), source, wanted)
        } else {
            compile(composition.environment(), source, wanted)
        };
        told(path, shown, compiled.map(|_| ()), errors);
    }
}

fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    let plain = name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    starts && plain && !is_reserved(name)
}
