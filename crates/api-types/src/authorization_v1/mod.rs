//! authorization.k8s.io/v1: one file per kind, with what it is made of.

mod local_subject_access_review;
mod self_subject_access_review;
mod self_subject_rules_review;
mod subject_access_review;

pub use local_subject_access_review::LocalSubjectAccessReview;
pub use self_subject_access_review::{SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
pub use self_subject_rules_review::{
    NonResourceRule, ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
pub use subject_access_review::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.authorization.v1";
/// The API group.
pub const GROUP: &str = "authorization.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
