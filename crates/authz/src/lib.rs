//! Who may do what: the attributes of a request, the chain of authorizers, and each authorizer. Answers are allow,
//! deny or no opinion; the first that is not "no opinion" decides.

pub mod abac;
mod attributes;
pub mod bootstrap;
mod chain;
pub mod configuration;
pub mod node;
pub mod rbac;
pub mod webhook;

pub use attributes::{Attributes, SelectorRequirement, in_group};
pub use chain::{AlwaysAllow, AlwaysDeny, Authorizer, Chain, Decision, Outcome, RuleSet, aggregate};
