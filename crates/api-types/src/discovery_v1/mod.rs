//! discovery.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod endpoint_slice;

pub use endpoint_slice::{Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.discovery.v1";
/// The API group.
pub const GROUP: &str = "discovery.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
