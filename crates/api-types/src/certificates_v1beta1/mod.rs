//! certificates.k8s.io/v1beta1: one file per kind, with what it is made of.

mod cluster_trust_bundle;
pub mod constants;
mod pod_certificate_request;

pub use cluster_trust_bundle::{ClusterTrustBundle, ClusterTrustBundleSpec};
pub use pod_certificate_request::{PodCertificateRequest, PodCertificateRequestSpec, PodCertificateRequestStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.certificates.v1beta1";
/// The API group.
pub const GROUP: &str = "certificates.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
