//! authentication.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod self_subject_review;
mod token_request;
mod token_review;

pub use self_subject_review::{SelfSubjectReview, SelfSubjectReviewStatus};
pub use token_request::{BoundObjectReference, TokenRequest, TokenRequestSpec, TokenRequestStatus};
pub use token_review::{TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.authentication.v1";
/// The API group.
pub const GROUP: &str = "authentication.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
