//! Where a webhook is reached.

use api_machinery::api;
use api_machinery::reflect::ByteString;

/// Says how a webhook is reached: by a URL or as a service, one of them.
#[api]
pub struct WebhookClientConfig {
    /// URL of the webhook: https, without user information, fragment and query.
    #[field(3)]
    pub url: Option<String>,
    /// Service that is the webhook.
    #[field(1)]
    pub service: Option<ServiceReference>,
    /// PEM certificates that the webhook's own is verified with; the system's where there are none.
    #[field(2, name = "caBundle")]
    pub ca_bundle: ByteString,
}

/// Names a service and what of it is called.
#[api]
pub struct ServiceReference {
    /// Namespace of the service.
    #[field(1, always, required)]
    pub namespace: String,
    /// Name of the service.
    #[field(2, always, required)]
    pub name: String,
    /// Path that requests are sent to.
    #[field(3)]
    pub path: Option<String>,
    /// Port of the service; 443 by default.
    #[field(4, fill = "443")]
    pub port: Option<i32>,
}
