//! CredentialProviderConfig: programs that have credentials for registries.

use api_machinery::api;
use api_machinery::time::GoDuration;

/// For what an answer that was got with a token is kept.
pub mod cache_type {
    values! {
        SERVICE_ACCOUNT = "ServiceAccount",
        TOKEN = "Token",
    }
}

/// Programs that have credentials for registries.
#[api(kind = "CredentialProviderConfig")]
pub struct CredentialProviderConfig {
    /// The programs. All that have to do with an image are asked; of what they say about the same, the first counts.
    #[field(0, always, required)]
    pub providers: Vec<CredentialProvider>,
}

/// One program.
#[api]
pub struct CredentialProvider {
    /// Its file in the kubelet's directory of such programs.
    #[field(0, always, required)]
    pub name: String,
    /// Patterns of the images that it is asked about: a host with globs, maybe a port and a path.
    #[field(0, always, required)]
    pub match_images: Vec<String>,
    /// How long an answer is kept that does not say so.
    #[field(0, always, required)]
    pub default_cache_duration: Option<GoDuration>,
    /// The version of the exchange that it speaks.
    #[field(0, always, required)]
    pub api_version: String,
    /// What it is started with.
    #[field(0)]
    pub args: Vec<String>,
    /// What it has in its environment beside the kubelet's own.
    #[field(0)]
    pub env: Vec<ExecEnvVar>,
    /// What it wants of the service accounts of pods; nothing where this is missing.
    #[field(0)]
    pub token_attributes: Option<ServiceAccountTokenAttributes>,
}

/// A variable of a program's environment.
#[api]
pub struct ExecEnvVar {
    /// Its name.
    #[field(0, always, required)]
    pub name: String,
    /// What it is.
    #[field(0, always, required, secret)]
    pub value: String,
}

/// What a program wants of the service accounts of pods.
#[api]
pub struct ServiceAccountTokenAttributes {
    /// For whom tokens are.
    #[field(0, always, required)]
    pub service_account_token_audience: String,
    /// Whether what a token brought is kept for the token, or for the account.
    #[field(0, always, required, values = cache_type::ALL, go = "v1.ServiceAccountTokenCacheType")]
    pub cache_type: String,
    /// Whether pods without an account do without the program.
    #[field(0, always, required)]
    pub require_service_account: Option<bool>,
    /// Annotations that it is told, without which an account does without it.
    #[field(0, set)]
    pub required_service_account_annotation_keys: Vec<String>,
    /// Annotations that it is told where an account has them.
    #[field(0, set)]
    pub optional_service_account_annotation_keys: Vec<String>,
}
