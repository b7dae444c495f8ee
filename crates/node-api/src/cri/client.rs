//! The runtime service over a unix socket, with the deadlines a kubelet uses.
//!
//! Each call has one deadline: `T` (the runtime request timeout), twice that to run a sandbox, `T` plus the grace period
//! to stop a container, `T` plus its own timeout to run a command, none for pulls and event streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use super::sketch::{Items, Listed, Lists, Sketch};
use super::traced::Traced;
use super::v1::image_service_client::ImageServiceClient;
use super::v1::runtime_service_client::RuntimeServiceClient;
use super::v1::{
    AttachRequest, CheckpointContainerRequest, Container, ContainerConfig, ContainerFilter, ContainerStats,
    ContainerStatsFilter, ContainerStatsRequest, ContainerStatusRequest, ContainerStatusResponse,
    CreateContainerRequest, ExecRequest, ExecSyncRequest, ExecSyncResponse, GetEventsRequest, LinuxContainerResources,
    ListContainerStatsRequest, ListContainersRequest, ListMetricDescriptorsRequest, ListPodSandboxMetricsRequest,
    ListPodSandboxRequest, ListPodSandboxStatsRequest, MetricDescriptor, NetworkConfig, PodSandbox, PodSandboxConfig,
    PodSandboxFilter, PodSandboxMetrics, PodSandboxStats, PodSandboxStatsFilter, PodSandboxStatsRequest,
    PodSandboxStatusRequest, PodSandboxStatusResponse, PortForwardRequest, RemoveContainerRequest,
    RemovePodSandboxRequest, ReopenContainerLogRequest, RunPodSandboxRequest, RuntimeConfig, RuntimeConfigRequest,
    RuntimeConfigResponse, StartContainerRequest, StatusRequest, StatusResponse, StopContainerRequest,
    StopPodSandboxRequest, StreamContainerStatsRequest, StreamContainersRequest, StreamPodSandboxMetricsRequest,
    StreamPodSandboxStatsRequest, StreamPodSandboxesRequest, UpdateContainerResourcesRequest,
    UpdatePodSandboxResourcesRequest, UpdateRuntimeConfigRequest, VersionRequest, VersionResponse,
};
use super::{API_VERSION, CriError, EventStream, Images as _, Runtime};

/// The largest answer that is read: upstream's limit, enough for thousands of containers.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Flow control windows as large as the largest answer, so that small events in bursts never trip h2's frame budget.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The most items a streamed list may hold; a node has thousands at most.
const MAX_STREAMED_ITEMS: usize = 1_000_000;

/// How often statistics of all are asked for where something of the list has gone meanwhile.
const MAX_LISTS: usize = 3;

/// Sees every finished call, for `kubelet_runtime_operations_*` metrics.
pub trait Observer: Send + Sync + 'static {
    /// A call ended after `elapsed`; `operation` is in metric spelling, such as `run_podsandbox`.
    fn observe(&self, operation: &'static str, elapsed: Duration, outcome: Result<(), &CriError>);
}

/// How to reach and treat the runtime.
#[derive(Clone)]
pub struct ClientOptions {
    /// `containerRuntimeEndpoint`, such as `unix:///run/containerd/containerd.sock`.
    pub runtime_endpoint: String,
    /// `imageServiceEndpoint`; empty means the same as the runtime's.
    pub image_endpoint: String,
    /// `runtimeRequestTimeout`.
    pub request_timeout: Duration,
    /// Whether lists use the streaming calls where the runtime has them (gate `CRIListStreaming`).
    pub list_streaming: bool,
    /// Told of every finished call.
    pub observer: Option<Arc<dyn Observer>>,
}

impl ClientOptions {
    /// Defaults for one endpoint: both services there, 2 minutes per call.
    #[must_use]
    pub fn new(endpoint: &str) -> Self {
        Self {
            runtime_endpoint: endpoint.to_owned(),
            image_endpoint: String::new(),
            request_timeout: Duration::from_secs(120),
            list_streaming: false,
            observer: None,
        }
    }
}

/// A runtime behind a socket. Clones share the connection.
#[derive(Clone)]
pub struct CriClient {
    runtime: RuntimeServiceClient<Traced<Channel>>,
    lists: Lists,
    pub(super) images: ImageServiceClient<Traced<Channel>>,
    pub(super) timeout: Duration,
    pub(super) streaming: Streaming,
    observer: Option<Arc<dyn Observer>>,
}

