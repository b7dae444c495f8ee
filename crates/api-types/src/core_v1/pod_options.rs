//! PodLogOptions and what it is made of.

use api_machinery::api;
use api_machinery::time::Time;

/// Query options for reading pod logs.
#[api(kind = "PodLogOptions")]
pub struct PodLogOptions {
    /// Container to read; default is the only container of the pod.
    #[field(1)]
    pub container: String,
    /// Keeps streaming new log lines; default false.
    #[field(2)]
    pub follow: bool,
    /// Reads the log of the previous, terminated run; default false.
    #[field(3)]
    pub previous: bool,
    /// Shows lines from the last given seconds; excludes sinceTime.
    #[field(4)]
    pub since_seconds: Option<i64>,
    /// Shows lines from this time on; excludes sinceSeconds.
    #[field(5)]
    pub since_time: Option<Time>,
    /// Starts every line with its timestamp; default false.
    #[field(6)]
    pub timestamps: bool,
    /// Number of last lines to show; unset shows all.
    #[field(7)]
    pub tail_lines: Option<i64>,
    /// Stops after this many bytes of output.
    #[field(8)]
    pub limit_bytes: Option<i64>,
    /// Skips checking the kubelet's serving certificate; the log source is unproven.
    #[field(9, name = "insecureSkipTLSVerifyBackend")]
    pub insecure_skip_tls_verify_backend: bool,
    /// Stream to read: All (default), Stdout or Stderr.
    #[field(10)]
    pub stream: Option<String>,
}

/// Query options for attaching to a running container.
#[api(kind = "PodAttachOptions")]
pub struct PodAttachOptions {
    /// Passes standard input to the container; default false.
    #[field(1)]
    pub stdin: bool,
    /// Returns standard output of the container; default true.
    #[field(2)]
    pub stdout: bool,
    /// Returns standard error of the container; default true.
    #[field(3)]
    pub stderr: bool,
    /// Allocates a terminal for the session; default false.
    #[field(4)]
    pub tty: bool,
    /// Container to attach to; default is the only one.
    #[field(5)]
    pub container: String,
}

/// Query options for running a command in a container.
#[api(kind = "PodExecOptions")]
pub struct PodExecOptions {
    /// Passes standard input to the command; default false.
    #[field(1)]
    pub stdin: bool,
    /// Returns standard output of the command.
    #[field(2)]
    pub stdout: bool,
    /// Returns standard error of the command.
    #[field(3)]
    pub stderr: bool,
    /// Allocates a terminal for the command; default false.
    #[field(4)]
    pub tty: bool,
    /// Container to run in; default is the only one.
    #[field(5)]
    pub container: String,
    /// Command and arguments, run without a shell.
    #[field(6, always, required)]
    pub command: Vec<String>,
}

/// Query options for forwarding ports to a pod.
#[api(kind = "PodPortForwardOptions")]
pub struct PodPortForwardOptions {
    /// Ports to forward; required with WebSockets.
    #[field(1)]
    pub ports: Vec<i32>,
}

/// Query options for proxying to a pod.
#[api(kind = "PodProxyOptions")]
pub struct PodProxyOptions {
    /// URL path used for the request to the pod.
    #[field(1)]
    pub path: String,
}

/// Query options for proxying to a node.
#[api(kind = "NodeProxyOptions")]
pub struct NodeProxyOptions {
    /// URL path used for the request to the node.
    #[field(1)]
    pub path: String,
}

/// Query options for proxying to a service.
#[api(kind = "ServiceProxyOptions")]
pub struct ServiceProxyOptions {
    /// URL path, with host and parameters, used for the request.
    #[field(1)]
    pub path: String,
}
