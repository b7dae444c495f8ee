//! certificates.k8s.io/v1: one file per kind, with what it is made of.

mod certificate_signing_request;
pub mod constants;

pub use certificate_signing_request::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.certificates.v1";
/// The API group.
pub const GROUP: &str = "certificates.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
