//! apidiscovery.k8s.io/v2: one file per kind, with what it is made of.

mod api_group_discovery;
pub mod constants;

pub use api_group_discovery::{APIGroupDiscovery, APIResourceDiscovery, APISubresourceDiscovery, APIVersionDiscovery};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.apidiscovery.v2";
/// The API group.
pub const GROUP: &str = "apidiscovery.k8s.io";
/// The version.
pub const VERSION: &str = "v2";
