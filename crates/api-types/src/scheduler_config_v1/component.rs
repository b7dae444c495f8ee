//! The parts of a component's configuration file that all components share.

use api_machinery::api;
use api_machinery::time::GoDuration;

/// How the component elects a leader among its replicas.
#[api]
pub struct LeaderElectionConfiguration {
    /// Whether only the holder of a lease works; default true.
    #[field(0, always)]
    pub leader_elect: Option<bool>,
    /// How long a lease is valid without being renewed.
    #[field(0, always)]
    pub lease_duration: GoDuration,
    /// How long the leader tries to renew before it gives up.
    #[field(0, always)]
    pub renew_deadline: GoDuration,
    /// How long to wait between two tries.
    #[field(0, always)]
    pub retry_period: GoDuration,
    /// Kind of the lock object; only leases.
    #[field(0, always)]
    pub resource_lock: String,
    /// Name of the lock object.
    #[field(0, always)]
    pub resource_name: String,
    /// Namespace of the lock object.
    #[field(0, always)]
    pub resource_namespace: String,
}

/// How the component reaches the API server.
#[api]
pub struct ClientConnectionConfiguration {
    /// Path of a kubeconfig file; empty means in-cluster.
    #[field(0, always)]
    pub kubeconfig: String,
    /// Media types that answers may have.
    #[field(0, always)]
    pub accept_content_types: String,
    /// Media type of request bodies.
    #[field(0, always)]
    pub content_type: String,
    /// Requests per second; below 0 means no limit.
    #[field(0, always)]
    pub qps: f64,
    /// Requests that may be sent at once beyond that.
    #[field(0, always)]
    pub burst: i32,
}
