//! discovery.k8s.io/v1beta1: endpoints with a map of where they are. Nobody serves it any more; a store may hold it.

mod endpoint_slice;

pub use endpoint_slice::{Endpoint, EndpointSlice};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.discovery.v1beta1";
/// The API group.
pub const GROUP: &str = "discovery.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
