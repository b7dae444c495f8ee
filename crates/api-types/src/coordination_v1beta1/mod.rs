//! coordination.k8s.io/v1beta1: one file per kind, with what it is made of.

mod lease_candidate;

pub use lease_candidate::{LeaseCandidate, LeaseCandidateSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.coordination.v1beta1";
/// The API group.
pub const GROUP: &str = "coordination.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
