//! Probe and what it is made of.

use api_machinery::api;
use api_machinery::intstr::IntOrString;

use super::constants::{signal, uri_scheme};

/// A periodic check of a container's health or readiness.
#[api]
pub struct Probe {
    /// The check to perform.
    #[field(1, inline)]
    pub probe_handler: ProbeHandler,
    /// Seconds after container start before the first check; default 0.
    #[field(2)]
    pub initial_delay_seconds: i32,
    /// Seconds before a check times out; default 1, minimum 1.
    #[field(3, fill = "1")]
    pub timeout_seconds: i32,
    /// Seconds between checks; default 10, minimum 1.
    #[field(4, fill = "10")]
    pub period_seconds: i32,
    /// Consecutive successes needed after a failure; default 1; readiness may exceed 1.
    #[field(5, fill = "1")]
    pub success_threshold: i32,
    /// Consecutive failures before the probe fails; default 3, minimum 1.
    #[field(6, fill = "3")]
    pub failure_threshold: i32,
    /// Grace seconds after this probe fails; overrides the pod's value.
    #[field(7)]
    pub termination_grace_period_seconds: Option<i64>,
}

/// The check of a probe; exactly one member is set.
#[api]
pub struct ProbeHandler {
    /// Runs a command in the container.
    #[field(1)]
    pub exec: Option<ExecAction>,
    /// Makes an HTTP GET request; status 200 to 399 is success.
    #[field(2)]
    pub http_get: Option<HTTPGetAction>,
    /// Opens a TCP connection to a port.
    #[field(3)]
    pub tcp_socket: Option<TCPSocketAction>,
    /// Calls the gRPC health service.
    #[field(4)]
    pub grpc: Option<GRPCAction>,
}

/// A command run inside the container.
#[api]
pub struct ExecAction {
    /// Command and arguments, run without a shell; exit code 0 means success.
    #[field(1)]
    pub command: Vec<String>,
}

/// An HTTP GET request made to the container.
#[api]
pub struct HTTPGetAction {
    /// Path requested on the server.
    #[field(1, fill = "\"/\"")]
    pub path: String,
    /// Port number, 1 to 65535, or name of a container port.
    #[field(2, always, required)]
    pub port: IntOrString,
    /// Host to connect to; default is the pod's IP address.
    #[field(3)]
    pub host: String,
    /// Scheme to use: HTTP (default) or HTTPS.
    #[field(4, fill = "\"HTTP\"", go = "v1.URIScheme", values = uri_scheme::ALL)]
    pub scheme: String,
    /// Extra request headers; names may repeat.
    #[field(5)]
    pub http_headers: Vec<HTTPHeader>,
}

/// A header sent with an HTTP probe or hook.
#[api]
pub struct HTTPHeader {
    /// Header name, canonicalized when sent.
    #[field(1, always, required)]
    pub name: String,
    /// Header value.
    #[field(2, always, required)]
    pub value: String,
}

/// An attempt to open a TCP connection.
#[api]
pub struct TCPSocketAction {
    /// Port number, 1 to 65535, or name of a container port.
    #[field(1, always, required)]
    pub port: IntOrString,
    /// Host to connect to; default is the pod's IP address.
    #[field(2)]
    pub host: String,
}

/// A call to the gRPC health service.
#[api]
pub struct GRPCAction {
    /// Port of the gRPC service, 1 to 65535.
    #[field(1, always, required)]
    pub port: i32,
    /// Service name put in the health request; default empty.
    #[field(2, always, default = "\"\"", fill = "\"\"")]
    pub service: Option<String>,
}

/// Hooks for container start and stop, and the stop signal.
#[api]
pub struct Lifecycle {
    /// Runs right after start; a failure kills the container.
    #[field(1)]
    pub post_start: Option<LifecycleHandler>,
    /// Runs before the container is stopped, within the grace period.
    #[field(2)]
    pub pre_stop: Option<LifecycleHandler>,
    /// Signal that stops the container; the pod's os.name must be set.
    #[field(3, go = "v1.Signal", values = signal::ALL)]
    pub stop_signal: Option<String>,
}

/// The action of a lifecycle hook; exactly one member is set.
#[api]
pub struct LifecycleHandler {
    /// Runs a command in the container.
    #[field(1)]
    pub exec: Option<ExecAction>,
    /// Makes an HTTP GET request.
    #[field(2)]
    pub http_get: Option<HTTPGetAction>,
    /// Deprecated. Not supported as a hook; kept for compatibility.
    #[field(3)]
    pub tcp_socket: Option<TCPSocketAction>,
    /// Pauses for some seconds.
    #[field(4)]
    pub sleep: Option<SleepAction>,
}

/// Pauses for a fixed time.
#[api]
pub struct SleepAction {
    /// Seconds to sleep.
    #[field(1, always, required)]
    pub seconds: i64,
}
