//! abac.authorization.kubernetes.io/v1beta1: the policies of mode ABAC, a file format.

mod policy;

pub use policy::{Policy, PolicySpec};

/// The group and version that policies name.
pub const API_VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kubernetes.pkg.apis.abac.v1beta1";
