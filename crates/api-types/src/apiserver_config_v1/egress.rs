//! EgressSelectorConfiguration: through whom the server connects to what. Of the group apiserver.k8s.io.

use api_machinery::api;

/// What such files name as their version; both have the same fields.
pub const EGRESS_API_VERSIONS: [&str; 2] = ["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"];

/// Through whom the server connects to what.
#[api]
pub struct EgressSelectorConfiguration {
    /// What is not named is connected to directly.
    #[field(0, always)]
    pub egress_selections: Vec<EgressSelection>,
}

/// One destination.
#[api]
pub struct EgressSelection {
    /// `cluster`, `controlplane` or `etcd`.
    #[field(0, always)]
    pub name: String,
    /// How it is connected to.
    #[field(0, always)]
    pub connection: EgressConnection,
}

/// How something is connected to.
#[api]
pub struct EgressConnection {
    /// `Direct`, `HTTPConnect` or `GRPC`.
    #[field(0)]
    pub proxy_protocol: String,
    /// Where the proxy is; nothing without one.
    #[field(0)]
    pub transport: Option<EgressTransport>,
}

/// Where a proxy is: one of both.
#[api]
pub struct EgressTransport {
    /// At a port.
    #[field(0)]
    pub tcp: Option<EgressTcp>,
    /// At a socket of this host.
    #[field(0)]
    pub uds: Option<EgressUds>,
}

/// A proxy at a port.
#[api]
pub struct EgressTcp {
    /// Such as `https://127.0.0.1:8131`.
    #[field(0)]
    pub url: String,
    /// How it is known, and knows the server.
    #[field(0)]
    pub tls_config: Option<EgressTls>,
}

/// A proxy at a socket.
#[api]
pub struct EgressUds {
    /// The socket's path.
    #[field(0)]
    pub uds_name: String,
}

/// Files of certificates and keys.
#[api]
pub struct EgressTls {
    /// Authorities for the proxy's certificate; those of the system without it.
    #[field(0)]
    pub ca_bundle: String,
    /// The key of the server's own.
    #[field(0)]
    pub client_key: String,
    /// The server's own.
    #[field(0)]
    pub client_cert: String,
    /// The name in the proxy's certificate; its host's without it.
    #[field(0)]
    pub tls_server_name: String,
}
