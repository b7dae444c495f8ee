//! Any [`Runtime`] and [`Images`] behind a unix socket: tests of the client, and fakes for a kubelet in another process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::CancellationToken;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use super::v1::image_service_server::{ImageService, ImageServiceServer};
use super::v1::runtime_service_server::{RuntimeService, RuntimeServiceServer};
use super::v1::*;
use super::{CriError, Images, Runtime};

/// Serves both services on a socket that must not exist yet, until `token` is cancelled.
///
/// # Errors
/// When the socket cannot be made, or the server fails.
pub async fn serve(
    socket: &Path,
    runtime: Arc<dyn Runtime>,
    images: Arc<dyn Images>,
    token: CancellationToken,
) -> Result<(), ServeError> {
    serve_with(socket, Lists::Streamed, runtime, images, token).await
}

/// Whether the calls that stream lists are there (KEP-5825); runtimes from before v1.36 of Kubernetes have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    Streamed,
    Whole,
}

pub(super) async fn serve_with(
    socket: &Path,
    lists: Lists,
    runtime: Arc<dyn Runtime>,
    images: Arc<dyn Images>,
    token: CancellationToken,
) -> Result<(), ServeError> {
    let listener = UnixListener::bind(socket).map_err(ServeError::Bind)?;
    tonic::transport::Server::builder()
        .add_service(RuntimeServiceServer::new(RuntimeAdapter(runtime, lists)))
        .add_service(ImageServiceServer::new(ImagesAdapter(images, lists)))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), token.cancelled_owned())
        .await
        .map_err(ServeError::Serve)
}

