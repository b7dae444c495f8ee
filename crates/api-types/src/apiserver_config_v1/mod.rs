//! apiserver.config.k8s.io/v1: the API server's configuration files.
//!
//! These are file formats, not API objects: no metadata, no protobuf numbers.

mod encryption;

pub use encryption::{
    AESConfiguration, EncryptionConfiguration, IdentityConfiguration, KMSConfiguration, Key, ProviderConfiguration,
    ResourceConfiguration, SecretboxConfiguration,
};

/// The group and version that files name.
pub const API_VERSION: &str = "apiserver.config.k8s.io/v1";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apiserver.pkg.apis.apiserver.v1";
