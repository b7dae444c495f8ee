//! Who may do what: the attributes of a request, the chain of authorizers, and each authorizer. Answers are allow,
//! deny or no opinion; the first that is not "no opinion" decides.

mod attributes;
pub mod bootstrap;
mod chain;
pub mod node;
pub mod rbac;

pub use attributes::{Attributes, SelectorRequirement, in_group};
pub use chain::{AlwaysAllow, AlwaysDeny, Authorizer, Chain, Decision, Outcome, RuleSet, aggregate};