/// Which services of the runtime stream their lists, as far as is known: one that does not is not asked again. A runtime
/// that is replaced by one that does is asked by the next kubelet.
#[derive(Clone)]
pub(super) struct Streaming {
    pub(super) runtime: Arc<AtomicBool>,
    pub(super) images: Arc<AtomicBool>,
}

impl Streaming {
    fn new(is_wanted: bool) -> Self {
        Self { runtime: Arc::new(AtomicBool::new(is_wanted)), images: Arc::new(AtomicBool::new(is_wanted)) }
    }
}

impl CriClient {
    /// A client that dials at its first call and again whenever the connection is lost.
    ///
    /// # Errors
    /// When an endpoint is not a unix socket URL. A bare absolute path is taken as one.
    pub fn new(options: &ClientOptions) -> Result<Self, CriError> {
        let runtime = channel(&options.runtime_endpoint)?;
        let images = if options.image_endpoint.is_empty() || options.image_endpoint == options.runtime_endpoint {
            runtime.clone()
        } else {
            channel(&options.image_endpoint)?
        };
        Ok(Self {
            lists: Lists::new(runtime.clone(), MAX_MESSAGE_BYTES),
            runtime: RuntimeServiceClient::new(Traced(runtime)).max_decoding_message_size(MAX_MESSAGE_BYTES),
            images: ImageServiceClient::new(Traced(images)).max_decoding_message_size(MAX_MESSAGE_BYTES),
            timeout: options.request_timeout,
            streaming: Streaming::new(options.list_streaming),
            observer: options.observer.clone(),
        })
    }

    /// A client whose two services have been proved to answer, as a kubelet does at start.
    ///
    /// # Errors
    /// When an endpoint is wrong, unreachable, or speaks another version of the API.
    pub async fn connect(options: &ClientOptions) -> Result<Self, CriError> {
        let client = Self::new(options)?;
        let refused = |service, endpoint: &str, error: CriError| CriError::Validate {
            service,
            endpoint: endpoint.to_owned(),
            reason: error.to_string(),
        };
        client.version().await.map_err(|error| refused("runtime", &options.runtime_endpoint, error))?;
        let endpoint = Some(&options.image_endpoint).filter(|text| !text.is_empty());
        let endpoint = endpoint.unwrap_or(&options.runtime_endpoint);
        client.image_fs_info().await.map_err(|error| refused("image", endpoint, error))?;
        Ok(client)
    }

