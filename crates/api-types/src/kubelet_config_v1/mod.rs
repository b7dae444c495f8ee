//! kubelet.config.k8s.io/v1: which programs of a node have credentials for registries, a configuration file of the kubelet.

mod credential_provider;

pub use credential_provider::{
    CredentialProvider, CredentialProviderConfig, ExecEnvVar, ServiceAccountTokenAttributes, cache_type,
};

/// The group and version that files name.
pub const API_VERSION: &str = "kubelet.config.k8s.io/v1";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kubelet.config.v1";
/// The API group.
pub const GROUP: &str = "kubelet.config.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
