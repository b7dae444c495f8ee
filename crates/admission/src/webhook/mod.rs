//! What both kinds of admission webhooks share: which are configured, how one is asked, and what its answer comes to.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>
//!
//! Who reaches a webhook over the network is a [`Caller`], the API server's.

mod ask;
mod caller;
mod hook;
mod hooks;
mod question;
mod review;

use crate::Attributes;

pub use caller::{Address, CallError, Caller, Callers, NoCaller, Target};

pub(crate) use ask::{Asking, Failure, over};
pub(crate) use hook::Hook;
pub(crate) use hooks::{Configuration, Hooks};
pub(crate) use question::Question;

/// Webhooks of the API are not asked about these kinds: nobody could remove one that refuses its own removal.
const NEVER_ASKED: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Whether webhooks of the API may be asked about a request.
pub(crate) fn may_be_asked(attributes: &Attributes) -> bool {
    let kind = &attributes.kind;
    kind.group != api_types::admissionregistration_v1::GROUP || !NEVER_ASKED.contains(&&*kind.kind)
}
