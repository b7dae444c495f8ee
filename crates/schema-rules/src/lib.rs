//! Rules in the expression language that structural schemas state (`x-kubernetes-validations`): whether they compile and
//! what they may cost at most, for definitions; whether they hold, for objects. Pure: schemas and values in, errors in
//! upstream's words and order out.
//!
//! A schema is unpacked into a tree of only those nodes that have rules, or have some below ([`site`]). Definitions look at
//! each rule with [`check`]; objects are looked at by a [`RuleTree`], whose programs are compiled once.
//! Concept:
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>

mod check;
mod compile;
mod correlate;
mod evaluate;
mod site;
mod sizes;
mod tree;

pub use cel::kubernetes::RUNTIME_BUDGET;
pub use check::{Check, KnownExpressions, check};
pub use evaluate::Findings;
pub use tree::{RuleTree, Subject};

#[cfg(test)]
mod tests;
