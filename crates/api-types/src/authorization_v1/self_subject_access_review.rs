//! SelfSubjectAccessReview and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{NonResourceAttributes, ResourceAttributes, SubjectAccessReviewStatus};

/// Checks whether the caller may do something.
#[api(kind = "SelfSubjectAccessReview", resource = "selfsubjectaccessreviews")]
pub struct SelfSubjectAccessReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request to check.
    #[field(2, always, required)]
    pub spec: SelfSubjectAccessReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectAccessReviewStatus,
}

/// The caller's request to check. Exactly one kind of attributes is set.
#[api]
pub struct SelfSubjectAccessReviewSpec {
    /// The resource request to check. Excludes nonResourceAttributes.
    #[field(1)]
    pub resource_attributes: Option<ResourceAttributes>,
    /// The URL path request to check. Excludes resourceAttributes.
    #[field(2)]
    pub non_resource_attributes: Option<NonResourceAttributes>,
}
