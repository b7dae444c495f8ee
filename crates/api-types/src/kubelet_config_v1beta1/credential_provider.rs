//! CredentialProviderConfig as it was before programs got tokens.

use api_machinery::api;
use api_machinery::time::GoDuration;

use crate::kubelet_config_v1::{self, ExecEnvVar};

/// Programs that have credentials for registries.
#[api(group = "kubelet.config.k8s.io", version = "v1beta1", kind = "CredentialProviderConfig")]
pub struct CredentialProviderConfig {
    /// The programs.
    #[field(0, always, required)]
    pub providers: Vec<CredentialProvider>,
}

/// One program.
#[api]
pub struct CredentialProvider {
    /// Its file in the kubelet's directory of such programs.
    #[field(0, always, required)]
    pub name: String,
    /// Patterns of the images that it is asked about.
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
}

impl From<CredentialProviderConfig> for kubelet_config_v1::CredentialProviderConfig {
    fn from(own: CredentialProviderConfig) -> Self {
        Self { providers: own.providers.into_iter().map(Into::into).collect() }
    }
}

impl From<CredentialProvider> for kubelet_config_v1::CredentialProvider {
    fn from(own: CredentialProvider) -> Self {
        let CredentialProvider { name, match_images, default_cache_duration, api_version, args, env } = own;
        Self { name, match_images, default_cache_duration, api_version, args, env, token_attributes: None }
    }
}
