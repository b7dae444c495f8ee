//! CredentialProviderRequest and CredentialProviderResponse: standard input and output of a program.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::time::GoDuration;

/// What an answer is good for.
pub mod cache_key_type {
    values! {
        IMAGE = "Image",
        REGISTRY = "Registry",
        GLOBAL = "Global",
    }
}

/// Asks for credentials for an image.
#[api(kind = "CredentialProviderRequest")]
pub struct CredentialProviderRequest {
    /// The image.
    #[field(0, always, required)]
    pub image: String,
    /// A token of the service account of the pod that the image is for, where the program wants one.
    #[field(0, secret)]
    pub service_account_token: String,
    /// Those of the account's annotations that the program wants.
    #[field(0)]
    pub service_account_annotations: BTreeMap<String, String>,
}

/// What a program has for an image.
#[api(kind = "CredentialProviderResponse")]
pub struct CredentialProviderResponse {
    /// What the answer is good for.
    #[field(0, always, required, values = cache_key_type::ALL, go = "v1.PluginCacheKeyType")]
    pub cache_key_type: String,
    /// How long it is good; as long as the configuration says where it does not.
    #[field(0)]
    pub cache_duration: Option<GoDuration>,
    /// Credentials by patterns of the images that they are for.
    #[field(0)]
    pub auth: BTreeMap<String, AuthConfig>,
}

/// Credentials for a registry.
#[api]
pub struct AuthConfig {
    /// As whom to pull; may be empty for tokens.
    #[field(0, always, required)]
    pub username: String,
    /// With what.
    #[field(0, always, required, secret)]
    pub password: String,
}