    /// Runs one call under its deadline and reports how it went.
    pub(super) async fn call<T>(
        &self,
        operation: &'static str,
        deadline: Option<Duration>,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CriError> {
        self.measured(operation, async {
            let answer = match deadline {
                None => call.await,
                Some(limit) => tokio::time::timeout(limit, call).await.map_err(|_| CriError::deadline(operation))?,
            };
            answer.map(Response::into_inner).map_err(|status| CriError::from_status(operation, &status))
        })
        .await
    }

    /// Collects a streamed list under one deadline; `None` when nobody is to ask for it, or the runtime has no such call.
    pub(super) async fn call_streamed<M, T, S>(
        &self,
        streams: &AtomicBool,
        operation: &'static str,
        call: impl Future<Output = Result<Response<S>, Status>>,
        items: impl Fn(M) -> Vec<T>,
    ) -> Result<Option<Vec<T>>, CriError>
    where
        S: Stream<Item = Result<M, Status>>,
    {
        if !streams.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let collect = async {
            let mut stream = std::pin::pin!(call.await?.into_inner());
            let mut all = Vec::new();
            while let Some(part) = stream.try_next().await? {
                all.extend(items(part));
                if all.len() > MAX_STREAMED_ITEMS {
                    return Err(Status::resource_exhausted("the streamed list is too long"));
                }
            }
            Ok(all)
        };
        let outcome = self.measured(operation, async {
            let answer =
                tokio::time::timeout(self.timeout, collect).await.map_err(|_| CriError::deadline(operation))?;
            answer.map_err(|status| CriError::from_status(operation, &status))
        });
        match outcome.await {
            Err(error) if error.code() == Code::Unimplemented => {
                streams.store(false, Ordering::Relaxed);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// A list of all, of which items are read as far as a change of them shows.
    async fn sketched<T: Listed>(&self) -> Result<Vec<Sketch<T>>, CriError> {
        let call = self.lists.clone().in_parts(T::IN_PARTS);
        let streamed =
            self.call_streamed(&self.streaming.runtime, T::OPERATION, call, |part: Items| part.items).await?;
        let items = match streamed {
            Some(items) => items,
            None => self.call(T::OPERATION, Some(self.timeout), self.lists.clone().whole(T::WHOLE)).await?.items,
        };
        items.into_iter().map(Sketch::read).collect()
    }

    async fn measured<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, CriError>>,
    ) -> Result<T, CriError> {
        let start = tokio::time::Instant::now();
        let outcome = call.await;
        if let Some(observer) = &self.observer {
            observer.observe(operation, start.elapsed(), outcome.as_ref().map(|_| ()));
        }
        outcome
    }
}

/// A lazy channel to a unix socket.
fn channel(endpoint: &str) -> Result<Channel, CriError> {
    let wrong = |reason: String| CriError::Endpoint { endpoint: endpoint.to_owned(), reason };
    let url = if endpoint.starts_with('/') { format!("unix://{endpoint}") } else { endpoint.to_owned() };
    if !url.starts_with("unix:///") {
        return Err(wrong("only unix sockets with an absolute path are supported".to_owned()));
    }
    let endpoint = Endpoint::from_shared(url).map_err(|error| wrong(error.to_string()))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .connect_lazy())
}

/// Checks the answer to Version as upstream does.
fn check_version(answer: VersionResponse) -> Result<VersionResponse, CriError> {
    let fields = [
        ("version", &answer.version),
        ("runtimeName", &answer.runtime_name),
        ("runtimeVersion", &answer.runtime_version),
        ("runtimeApiVersion", &answer.runtime_api_version),
    ];
    let missing: Vec<&str> = fields.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| *name).collect();
    if answer.version != API_VERSION && !answer.version.is_empty() {
        return Err(CriError::Version("runtime api version is not supported".to_owned()));
    }
    if missing.is_empty() {
        return Ok(answer);
    }
    Err(CriError::Version(format!("not all fields are set in VersionResponse (missing {})", missing.join(", "))))
}

/// A missing object counts as done.
pub(super) fn gone_is_done(outcome: Result<(), CriError>) -> Result<(), CriError> {
    outcome.or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Runtime for CriClient {
    async fn version(&self) -> Result<VersionResponse, CriError> {
        let request = VersionRequest { version: API_VERSION.to_owned() };
        check_version(self.call("version", Some(self.timeout), self.runtime.clone().version(request)).await?)
    }

    async fn status(&self, verbose: bool) -> Result<StatusResponse, CriError> {
        let mut service = self.runtime.clone();
        let answer = self.call("status", Some(self.timeout), service.status(StatusRequest { verbose })).await?;
        match &answer.status {
            Some(status) if status.conditions.len() >= 2 => Ok(answer),
            _ => Err(CriError::Incomplete { operation: "status", field: "conditions RuntimeReady and NetworkReady" }),
        }
    }

    async fn runtime_config(&self) -> Result<RuntimeConfigResponse, CriError> {
        let mut service = self.runtime.clone();
        self.call("runtime_config", Some(self.timeout), service.runtime_config(RuntimeConfigRequest {})).await
    }

    async fn update_runtime_config(&self, pod_cidr: &str) -> Result<(), CriError> {
        let network_config = Some(NetworkConfig { pod_cidr: pod_cidr.to_owned() });
        let request = UpdateRuntimeConfigRequest { runtime_config: Some(RuntimeConfig { network_config }) };
        let mut service = self.runtime.clone();
        self.call("update_runtime_config", Some(self.timeout), service.update_runtime_config(request)).await?;
        Ok(())
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, runtime_handler: &str) -> Result<String, CriError> {
        let request = RunPodSandboxRequest { config: Some(config), runtime_handler: runtime_handler.to_owned() };
        let deadline = Some(self.timeout.saturating_mul(2));
        let answer = self.call("run_podsandbox", deadline, self.runtime.clone().run_pod_sandbox(request)).await?;
        non_empty("run_podsandbox", "pod_sandbox_id", answer.pod_sandbox_id)
    }

    async fn stop_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError> {
        let request = StopPodSandboxRequest { pod_sandbox_id: sandbox_id.to_owned() };
        let call =
            self.call("stop_podsandbox", Some(self.timeout), self.runtime.clone().stop_pod_sandbox(request)).await;
        gone_is_done(call.map(drop))
    }

    async fn remove_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError> {
        let request = RemovePodSandboxRequest { pod_sandbox_id: sandbox_id.to_owned() };
        let mut service = self.runtime.clone();
        let call = self.call("remove_podsandbox", Some(self.timeout), service.remove_pod_sandbox(request));
        gone_is_done(call.await.map(drop))
    }

    async fn pod_sandbox_status(&self, sandbox_id: &str, verbose: bool) -> Result<PodSandboxStatusResponse, CriError> {
        let request = PodSandboxStatusRequest { pod_sandbox_id: sandbox_id.to_owned(), verbose };
        let mut service = self.runtime.clone();
        let answer = self.call("podsandbox_status", Some(self.timeout), service.pod_sandbox_status(request)).await?;
        match answer.status {
            Some(_) => Ok(answer),
            None => Err(CriError::Incomplete { operation: "podsandbox_status", field: "status" }),
        }
    }

    async fn list_pod_sandboxes(&self, filter: Option<PodSandboxFilter>) -> Result<Vec<PodSandbox>, CriError> {
        let mut service = self.runtime.clone();
        let (streams, request) = (&self.streaming.runtime, StreamPodSandboxesRequest { filter: filter.clone() });
        let call = service.stream_pod_sandboxes(request);
        let all = self.call_streamed(streams, "list_podsandbox", call, |part| part.pod_sandboxes).await?;
        if let Some(all) = all {
            return Ok(all);
        }
        let call = service.list_pod_sandbox(ListPodSandboxRequest { filter });
        Ok(self.call("list_podsandbox", Some(self.timeout), call).await?.items)
    }

    async fn sketch_pod_sandboxes(&self) -> Result<Vec<Sketch<PodSandbox>>, CriError> {
        self.sketched().await
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox_id: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<(), CriError> {
        let request = UpdatePodSandboxResourcesRequest { pod_sandbox_id: sandbox_id.to_owned(), overhead, resources };
        let mut service = self.runtime.clone();
        let call = service.update_pod_sandbox_resources(request);
        self.call("update_podsandbox_resources", Some(self.timeout), call).await?;
        Ok(())
    }

    async fn create_container(
        &self,
        sandbox_id: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String, CriError> {
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox_id.to_owned(),
            config: Some(config),
            sandbox_config: Some(sandbox_config),
        };
        let mut service = self.runtime.clone();
        let answer = self.call("create_container", Some(self.timeout), service.create_container(request)).await?;
        non_empty("create_container", "container_id", answer.container_id)
    }

    async fn start_container(&self, container_id: &str) -> Result<(), CriError> {
        let request = StartContainerRequest { container_id: container_id.to_owned() };
        self.call("start_container", Some(self.timeout), self.runtime.clone().start_container(request)).await?;
        Ok(())
    }

    async fn stop_container(&self, container_id: &str, grace: Duration) -> Result<(), CriError> {
        let request = StopContainerRequest { container_id: container_id.to_owned(), timeout: whole_seconds(grace) };
        let deadline = Some(self.timeout.saturating_add(grace));
        let call = self.call("stop_container", deadline, self.runtime.clone().stop_container(request)).await;
        gone_is_done(call.map(drop))
    }

    async fn remove_container(&self, container_id: &str) -> Result<(), CriError> {
        let request = RemoveContainerRequest { container_id: container_id.to_owned() };
        let mut service = self.runtime.clone();
        let call = self.call("remove_container", Some(self.timeout), service.remove_container(request));
        gone_is_done(call.await.map(drop))
    }

    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>, CriError> {
        let mut service = self.runtime.clone();
        let (streams, request) = (&self.streaming.runtime, StreamContainersRequest { filter: filter.clone() });
        let call = service.stream_containers(request);
        if let Some(all) = self.call_streamed(streams, "list_containers", call, |part| part.containers).await? {
            return Ok(all);
        }
        let call = service.list_containers(ListContainersRequest { filter });
        Ok(self.call("list_containers", Some(self.timeout), call).await?.containers)
    }

    async fn sketch_containers(&self) -> Result<Vec<Sketch<Container>>, CriError> {
        self.sketched().await
    }

    async fn container_status(&self, container_id: &str, verbose: bool) -> Result<ContainerStatusResponse, CriError> {
        let request = ContainerStatusRequest { container_id: container_id.to_owned(), verbose };
        let mut service = self.runtime.clone();
        let answer = self.call("container_status", Some(self.timeout), service.container_status(request)).await?;
        match answer.status {
            Some(_) => Ok(answer),
            None => Err(CriError::Incomplete { operation: "container_status", field: "status" }),
        }
    }

    async fn update_container_resources(&self, request: UpdateContainerResourcesRequest) -> Result<(), CriError> {
        let mut service = self.runtime.clone();
        let call = service.update_container_resources(request);
        self.call("update_container", Some(self.timeout), call).await?;
        Ok(())
    }

    async fn reopen_container_log(&self, container_id: &str) -> Result<(), CriError> {
        let request = ReopenContainerLogRequest { container_id: container_id.to_owned() };
        let mut service = self.runtime.clone();
        self.call("reopen_container_log", Some(self.timeout), service.reopen_container_log(request)).await?;
        Ok(())
    }

    async fn exec_sync(
        &self,
        container_id: &str,
        command: Vec<String>,
        timeout: Duration,
    ) -> Result<ExecSyncResponse, CriError> {
        let text = command.join(" ");
        let request =
            ExecSyncRequest { container_id: container_id.to_owned(), cmd: command, timeout: whole_seconds(timeout) };
        let deadline = (!timeout.is_zero()).then(|| self.timeout.saturating_add(timeout));
        let outcome = self.call("exec_sync", deadline, self.runtime.clone().exec_sync(request)).await;
        outcome.map_err(|error| match error.code() {
            Code::DeadlineExceeded => {
                CriError::CommandTimeout { command: text, after: format!("{}s", timeout.as_secs()) }
            }
            _ => error,
        })
    }

    async fn exec(&self, request: ExecRequest) -> Result<String, CriError> {
        let answer = self.call("exec", Some(self.timeout), self.runtime.clone().exec(request)).await?;
        non_empty("exec", "url", answer.url)
    }

    async fn attach(&self, request: AttachRequest) -> Result<String, CriError> {
        let answer = self.call("attach", Some(self.timeout), self.runtime.clone().attach(request)).await?;
        non_empty("attach", "url", answer.url)
    }

    async fn port_forward(&self, request: PortForwardRequest) -> Result<String, CriError> {
        let answer = self.call("port_forward", Some(self.timeout), self.runtime.clone().port_forward(request)).await?;
        non_empty("port_forward", "url", answer.url)
    }

    async fn container_stats(&self, container_id: &str) -> Result<ContainerStats, CriError> {
        let request = ContainerStatsRequest { container_id: container_id.to_owned() };
        let mut service = self.runtime.clone();
        let answer = self.call("container_stats", Some(self.timeout), service.container_stats(request)).await?;
        answer.stats.ok_or(CriError::Incomplete { operation: "container_stats", field: "stats" })
    }

    async fn list_container_stats(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>, CriError> {
        while_things_go(|| self.container_stats_at_once(filter.clone())).await
    }

    async fn pod_sandbox_stats(&self, sandbox_id: &str) -> Result<PodSandboxStats, CriError> {
        let request = PodSandboxStatsRequest { pod_sandbox_id: sandbox_id.to_owned() };
        let mut service = self.runtime.clone();
        let answer = self.call("podsandbox_stats", Some(self.timeout), service.pod_sandbox_stats(request)).await?;
        answer.stats.ok_or(CriError::Incomplete { operation: "podsandbox_stats", field: "stats" })
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>, CriError> {
        while_things_go(|| self.pod_sandbox_stats_at_once(filter.clone())).await
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<MetricDescriptor>, CriError> {
        let mut service = self.runtime.clone();
        let call = service.list_metric_descriptors(ListMetricDescriptorsRequest {});
        Ok(self.call("list_metric_descriptors", Some(self.timeout), call).await?.descriptors)
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<PodSandboxMetrics>, CriError> {
        let mut service = self.runtime.clone();
        let streams = &self.streaming.runtime;
        let call = service.stream_pod_sandbox_metrics(StreamPodSandboxMetricsRequest {});
        let all = self.call_streamed(streams, "list_podsandbox_metrics", call, |part| part.pod_sandbox_metrics).await?;
        if let Some(all) = all {
            return Ok(all);
        }
        let call = service.list_pod_sandbox_metrics(ListPodSandboxMetricsRequest {});
        Ok(self.call("list_podsandbox_metrics", Some(self.timeout), call).await?.pod_metrics)
    }

    async fn checkpoint_container(
        &self,
        container_id: &str,
        location: &str,
        timeout: Duration,
    ) -> Result<(), CriError> {
        let request = CheckpointContainerRequest {
            container_id: container_id.to_owned(),
            location: location.to_owned(),
            timeout: whole_seconds(timeout),
        };
        let deadline = Some(self.timeout.saturating_add(timeout));
        let mut service = self.runtime.clone();
        self.call("checkpoint_container", deadline, service.checkpoint_container(request)).await?;
        Ok(())
    }

    async fn container_events(&self) -> Result<EventStream, CriError> {
        let mut service = self.runtime.clone();
        // A runtime sends the head of the answer with its first event, so waiting for it has no deadline either.
        let stream = self.call("get_container_events", None, service.get_container_events(GetEventsRequest {})).await?;
        Ok(stream.map_err(|status| CriError::from_status("get_container_events", &status)).boxed())
    }
}

impl CriClient {
    async fn container_stats_at_once(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>, CriError> {
        let mut service = self.runtime.clone();
        let (streams, request) = (&self.streaming.runtime, StreamContainerStatsRequest { filter: filter.clone() });
        let call = service.stream_container_stats(request);
        let all = self.call_streamed(streams, "list_container_stats", call, |part| part.container_stats).await?;
        if let Some(all) = all {
            return Ok(all);
        }
        let call = service.list_container_stats(ListContainerStatsRequest { filter });
        Ok(self.call("list_container_stats", Some(self.timeout), call).await?.stats)
    }

    async fn pod_sandbox_stats_at_once(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>, CriError> {
        let mut service = self.runtime.clone();
        let (streams, request) = (&self.streaming.runtime, StreamPodSandboxStatsRequest { filter: filter.clone() });
        let call = service.stream_pod_sandbox_stats(request);
        let all = self.call_streamed(streams, "list_podsandbox_stats", call, |part| part.pod_sandbox_stats).await?;
        if let Some(all) = all {
            return Ok(all);
        }
        let call = service.list_pod_sandbox_stats(ListPodSandboxStatsRequest { filter });
        Ok(self.call("list_podsandbox_stats", Some(self.timeout), call).await?.stats)
    }
}

/// Lists again where that names something which is gone: containerd refuses all statistics when a container goes while it
/// makes the list.
async fn while_things_go<T, F>(mut list: impl FnMut() -> F) -> Result<T, CriError>
where
    F: Future<Output = Result<T, CriError>>,
{
    for _ in 1..MAX_LISTS {
        match list().await {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
    }
    list().await
}

fn non_empty(operation: &'static str, field: &'static str, text: String) -> Result<String, CriError> {
    if text.is_empty() { Err(CriError::Incomplete { operation, field }) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_unix_sockets_are_endpoints() {
        for bad in ["tcp://127.0.0.1:1", "unix://relative.sock", "", "http://x"] {
            assert!(matches!(channel(bad), Err(CriError::Endpoint { .. })), "{bad}");
        }
    }

    #[test]
    fn version_answers_are_checked() {
        let full = VersionResponse {
            version: API_VERSION.into(),
            runtime_name: "r".into(),
            runtime_version: "1".into(),
            runtime_api_version: "v1".into(),
        };
        assert!(check_version(full.clone()).is_ok());
        let other = VersionResponse { version: "0.2.0".into(), ..full.clone() };
        assert_eq!(check_version(other).unwrap_err().to_string(), "runtime api version is not supported");
        let partial = VersionResponse { runtime_name: String::new(), ..full };
        let text = check_version(partial).unwrap_err().to_string();
        assert_eq!(text, "not all fields are set in VersionResponse (missing runtimeName)");
    }
}
