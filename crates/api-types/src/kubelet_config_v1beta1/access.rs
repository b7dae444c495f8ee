//! Who may use the kubelet's own API, and for what.

use api_machinery::api;
use api_machinery::time::GoDuration;

/// Who may talk to the kubelet's API.
#[api]
pub struct KubeletAuthentication {
    /// Client certificates.
    #[field(0)]
    pub x509: KubeletX509Authentication,
    /// Tokens, by asking the API server.
    #[field(0)]
    pub webhook: KubeletWebhookAuthentication,
    /// Requests without credentials.
    #[field(0)]
    pub anonymous: KubeletAnonymousAuthentication,
}

/// Authentication by client certificate.
#[api]
pub struct KubeletX509Authentication {
    /// Bundle of the authorities whose client certificates are accepted.
    #[field(0, name = "clientCAFile")]
    pub client_ca_file: String,
}

/// Authentication of tokens by the API server.
#[api]
pub struct KubeletWebhookAuthentication {
    /// Whether this is on.
    #[field(0, fill = "true")]
    pub enabled: Option<bool>,
    /// How long an answer is remembered.
    #[field(0, name = "cacheTTL", fill = "\"2m0s\"")]
    pub cache_ttl: GoDuration,
}

/// Requests without credentials.
#[api]
pub struct KubeletAnonymousAuthentication {
    /// Whether this is on.
    #[field(0, fill = "false")]
    pub enabled: Option<bool>,
}

/// What clients of the kubelet's API may do.
#[api]
pub struct KubeletAuthorization {
    /// AlwaysAllow or Webhook.
    #[field(0, fill = "\"Webhook\"")]
    pub mode: String,
    /// Asking the API server.
    #[field(0)]
    pub webhook: KubeletWebhookAuthorization,
}

/// Authorization by the API server.
#[api]
pub struct KubeletWebhookAuthorization {
    /// How long a yes is remembered.
    #[field(0, name = "cacheAuthorizedTTL", fill = "\"5m0s\"")]
    pub cache_authorized_ttl: GoDuration,
    /// How long a no is remembered.
    #[field(0, name = "cacheUnauthorizedTTL", fill = "\"30s\"")]
    pub cache_unauthorized_ttl: GoDuration,
}
