//! The kinds of authentication.k8s.io/v1.

mod self_subject_review;
mod token_review;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] =
    &[&Typed::<self_subject_review::SelfSubjectReviewRules>::new(), &Typed::<token_review::TokenReviewRules>::new()];
