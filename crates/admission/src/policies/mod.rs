//! Admission policies: what is bound, with which parameters, and what comes of their expressions. The two plugins
//! ([`crate::plugins`]) are the ways in; here is what they share, and the evaluation of each kind.
//!
//! A policy's expressions are compiled when it is first seen, and shared by all requests until the policy changes.
//! Evaluations are functions of what was looked up before; only questions to the authorizer need a wait
//! ([`crate::expressions`]).

mod annotations;
mod bound;
mod decision;
mod failure;
mod invocations;
pub(crate) mod mutating;
mod params;
mod patch;
#[cfg(test)]
mod tests;
pub(crate) mod validating;
mod views;

use admission_cel::ExpressionError;
use api_types::admissionregistration_v1::GROUP;

pub(crate) use bound::{Policy, Sets};
pub(crate) use decision::PolicyDecision;
pub(crate) use invocations::{Invocation, Plan, plan};
pub use params::ParamResource;
pub(crate) use views::Views;

use crate::Attributes;
use crate::recorder::PolicyError;

/// The policies and their bindings, which are not subject to any of the API.
const OWN: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];
/// Questions that are answered and not stored; a policy about them could keep the server from asking itself.
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Whether no policy is asked, whatever it is about.
pub(crate) fn is_exempt(attributes: &Attributes) -> bool {
    REVIEWS.contains(&(attributes.group.as_str(), attributes.resource.as_str()))
}

/// Whether only the policies of files are asked.
fn is_own(attributes: &Attributes) -> bool {
    attributes.group == GROUP && OWN.contains(&attributes.resource.as_str())
}

/// What metrics call an error of an expression.
fn kind_of(error: &ExpressionError) -> PolicyError {
    match error {
        ExpressionError::Compile(_) => PolicyError::Compile,
        ExpressionError::Evaluate { .. } => PolicyError::Invalid,
    }
}
