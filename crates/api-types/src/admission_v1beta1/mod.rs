//! admission.k8s.io/v1beta1: as v1, by its older name.

use api_machinery::api;

use crate::admission_v1::{AdmissionRequest, AdmissionResponse};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.admission.v1beta1";
/// The API group.
pub const GROUP: &str = "admission.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";

mod admission_review {
    use super::*;

    /// A request, and what a webhook has to say of it.
    #[api(kind = "AdmissionReview")]
    pub struct AdmissionReview {
        /// What is asked.
        #[field(1)]
        pub request: Option<AdmissionRequest>,
        /// What is answered.
        #[field(2)]
        pub response: Option<AdmissionResponse>,
    }
}

pub use admission_review::AdmissionReview;