/// Why a runtime could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket could not be made.
    #[error("cannot listen: {0}")]
    Bind(#[source] std::io::Error),
    /// The server failed.
    #[error("cannot serve: {0}")]
    Serve(#[source] tonic::transport::Error),
}

struct RuntimeAdapter(Arc<dyn Runtime>, Lists);
struct ImagesAdapter(Arc<dyn Images>, Lists);

/// The most items in one part of a streamed list.
const PART_ITEMS: usize = 100;

type Answer<T> = Result<Response<T>, Status>;
type Responses<T> = BoxStream<'static, Result<T, Status>>;

fn answer<T>(outcome: Result<T, CriError>) -> Answer<T> {
    outcome.map(Response::new).map_err(|error| Status::new(error.code(), error.message()))
}

impl Lists {
    /// A list as a stream of parts.
    async fn in_parts<T, M>(
        self,
        list: impl Future<Output = Result<Vec<T>, CriError>>,
        part: impl Fn(Vec<T>) -> M,
    ) -> Answer<Responses<M>>
    where
        M: Send + 'static,
    {
        if self == Self::Whole {
            return Err(Status::unimplemented("unknown method"));
        }
        let mut items = list.await.map_err(|error| Status::new(error.code(), error.message()))?.into_iter();
        let mut parts = Vec::new();
        while items.len() > 0 {
            parts.push(Ok(part(items.by_ref().take(PART_ITEMS).collect())));
        }
        Ok(Response::new(futures_util::stream::iter(parts).boxed()))
    }
}

fn required<T>(value: Option<T>, name: &'static str) -> Result<T, Status> {
    value.ok_or_else(|| Status::invalid_argument(format!("missing {name}")))
}

fn seconds(value: i64) -> Duration {
    Duration::from_secs(u64::try_from(value).unwrap_or(0))
}

#[tonic::async_trait]
impl RuntimeService for RuntimeAdapter {
    type StreamPodSandboxesStream = Responses<StreamPodSandboxesResponse>;
    type StreamContainersStream = Responses<StreamContainersResponse>;
    type StreamContainerStatsStream = Responses<StreamContainerStatsResponse>;
    type StreamPodSandboxStatsStream = Responses<StreamPodSandboxStatsResponse>;
    type StreamPodSandboxMetricsStream = Responses<StreamPodSandboxMetricsResponse>;
    type GetContainerEventsStream = Responses<ContainerEventResponse>;

    async fn version(&self, _: Request<VersionRequest>) -> Answer<VersionResponse> {
        answer(self.0.version().await)
    }

    async fn run_pod_sandbox(&self, request: Request<RunPodSandboxRequest>) -> Answer<RunPodSandboxResponse> {
        let request = request.into_inner();
        let config = required(request.config, "config")?;
        let id = self.0.run_pod_sandbox(config, &request.runtime_handler).await;
        answer(id.map(|pod_sandbox_id| RunPodSandboxResponse { pod_sandbox_id }))
    }

    async fn stop_pod_sandbox(&self, request: Request<StopPodSandboxRequest>) -> Answer<StopPodSandboxResponse> {
        let done = self.0.stop_pod_sandbox(&request.into_inner().pod_sandbox_id).await;
        answer(done.map(|()| StopPodSandboxResponse {}))
    }

    async fn remove_pod_sandbox(&self, request: Request<RemovePodSandboxRequest>) -> Answer<RemovePodSandboxResponse> {
        let done = self.0.remove_pod_sandbox(&request.into_inner().pod_sandbox_id).await;
        answer(done.map(|()| RemovePodSandboxResponse {}))
    }

    async fn pod_sandbox_status(&self, request: Request<PodSandboxStatusRequest>) -> Answer<PodSandboxStatusResponse> {
        let request = request.into_inner();
        answer(self.0.pod_sandbox_status(&request.pod_sandbox_id, request.verbose).await)
    }

    async fn list_pod_sandbox(&self, request: Request<ListPodSandboxRequest>) -> Answer<ListPodSandboxResponse> {
        let items = self.0.list_pod_sandboxes(request.into_inner().filter).await;
        answer(items.map(|items| ListPodSandboxResponse { items }))
    }

    async fn stream_pod_sandboxes(
        &self,
        request: Request<StreamPodSandboxesRequest>,
    ) -> Answer<Self::StreamPodSandboxesStream> {
        let list = self.0.list_pod_sandboxes(request.into_inner().filter);
        self.1.in_parts(list, |pod_sandboxes| StreamPodSandboxesResponse { pod_sandboxes }).await
    }

    async fn create_container(&self, request: Request<CreateContainerRequest>) -> Answer<CreateContainerResponse> {
        let request = request.into_inner();
        let config = required(request.config, "config")?;
        let sandbox = required(request.sandbox_config, "sandbox_config")?;
        let id = self.0.create_container(&request.pod_sandbox_id, config, sandbox).await;
        answer(id.map(|container_id| CreateContainerResponse { container_id }))
    }

    async fn start_container(&self, request: Request<StartContainerRequest>) -> Answer<StartContainerResponse> {
        let done = self.0.start_container(&request.into_inner().container_id).await;
        answer(done.map(|()| StartContainerResponse {}))
    }

    async fn stop_container(&self, request: Request<StopContainerRequest>) -> Answer<StopContainerResponse> {
        let request = request.into_inner();
        let done = self.0.stop_container(&request.container_id, seconds(request.timeout)).await;
        answer(done.map(|()| StopContainerResponse {}))
    }

    async fn remove_container(&self, request: Request<RemoveContainerRequest>) -> Answer<RemoveContainerResponse> {
        let done = self.0.remove_container(&request.into_inner().container_id).await;
        answer(done.map(|()| RemoveContainerResponse {}))
    }

    async fn list_containers(&self, request: Request<ListContainersRequest>) -> Answer<ListContainersResponse> {
        let containers = self.0.list_containers(request.into_inner().filter).await;
        answer(containers.map(|containers| ListContainersResponse { containers }))
    }

    async fn stream_containers(
        &self,
        request: Request<StreamContainersRequest>,
    ) -> Answer<Self::StreamContainersStream> {
        let list = self.0.list_containers(request.into_inner().filter);
        self.1.in_parts(list, |containers| StreamContainersResponse { containers }).await
    }

    async fn container_status(&self, request: Request<ContainerStatusRequest>) -> Answer<ContainerStatusResponse> {
        let request = request.into_inner();
        answer(self.0.container_status(&request.container_id, request.verbose).await)
    }

    async fn update_container_resources(
        &self,
        request: Request<UpdateContainerResourcesRequest>,
    ) -> Answer<UpdateContainerResourcesResponse> {
        let done = self.0.update_container_resources(request.into_inner()).await;
        answer(done.map(|()| UpdateContainerResourcesResponse {}))
    }

    async fn reopen_container_log(
        &self,
        request: Request<ReopenContainerLogRequest>,
    ) -> Answer<ReopenContainerLogResponse> {
        let done = self.0.reopen_container_log(&request.into_inner().container_id).await;
        answer(done.map(|()| ReopenContainerLogResponse {}))
    }

    async fn exec_sync(&self, request: Request<ExecSyncRequest>) -> Answer<ExecSyncResponse> {
        let request = request.into_inner();
        answer(self.0.exec_sync(&request.container_id, request.cmd, seconds(request.timeout)).await)
    }

    async fn exec(&self, request: Request<ExecRequest>) -> Answer<ExecResponse> {
        answer(self.0.exec(request.into_inner()).await.map(|url| ExecResponse { url }))
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Answer<AttachResponse> {
        answer(self.0.attach(request.into_inner()).await.map(|url| AttachResponse { url }))
    }

    async fn port_forward(&self, request: Request<PortForwardRequest>) -> Answer<PortForwardResponse> {
        answer(self.0.port_forward(request.into_inner()).await.map(|url| PortForwardResponse { url }))
    }

    async fn container_stats(&self, request: Request<ContainerStatsRequest>) -> Answer<ContainerStatsResponse> {
        let stats = self.0.container_stats(&request.into_inner().container_id).await;
        answer(stats.map(|stats| ContainerStatsResponse { stats: Some(stats) }))
    }

    async fn list_container_stats(
        &self,
        request: Request<ListContainerStatsRequest>,
    ) -> Answer<ListContainerStatsResponse> {
        let stats = self.0.list_container_stats(request.into_inner().filter).await;
        answer(stats.map(|stats| ListContainerStatsResponse { stats }))
    }

    async fn stream_container_stats(
        &self,
        request: Request<StreamContainerStatsRequest>,
    ) -> Answer<Self::StreamContainerStatsStream> {
        let list = self.0.list_container_stats(request.into_inner().filter);
        self.1.in_parts(list, |container_stats| StreamContainerStatsResponse { container_stats }).await
    }

    async fn pod_sandbox_stats(&self, request: Request<PodSandboxStatsRequest>) -> Answer<PodSandboxStatsResponse> {
        let stats = self.0.pod_sandbox_stats(&request.into_inner().pod_sandbox_id).await;
        answer(stats.map(|stats| PodSandboxStatsResponse { stats: Some(stats) }))
    }

    async fn list_pod_sandbox_stats(
        &self,
        request: Request<ListPodSandboxStatsRequest>,
    ) -> Answer<ListPodSandboxStatsResponse> {
        let stats = self.0.list_pod_sandbox_stats(request.into_inner().filter).await;
        answer(stats.map(|stats| ListPodSandboxStatsResponse { stats }))
    }

    async fn stream_pod_sandbox_stats(
        &self,
        request: Request<StreamPodSandboxStatsRequest>,
    ) -> Answer<Self::StreamPodSandboxStatsStream> {
        let list = self.0.list_pod_sandbox_stats(request.into_inner().filter);
        self.1.in_parts(list, |pod_sandbox_stats| StreamPodSandboxStatsResponse { pod_sandbox_stats }).await
    }

    async fn update_runtime_config(
        &self,
        request: Request<UpdateRuntimeConfigRequest>,
    ) -> Answer<UpdateRuntimeConfigResponse> {
        let config = request.into_inner().runtime_config.and_then(|config| config.network_config);
        let done = self.0.update_runtime_config(&config.unwrap_or_default().pod_cidr).await;
        answer(done.map(|()| UpdateRuntimeConfigResponse {}))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Answer<StatusResponse> {
        answer(self.0.status(request.into_inner().verbose).await)
    }

    async fn checkpoint_container(
        &self,
        request: Request<CheckpointContainerRequest>,
    ) -> Answer<CheckpointContainerResponse> {
        let request = request.into_inner();
        let timeout = seconds(request.timeout);
        let done = self.0.checkpoint_container(&request.container_id, &request.location, timeout).await;
        answer(done.map(|()| CheckpointContainerResponse {}))
    }

    async fn get_container_events(&self, _: Request<GetEventsRequest>) -> Answer<Self::GetContainerEventsStream> {
        let events = self.0.container_events().await;
        answer(events.map(|events| {
            events.map(|event| event.map_err(|error| Status::new(error.code(), error.message()))).boxed()
        }))
    }

    async fn list_metric_descriptors(
        &self,
        _: Request<ListMetricDescriptorsRequest>,
    ) -> Answer<ListMetricDescriptorsResponse> {
        let descriptors = self.0.list_metric_descriptors().await;
        answer(descriptors.map(|descriptors| ListMetricDescriptorsResponse { descriptors }))
    }

    async fn list_pod_sandbox_metrics(
        &self,
        _: Request<ListPodSandboxMetricsRequest>,
    ) -> Answer<ListPodSandboxMetricsResponse> {
        let metrics = self.0.list_pod_sandbox_metrics().await;
        answer(metrics.map(|pod_metrics| ListPodSandboxMetricsResponse { pod_metrics }))
    }

    async fn stream_pod_sandbox_metrics(
        &self,
        _: Request<StreamPodSandboxMetricsRequest>,
    ) -> Answer<Self::StreamPodSandboxMetricsStream> {
        let list = self.0.list_pod_sandbox_metrics();
        self.1.in_parts(list, |pod_sandbox_metrics| StreamPodSandboxMetricsResponse { pod_sandbox_metrics }).await
    }

    async fn runtime_config(&self, _: Request<RuntimeConfigRequest>) -> Answer<RuntimeConfigResponse> {
        answer(self.0.runtime_config().await)
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: Request<UpdatePodSandboxResourcesRequest>,
    ) -> Answer<UpdatePodSandboxResourcesResponse> {
        let request = request.into_inner();
        let id = &request.pod_sandbox_id;
        let done = self.0.update_pod_sandbox_resources(id, request.overhead, request.resources).await;
        answer(done.map(|()| UpdatePodSandboxResourcesResponse {}))
    }
}

#[tonic::async_trait]
impl ImageService for ImagesAdapter {
    type StreamImagesStream = Responses<StreamImagesResponse>;

    async fn list_images(&self, request: Request<ListImagesRequest>) -> Answer<ListImagesResponse> {
        let images = self.0.list_images(request.into_inner().filter).await;
        answer(images.map(|images| ListImagesResponse { images }))
    }

    async fn stream_images(&self, request: Request<StreamImagesRequest>) -> Answer<Self::StreamImagesStream> {
        let list = self.0.list_images(request.into_inner().filter);
        self.1.in_parts(list, |images| StreamImagesResponse { images }).await
    }

    async fn image_status(&self, request: Request<ImageStatusRequest>) -> Answer<ImageStatusResponse> {
        let request = request.into_inner();
        answer(self.0.image_status(required(request.image, "image")?, request.verbose).await)
    }

    async fn pull_image(&self, request: Request<PullImageRequest>) -> Answer<PullImageResponse> {
        let request = request.into_inner();
        let image = required(request.image, "image")?;
        let reference = self.0.pull_image(image, request.auth, request.sandbox_config).await;
        answer(reference.map(|image_ref| PullImageResponse { image_ref }))
    }

    async fn remove_image(&self, request: Request<RemoveImageRequest>) -> Answer<RemoveImageResponse> {
        let done = self.0.remove_image(required(request.into_inner().image, "image")?).await;
        answer(done.map(|()| RemoveImageResponse {}))
    }

    async fn image_fs_info(&self, _: Request<ImageFsInfoRequest>) -> Answer<ImageFsInfoResponse> {
        answer(self.0.image_fs_info().await)
    }
}
