//! LocalSubjectAccessReview.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};

/// Checks whether a user may do something in one namespace.
#[api(kind = "LocalSubjectAccessReview", resource = "localsubjectaccessreviews", namespaced)]
pub struct LocalSubjectAccessReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request to check, whose namespace must match this object's.
    #[field(2, always, required)]
    pub spec: SubjectAccessReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectAccessReviewStatus,
}
