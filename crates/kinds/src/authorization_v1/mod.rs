//! The kinds of authorization.k8s.io/v1.

mod local_subject_access_review;
mod self_subject_access_review;
mod self_subject_rules_review;
mod subject_access_review;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<local_subject_access_review::LocalSubjectAccessReviewRules>::new(),
    &Typed::<self_subject_access_review::SelfSubjectAccessReviewRules>::new(),
    &Typed::<self_subject_rules_review::SelfSubjectRulesReviewRules>::new(),
    &Typed::<subject_access_review::SubjectAccessReviewRules>::new(),
];
