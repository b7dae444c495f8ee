//! Container and what it is made of.

use api_machinery::api;

use super::constants::{protocol, pull_policy, termination_message_policy};
use super::{
    EnvFromSource, EnvVar, Lifecycle, Probe, ResourceRequirements, SecurityContext, VolumeDevice, VolumeMount,
};

/// A single container that runs in a pod.
#[api]
pub struct Container {
    /// Name of the container, a DNS label unique in the pod.
    #[field(1, always, required)]
    pub name: String,
    /// Image to run; optional in templates where other tools fill it in.
    #[field(2)]
    pub image: String,
    /// Entrypoint, run without a shell; default is the image's ENTRYPOINT.
    #[field(3)]
    pub command: Vec<String>,
    /// Arguments of the entrypoint; default is the image's CMD.
    #[field(4)]
    pub args: Vec<String>,
    /// Working directory; default comes from the image or the runtime.
    #[field(5)]
    pub working_dir: String,
    /// Ports that the container exposes; mainly informational.
    #[field(6, merge_key = "containerPort", keys("containerPort", "protocol"))]
    pub ports: Vec<ContainerPort>,
    /// Sources whose keys become variables; later sources win, env wins overall.
    #[field(19)]
    pub env_from: Vec<EnvFromSource>,
    /// Environment variables set in the container.
    #[field(7, merge_key = "name")]
    pub env: Vec<EnvVar>,
    /// Compute resources the container needs.
    #[field(8)]
    pub resources: ResourceRequirements,
    /// Restart behaviour when resources change in place.
    #[field(23)]
    pub resize_policy: Vec<ContainerResizePolicy>,
    /// Container restart policy: Always, OnFailure or Never; overrides the pod's.
    #[field(24, go = "v1.ContainerRestartPolicy")]
    pub restart_policy: Option<String>,
    /// Rules tried in order on exit; the first match decides.
    #[field(25)]
    pub restart_policy_rules: Vec<ContainerRestartRule>,
    /// Pod volumes mounted in the container.
    #[field(9, merge_key = "mountPath")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Raw block devices the container uses.
    #[field(21, merge_key = "devicePath")]
    pub volume_devices: Vec<VolumeDevice>,
    /// Check that restarts the container when it fails.
    #[field(10)]
    pub liveness_probe: Option<Box<Probe>>,
    /// Check that removes the pod from service endpoints when it fails.
    #[field(11)]
    pub readiness_probe: Option<Box<Probe>>,
    /// Check that must succeed before the other probes begin.
    #[field(22)]
    pub startup_probe: Option<Box<Probe>>,
    /// Actions run after start and before stop.
    #[field(12)]
    pub lifecycle: Option<Box<Lifecycle>>,
    /// File the final message is read from; default /dev/termination-log.
    #[field(13, fill = "\"/dev/termination-log\"")]
    pub termination_message_path: String,
    /// Message source: File (default) or FallbackToLogsOnError.
    #[field(20, fill = "\"File\"", go = "v1.TerminationMessagePolicy", values = termination_message_policy::ALL)]
    pub termination_message_policy: String,
    /// Pull policy: Always, IfNotPresent or Never; the default depends on the tag.
    #[field(14, go = "v1.PullPolicy", values = pull_policy::ALL)]
    pub image_pull_policy: String,
    /// Security settings; they override the pod's settings.
    #[field(15)]
    pub security_context: Option<SecurityContext>,
    /// Keeps a buffer for standard input open; default false.
    #[field(16)]
    pub stdin: bool,
    /// Closes standard input after the first attach session ends; default false.
    #[field(17)]
    pub stdin_once: bool,
    /// Allocates a terminal; needs stdin; default false.
    #[field(18)]
    pub tty: bool,
}

/// A network port of a container.
#[api]
pub struct ContainerPort {
    /// Name of the port, unique in the pod; services may use it.
    #[field(1)]
    pub name: String,
    /// Port opened on the host, 1 to 65535; most containers need none.
    #[field(2)]
    pub host_port: i32,
    /// Port on the pod's IP address, 1 to 65535.
    #[field(3, always, required)]
    pub container_port: i32,
    /// Protocol of the port: TCP (default), UDP or SCTP.
    #[field(4, default = "\"TCP\"", fill = "\"TCP\"", go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: String,
    /// Host IP address that the host port binds to.
    #[field(5, name = "hostIP")]
    pub host_ip: String,
}

/// Tells whether resizing a resource restarts the container.
#[api]
pub struct ContainerResizePolicy {
    /// Resource that the policy covers: cpu or memory.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub resource_name: String,
    /// Restart on resize: NotRequired (default) or RestartContainer.
    #[field(2, always, required, go = "v1.ResourceResizeRestartPolicy")]
    pub restart_policy: String,
}

