//! authorization.k8s.io/v1beta1: reviews whose groups are called `group`. Nobody serves it any more; webhooks may be asked
//! in it.

mod subject_access_review;

pub use subject_access_review::{LocalSubjectAccessReview, SubjectAccessReview, SubjectAccessReviewSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.authorization.v1beta1";
/// The API group.
pub const GROUP: &str = "authorization.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
