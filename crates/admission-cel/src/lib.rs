//! Expressions about requests that are to be admitted: those of admission policies, and the match conditions of policies and
//! webhooks. What they may use, of which type they have to be, and what they may cost. Pure: who has to be asked (the
//! authorizer) is asked by the caller, see [`Answers`].
//!
//! A [`Scope`] says which variables there are, an [`Origin`] how much of the language; [`Composition`] adds a policy's own
//! variables. [`compile`] makes a program, and [`evaluate`] computes it over a [`Scene`] within a [`Budget`].
//! Not here: what a policy makes of the values.
//!
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>

mod answers;
mod budget;
mod compile;
mod composition;
mod environment;
mod json;
mod match_conditions;
mod openapi_types;
mod request;
mod scene;
#[cfg(test)]
mod tests;
mod types;

pub use answers::Answers;
pub use budget::{
    AUDIT_ANNOTATIONS, Budget, ExpressionError, MATCH_CONDITIONS, MUTATION, OutOfBudget, VALIDATIONS, evaluate,
};
pub use compile::{CompileError, Compiled, Wanted, compile};
pub use composition::Composition;
pub use environment::{Origin, Scope, environment};
pub use json::{TypeMismatch, json_patch, object_as_json};
pub use match_conditions::{MatchConditions, Matched};
pub use openapi_types::{KnownType, OpenApiTypes};
pub use request::Request;
pub use scene::{Facts, Scene};
