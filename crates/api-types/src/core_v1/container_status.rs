//! ContainerStatus and what it is made of.

use api_machinery::api;
use api_machinery::time::Time;

use super::constants::signal;
use super::{ResourceList, ResourceRequirements};

/// Current status of one container.
#[api]
pub struct ContainerStatus {
    /// Name of the container, as in the pod spec.
    #[field(1, always, required)]
    pub name: String,
    /// Present state of the container.
    #[field(2)]
    pub state: ContainerState,
    /// State of the last terminated run, kept after a restart.
    #[field(3)]
    pub last_state: ContainerState,
    /// Whether the readiness check passes now.
    #[field(4, always, required)]
    pub ready: bool,
    /// How often the container was restarted.
    #[field(5, always, required)]
    pub restart_count: i32,
    /// Image the container runs; may differ from the spec.
    #[field(6, always, required)]
    pub image: String,
    /// Resolved ID or digest of the image.
    #[field(7, name = "imageID", always, required)]
    pub image_id: String,
    /// ID of the container, as type://id.
    #[field(8, name = "containerID")]
    pub container_id: String,
    /// Whether the startup probe passed and post-start hook ended.
    #[field(9)]
    pub started: Option<bool>,
    /// Resources the node has allocated to the container.
    #[field(10, go = "v1.ResourceList")]
    pub allocated_resources: ResourceList,
    /// Requests and limits the running container actually has.
    #[field(11)]
    pub resources: Option<ResourceRequirements>,
    /// State of the container's volume mounts.
    #[field(12, merge_key = "mountPath")]
    pub volume_mounts: Vec<VolumeMountStatus>,
    /// User identity of the container's first process.
    #[field(13)]
    pub user: Option<ContainerUser>,
    /// Health of devices and other resources given to the container.
    #[field(14, merge_key = "name")]
    pub allocated_resources_status: Vec<ResourceStatus>,
    /// Effective stop signal of the container.
    #[field(15, go = "v1.Signal", values = signal::ALL)]
    pub stop_signal: Option<String>,
}

/// State of a container; at most one member is set.
#[api]
pub struct ContainerState {
    /// Details of a waiting container.
    #[field(1)]
    pub waiting: Option<ContainerStateWaiting>,
    /// Details of a running container.
    #[field(2)]
    pub running: Option<ContainerStateRunning>,
    /// Details of a terminated container.
    #[field(3)]
    pub terminated: Option<ContainerStateTerminated>,
}

/// A container that does not run yet.
#[api]
pub struct ContainerStateWaiting {
    /// Short reason why it waits, for example ContainerCreating.
    #[field(1)]
    pub reason: String,
    /// Human-readable details about the wait.
    #[field(2)]
    pub message: String,
}

/// A container that runs.
#[api]
pub struct ContainerStateRunning {
    /// When the container last started.
    #[field(1)]
    pub started_at: Time,
}

/// A container that has ended.
#[api]
pub struct ContainerStateTerminated {
    /// Exit status of the last run.
    #[field(1, always, required)]
    pub exit_code: i32,
    /// Signal that ended the last run.
    #[field(2)]
    pub signal: i32,
    /// Short reason for the end, for example Completed or OOMKilled.
    #[field(3)]
    pub reason: String,
    /// Message about the last termination.
    #[field(4)]
    pub message: String,
    /// When that run started.
    #[field(5)]
    pub started_at: Time,
    /// When that run ended.
    #[field(6)]
    pub finished_at: Time,
    /// ID of the ended container, as type://id.
    #[field(7, name = "containerID")]
    pub container_id: String,
}

/// State of one volume mount of a container.
#[api]
pub struct VolumeMountStatus {
    /// Name of the mounted volume.
    #[field(1, always, required)]
    pub name: String,
    /// Path in the container where it is mounted.
    #[field(2, always, required)]
    pub mount_path: String,
    /// Whether the mount is read-only.
    #[field(3)]
    pub read_only: bool,
    /// Whether nested mounts are read-only: Disabled or Enabled.
    #[field(4, go = "v1.RecursiveReadOnlyMode")]
    pub recursive_read_only: Option<String>,
    /// State of the volume itself.
    #[field(5)]
    pub volume_status: Option<VolumeStatus>,
}

/// State of a mounted volume; at most one member is set.
#[api]
pub struct VolumeStatus {
    /// State of an image volume.
    #[field(1)]
    pub image: Option<ImageVolumeStatus>,
}

/// State of an image volume.
#[api]
pub struct ImageVolumeStatus {
    /// Resolved image reference with digest; at most 256 characters.
    #[field(1, required)]
    pub image_ref: String,
}

/// User identity of a container.
#[api]
pub struct ContainerUser {
    /// Identity on Linux; unset on other systems.
    #[field(1)]
    pub linux: Option<LinuxContainerUser>,
}

/// Linux user and groups of a container's first process.
#[api]
pub struct LinuxContainerUser {
    /// Primary user ID.
    #[field(1, always, required)]
    pub uid: i64,
    /// Primary group ID.
    #[field(2, always, required)]
    pub gid: i64,
    /// Additional group IDs of the process.
    #[field(3)]
    pub supplemental_groups: Vec<i64>,
}

/// Health of one resource given to a container.
#[api]
pub struct ResourceStatus {
    /// Resource name, or claim:name/request for dynamic resources.
    #[field(1, always, required, go = "v1.ResourceName")]
    pub name: String,
    /// Health of each device of the resource.
    #[field(2, keys("resourceID"))]
    pub resources: Vec<ResourceHealth>,
}

/// Health of one device.
#[api]
pub struct ResourceHealth {
    /// Unique ID of the device.
    #[field(1, name = "resourceID", always, required, go = "v1.ResourceID")]
    pub resource_id: String,
    /// Health state: Healthy, Unhealthy or Unknown.
    #[field(2, go = "v1.ResourceHealthStatus")]
    pub health: String,
    /// Human-readable details about the health.
    #[field(6)]
    pub message: Option<String>,
}
