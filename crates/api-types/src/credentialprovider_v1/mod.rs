//! credentialprovider.kubelet.k8s.io/v1: what the kubelet and programs that have credentials for registries say to each other.

mod exchange;

pub use exchange::{AuthConfig, CredentialProviderRequest, CredentialProviderResponse, cache_key_type};

/// The group and version.
pub const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";
/// All versions that programs may speak. Older ones know no tokens, and have the same fields otherwise.
pub const API_VERSIONS: [&str; 3] =
    [API_VERSION, "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"];

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kubelet.pkg.apis.credentialprovider.v1";
/// The API group.
pub const GROUP: &str = "credentialprovider.kubelet.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