/// Decides what to do when a container exits.
#[api]
pub struct ContainerRestartRule {
    /// What to do on a match: Restart or RestartAllContainers.
    #[field(1, required, go = "v1.ContainerRestartRuleAction")]
    pub action: String,
    /// Exit codes that the rule matches.
    #[field(2)]
    pub exit_codes: Option<ContainerRestartRuleOnExitCodes>,
}

/// Matches a container's exit code.
#[api]
pub struct ContainerRestartRuleOnExitCodes {
    /// How to compare the code: In or NotIn.
    #[field(1, required, go = "v1.ContainerRestartRuleOnExitCodesOperator")]
    pub operator: String,
    /// Exit codes to compare with; at most 255.
    #[field(2, set)]
    pub values: Vec<i32>,
}

/// A temporary container added to a running pod for debugging.
#[api]
pub struct EphemeralContainer {
    /// The fields shared with normal containers.
    #[field(1, inline)]
    pub ephemeral_container_common: EphemeralContainerCommon,
    /// Container whose process namespace is joined; empty uses the pod's.
    #[field(2)]
    pub target_container_name: String,
}

/// Container fields shared with ephemeral containers.
#[api]
pub struct EphemeralContainerCommon {
    /// Name of the container, unique among all containers of the pod.
    #[field(1, always, required)]
    pub name: String,
    /// Image to run; optional in templates where other tools fill it in.
    #[field(2)]
    pub image: String,
    /// Entrypoint, run without a shell; default is the image's ENTRYPOINT.
    #[field(3)]
    pub command: Vec<String>,
    /// Arguments of the entrypoint; default is the image's CMD.
    #[field(4)]
    pub args: Vec<String>,
    /// Working directory; default comes from the image or the runtime.
    #[field(5)]
    pub working_dir: String,
    /// Not allowed for ephemeral containers.
    #[field(6, merge_key = "containerPort", keys("containerPort", "protocol"))]
    pub ports: Vec<ContainerPort>,
    /// Sources whose keys become variables; later sources win, env wins overall.
    #[field(19)]
    pub env_from: Vec<EnvFromSource>,
    /// Environment variables set in the container.
    #[field(7, merge_key = "name")]
    pub env: Vec<EnvVar>,
    /// Not allowed for ephemeral containers; they use the pod's spare resources.
    #[field(8)]
    pub resources: ResourceRequirements,
    /// Not allowed for ephemeral containers.
    #[field(23)]
    pub resize_policy: Vec<ContainerResizePolicy>,
    /// Not allowed for ephemeral containers.
    #[field(24, go = "v1.ContainerRestartPolicy")]
    pub restart_policy: Option<String>,
    /// Not allowed for ephemeral containers.
    #[field(25)]
    pub restart_policy_rules: Vec<ContainerRestartRule>,
    /// Pod volumes mounted in the container; sub-paths are not allowed.
    #[field(9, merge_key = "mountPath")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Raw block devices the container uses.
    #[field(21, merge_key = "devicePath")]
    pub volume_devices: Vec<VolumeDevice>,
    /// Not allowed for ephemeral containers.
    #[field(10)]
    pub liveness_probe: Option<Box<Probe>>,
    /// Not allowed for ephemeral containers.
    #[field(11)]
    pub readiness_probe: Option<Box<Probe>>,
    /// Not allowed for ephemeral containers.
    #[field(22)]
    pub startup_probe: Option<Box<Probe>>,
    /// Not allowed for ephemeral containers.
    #[field(12)]
    pub lifecycle: Option<Box<Lifecycle>>,
    /// File the final message is read from; default /dev/termination-log.
    #[field(13, fill = "\"/dev/termination-log\"")]
    pub termination_message_path: String,
    /// Message source: File (default) or FallbackToLogsOnError.
    #[field(20, fill = "\"File\"", go = "v1.TerminationMessagePolicy", values = termination_message_policy::ALL)]
    pub termination_message_policy: String,
    /// Pull policy: Always, IfNotPresent or Never; the default depends on the tag.
    #[field(14, go = "v1.PullPolicy", values = pull_policy::ALL)]
    pub image_pull_policy: String,
    /// Security settings of the ephemeral container.
    #[field(15)]
    pub security_context: Option<SecurityContext>,
    /// Keeps a buffer for standard input open; default false.
    #[field(16)]
    pub stdin: bool,
    /// Closes standard input after the first attach session ends; default false.
    #[field(17)]
    pub stdin_once: bool,
    /// Allocates a terminal; needs stdin; default false.
    #[field(18)]
    pub tty: bool,
}
