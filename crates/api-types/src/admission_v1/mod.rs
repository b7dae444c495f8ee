//! admission.k8s.io/v1: the question that admission webhooks are asked, and their answer.

mod admission_review;

pub use admission_review::{AdmissionRequest, AdmissionResponse, AdmissionReview};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.admission.v1";
/// The API group.
pub const GROUP: &str = "admission.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
