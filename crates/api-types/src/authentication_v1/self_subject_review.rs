//! SelfSubjectReview and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::UserInfo;

/// Tells who the caller is.
#[api(kind = "SelfSubjectReview", resource = "selfsubjectreviews")]
pub struct SelfSubjectReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Result, filled in by the server.
    #[field(2)]
    pub status: SelfSubjectReviewStatus,
}

/// The identity of the caller.
#[api]
pub struct SelfSubjectReviewStatus {
    /// User attributes of the caller.
    #[field(1)]
    pub user_info: UserInfo,
}
