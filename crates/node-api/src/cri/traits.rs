//! What a kubelet needs of a container runtime, as two object-safe traits.
//!
//! Every implementation keeps the promises written here; `contract` checks them. Dropping a call's future cancels it.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::CriError;
use super::sketch::Sketch;
use super::v1::{
    AttachRequest, AuthConfig, Container, ContainerConfig, ContainerEventResponse, ContainerFilter, ContainerStats,
    ContainerStatsFilter, ContainerStatusResponse, ExecRequest, ExecSyncResponse, Image, ImageFilter,
    ImageFsInfoResponse, ImageSpec, ImageStatusResponse, LinuxContainerResources, MetricDescriptor, PodSandbox,
    PodSandboxConfig, PodSandboxFilter, PodSandboxMetrics, PodSandboxStats, PodSandboxStatsFilter,
    PodSandboxStatusResponse, PortForwardRequest, RuntimeConfigResponse, StatusResponse,
    UpdateContainerResourcesRequest, VersionResponse,
};

/// Container events until the runtime or the caller ends the stream; an error is the last item.
pub type EventStream = BoxStream<'static, Result<ContainerEventResponse, CriError>>;

/// Sandboxes and containers.
#[async_trait]
pub trait Runtime: Send + Sync + 'static {
    /// The runtime's name and versions; fails unless it speaks API version [`super::API_VERSION`].
    async fn version(&self) -> Result<VersionResponse, CriError>;

    /// Runtime conditions (`RuntimeReady`, `NetworkReady`), handlers and features; `verbose` adds free-form info.
    async fn status(&self, verbose: bool) -> Result<StatusResponse, CriError>;

    /// The cgroup driver the runtime uses; `Unimplemented` from old runtimes.
    async fn runtime_config(&self) -> Result<RuntimeConfigResponse, CriError>;

    /// Tells the runtime the node's pod CIDR.
    async fn update_runtime_config(&self, pod_cidr: &str) -> Result<(), CriError>;

    /// Makes and starts a sandbox; returns its id. An empty `runtime_handler` means the default one.
    async fn run_pod_sandbox(&self, config: PodSandboxConfig, runtime_handler: &str) -> Result<String, CriError>;

    /// Stops a sandbox and every container in it. Succeeds when it is stopped or gone already.
    async fn stop_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError>;

    /// Removes a sandbox and its containers, stopping them first. Succeeds when it is gone already.
    async fn remove_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError>;

    /// The state of one sandbox; `NotFound` when it is gone. `status` is always set.
    async fn pod_sandbox_status(&self, sandbox_id: &str, verbose: bool) -> Result<PodSandboxStatusResponse, CriError>;

    /// Sandboxes that match; `None` means all.
    async fn list_pod_sandboxes(&self, filter: Option<PodSandboxFilter>) -> Result<Vec<PodSandbox>, CriError>;

    /// All sandboxes, read as far as a change of them shows.
    async fn sketch_pod_sandboxes(&self) -> Result<Vec<Sketch<PodSandbox>>, CriError> {
        self.list_pod_sandboxes(None).await?.iter().map(Sketch::of).collect()
    }

    /// Changes the sandbox's own resources.
    async fn update_pod_sandbox_resources(
        &self,
        sandbox_id: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<(), CriError>;

    /// Makes a container in a ready sandbox, not started; returns its id.
    async fn create_container(
        &self,
        sandbox_id: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String, CriError>;

    /// Starts a created container.
    async fn start_container(&self, container_id: &str) -> Result<(), CriError>;

    /// Sends the stop signal, waits `grace`, then kills. Succeeds when it has ended or is gone already.
    async fn stop_container(&self, container_id: &str, grace: Duration) -> Result<(), CriError>;

    /// Removes a container, killing it first. Succeeds when it is gone already.
    async fn remove_container(&self, container_id: &str) -> Result<(), CriError>;

    /// Containers that match; `None` means all.
    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>, CriError>;

    /// All containers, read as far as a change of them shows.
    async fn sketch_containers(&self) -> Result<Vec<Sketch<Container>>, CriError> {
        self.list_containers(None).await?.iter().map(Sketch::of).collect()
    }

    /// The state of one container; `NotFound` when it is gone. `status` is always set.
    async fn container_status(&self, container_id: &str, verbose: bool) -> Result<ContainerStatusResponse, CriError>;

    /// Changes cgroup settings of a container that has not ended.
    async fn update_container_resources(&self, request: UpdateContainerResourcesRequest) -> Result<(), CriError>;

    /// Makes the runtime open its log file anew, after the kubelet has renamed it.
    async fn reopen_container_log(&self, container_id: &str) -> Result<(), CriError>;

    /// Runs a command and collects its output. A zero `timeout` means none; a command that takes longer is killed and
    /// the error is [`CriError::CommandTimeout`]. A non-zero exit code is an answer, not an error.
    async fn exec_sync(
        &self,
        container_id: &str,
        command: Vec<String>,
        timeout: Duration,
    ) -> Result<ExecSyncResponse, CriError>;

    /// Prepares a streamed command; returns the URL to stream from.
    async fn exec(&self, request: ExecRequest) -> Result<String, CriError>;

    /// Prepares an attachment; returns the URL to stream from.
    async fn attach(&self, request: AttachRequest) -> Result<String, CriError>;

    /// Prepares port forwarding into a sandbox; returns the URL to stream from.
    async fn port_forward(&self, request: PortForwardRequest) -> Result<String, CriError>;

    /// Resource use of one container.
    async fn container_stats(&self, container_id: &str) -> Result<ContainerStats, CriError>;

    /// Resource use of the containers that match.
    async fn list_container_stats(&self, filter: Option<ContainerStatsFilter>)
    -> Result<Vec<ContainerStats>, CriError>;

    /// Resource use of one sandbox.
    async fn pod_sandbox_stats(&self, sandbox_id: &str) -> Result<PodSandboxStats, CriError>;

    /// Resource use of the sandboxes that match.
    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>, CriError>;

    /// The metrics the runtime can export; `Unimplemented` where it has none.
    async fn list_metric_descriptors(&self) -> Result<Vec<MetricDescriptor>, CriError>;

    /// Current values of the runtime's own metrics.
    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<PodSandboxMetrics>, CriError>;

    /// Writes a checkpoint of a container to `location`; a zero `timeout` means the runtime's default.
    async fn checkpoint_container(&self, container_id: &str, location: &str, timeout: Duration)
    -> Result<(), CriError>;

    /// Events from now on; `Unimplemented` where the runtime has none.
    async fn container_events(&self) -> Result<EventStream, CriError>;
}

/// Images and the file system they live on.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// Images that match; `None` means all. A runtime may ignore the filter (containerd does).
    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>, CriError>;

    /// What is known of an image; `image` is `None` when it is absent.
    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse, CriError>;

    /// Pulls an image, however long that takes; returns the reference it is known by.
    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox_config: Option<PodSandboxConfig>,
    ) -> Result<String, CriError>;

    /// Removes an image. Succeeds when it is gone already.
    async fn remove_image(&self, image: ImageSpec) -> Result<(), CriError>;

    /// Use of the file systems that hold images and container layers.
    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, CriError>;
}
