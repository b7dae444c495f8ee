//! apiserver.config.k8s.io/v1: the API server's configuration files.
//!
//! These are file formats, not API objects: no metadata, no protobuf numbers.

mod authentication;
mod authorization;
mod decode;
mod egress;
mod encryption;

pub use crate::tracing_api_v1::TracingConfiguration;
pub use authentication::{
    AnonymousAuthCondition, AnonymousAuthConfig, AuthenticationConfiguration, ClaimMappings, ClaimOrExpression,
    ClaimValidationRule, ExtraMapping, Issuer, JWTAuthenticator, PrefixedClaimOrExpression, UserValidationRule,
};
pub use authorization::{
    AuthorizationConfiguration, AuthorizerConfiguration, WebhookConfiguration, WebhookConnectionInfo,
    WebhookMatchCondition,
};
pub use decode::decode;
pub use egress::{
    EGRESS_API_VERSIONS, EgressConnection, EgressSelection, EgressSelectorConfiguration, EgressTcp, EgressTls,
    EgressTransport, EgressUds,
};
pub use encryption::{
    AESConfiguration, EncryptionConfiguration, IdentityConfiguration, KMSConfiguration, Key, ProviderConfiguration,
    ResourceConfiguration, SecretboxConfiguration,
};

/// The group and version that files name.
pub const API_VERSION: &str = "apiserver.config.k8s.io/v1";

/// What files about who requests are from, what they may do, and traces may name, too; these versions have the same fields.
pub const API_VERSIONS: [&str; 3] =
    [API_VERSION, "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apiserver.pkg.apis.apiserver.v1";
