//! apiregistration.k8s.io/v1: one file per kind, with what it is made of.

mod api_service;
pub mod constants;

pub use api_service::{APIService, APIServiceCondition, APIServiceSpec, APIServiceStatus, ServiceReference};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1";
/// The API group.
pub const GROUP: &str = "apiregistration.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
