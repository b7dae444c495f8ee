//! coordination.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod lease;

pub use lease::{Lease, LeaseSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.coordination.v1";
/// The API group.
pub const GROUP: &str = "coordination.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
