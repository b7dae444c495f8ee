//! SubjectAccessReview and LocalSubjectAccessReview.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::StringList;
use api_machinery::meta::ObjectMeta;

use crate::authorization_v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReviewStatus};

/// Checks whether a user may do something.
#[api(kind = "SubjectAccessReview", resource = "subjectaccessreviews")]
pub struct SubjectAccessReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request to check.
    #[field(2, always)]
    pub spec: SubjectAccessReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectAccessReviewStatus,
}

/// Checks whether a user may do something in one namespace.
#[api(kind = "LocalSubjectAccessReview", resource = "localsubjectaccessreviews", namespaced)]
pub struct LocalSubjectAccessReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request to check.
    #[field(2, always)]
    pub spec: SubjectAccessReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectAccessReviewStatus,
}

/// The request to check.
#[api]
pub struct SubjectAccessReviewSpec {
    /// The resource request to check.
    #[field(1)]
    pub resource_attributes: Option<ResourceAttributes>,
    /// The URL path request to check.
    #[field(2)]
    pub non_resource_attributes: Option<NonResourceAttributes>,
    /// User to check for.
    #[field(3)]
    pub user: String,
    /// Groups of the user to check for.
    #[field(4)]
    pub group: Vec<String>,
    /// Further user data from the authenticator.
    #[field(5)]
    pub extra: BTreeMap<String, StringList>,
    /// Unique identifier of the user.
    #[field(6)]
    pub uid: String,
}
