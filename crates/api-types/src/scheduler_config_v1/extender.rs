//! Outside services that take part in scheduling decisions.

use api_machinery::api;
use api_machinery::reflect::ByteString;
use api_machinery::time::GoDuration;

/// A service that filters, scores or binds over HTTP.
#[api]
pub struct Extender {
    /// Where the service is reached.
    #[field(0, always)]
    pub url_prefix: String,
    /// Path of the filter call.
    #[field(0)]
    pub filter_verb: String,
    /// Path of the preempt call.
    #[field(0)]
    pub preempt_verb: String,
    /// Path of the prioritize call.
    #[field(0)]
    pub prioritize_verb: String,
    /// The factor of its scores.
    #[field(0)]
    pub weight: i64,
    /// Path of the bind call.
    #[field(0)]
    pub bind_verb: String,
    /// Whether to use TLS.
    #[field(0, name = "enableHTTPS")]
    pub enable_https: bool,
    /// TLS settings.
    #[field(0)]
    pub tls_config: Option<ExtenderTLSConfig>,
    /// Longest time a call may take.
    #[field(0)]
    pub http_timeout: GoDuration,
    /// Whether the service keeps its own copy of nodes.
    #[field(0)]
    pub node_cache_capable: bool,
    /// Resources that the service looks after.
    #[field(0)]
    pub managed_resources: Vec<ExtenderManagedResource>,
    /// Whether pods are scheduled when the service is away.
    #[field(0)]
    pub ignorable: bool,
}

/// A resource that an extender looks after.
#[api]
pub struct ExtenderManagedResource {
    /// Name of the extended resource.
    #[field(0, always)]
    pub name: String,
    /// Whether the scheduler itself leaves it alone.
    #[field(0)]
    pub ignored_by_scheduler: bool,
}

/// TLS settings of an extender.
#[api]
pub struct ExtenderTLSConfig {
    /// Whether the certificate is not verified.
    #[field(0)]
    pub insecure: bool,
    /// Name expected in the certificate.
    #[field(0)]
    pub server_name: String,
    /// Path of the client certificate.
    #[field(0)]
    pub cert_file: String,
    /// Path of the client key.
    #[field(0)]
    pub key_file: String,
    /// Path of the CA bundle.
    #[field(0)]
    pub ca_file: String,
    /// The client certificate, PEM.
    #[field(0)]
    pub cert_data: ByteString,
    /// The client key, PEM.
    #[field(0, secret)]
    pub key_data: ByteString,
    /// The CA bundle, PEM.
    #[field(0)]
    pub ca_data: ByteString,
}
