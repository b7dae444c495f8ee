//! Sandboxes and containers of the fake runtime.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::sync::{broadcast, watch};
use tonic::Code;

use super::images::find;
use super::model::{FakeContainer, FakeSandbox, contains};
use super::{Ended, FakeRuntime, Script, State};
use crate::cri::v1::{
    AttachRequest, CgroupDriver, Container, ContainerAttributes, ContainerConfig, ContainerEventResponse,
    ContainerEventType, ContainerFilter, ContainerState, ContainerStats, ContainerStatsFilter, ContainerStatusResponse,
    CpuUsage, ExecRequest, ExecSyncResponse, LinuxContainerResources, LinuxPodSandboxStats, LinuxRuntimeConfiguration,
    MemoryUsage, MetricDescriptor, PodSandbox, PodSandboxAttributes, PodSandboxConfig, PodSandboxFilter,
    PodSandboxMetrics, PodSandboxStats, PodSandboxStatsFilter, PodSandboxStatusResponse, PortForwardRequest,
    RuntimeConfigResponse, RuntimeHandler, RuntimeStatus, StatusResponse, UInt64Value, UpdateContainerResourcesRequest,
    VersionResponse,
};
use crate::cri::{API_VERSION, CriError, EventStream, Runtime};

/// The exit code of what was killed.
const KILLED: i32 = 137;
/// The exit code of what could not be started.
const START_FAILED: i32 = 128;
/// Where streaming URLs point to; nobody listens there.
const STREAMING_BASE: &str = "http://127.0.0.1:0";

impl FakeRuntime {
    /// Ends a running container. Returns whether it was running.
    pub(super) fn end(&self, container_id: &str, code: i32, reason: &str) -> bool {
        let now = self.now();
        let mut state = self.shared.state.lock();
        let Some(container) = state.containers.get_mut(container_id) else { return false };
        if container.state != ContainerState::ContainerRunning {
            return false;
        }
        container.state = ContainerState::ContainerExited;
        container.finished_at = now;
        container.exit_code = code;
        let usual = if code == 0 { "Completed" } else { "Error" };
        container.reason = if reason.is_empty() { usual.to_owned() } else { reason.to_owned() };
        container.ended.send_replace(true);
        let sandbox_id = container.sandbox_id.clone();
        self.emit(&state, container_id, &sandbox_id, ContainerEventType::ContainerStoppedEvent, now);
        true
    }

    /// Sends an event with the state of the whole pod; nobody may be listening.
    fn emit(&self, state: &State, id: &str, sandbox_id: &str, kind: ContainerEventType, now: i64) {
        let containers = state.containers.values().filter(|container| container.sandbox_id == sandbox_id);
        let _ = self.shared.events.send(ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: kind.into(),
            created_at: now,
            pod_sandbox_status: state.sandboxes.get(sandbox_id).map(FakeSandbox::status),
            containers_statuses: containers.map(FakeContainer::status).collect(),
        });
    }

    /// Runs a started container to the end of its script.
    fn run(&self, container_id: &str, script: &Script, mut ended: Ended) {
        let Some(after) = script.runs_for else { return };
        let (fake, id, code, reason) = (self.clone(), container_id.to_owned(), script.exit_code, script.reason.clone());
        self.shared.group.spawn_cancellable("fake-container", async move {
            tokio::select! {
                () = tokio::time::sleep(after) => drop(fake.end(&id, code, &reason)),
                _ = ended.wait_for(|ended| *ended) => {}
            }
        });
    }

    fn kill_all(&self, sandbox_id: &str) {
        let ids: Vec<String> = {
            let state = self.shared.state.lock();
            let of_sandbox = state.containers.values().filter(|container| container.sandbox_id == sandbox_id);
            of_sandbox.map(|container| container.id.clone()).collect()
        };
        for id in ids {
            self.end(&id, KILLED, "");
        }
    }

    fn with_container<T>(
        &self,
        operation: &'static str,
        id: &str,
        look: impl FnOnce(&mut FakeContainer) -> Result<T, CriError>,
    ) -> Result<T, CriError> {
        let mut state = self.shared.state.lock();
        look(state.containers.get_mut(id).ok_or_else(|| missing(operation, "container", id))?)
    }

    fn stats_of(&self, state: &State, container: &FakeContainer) -> ContainerStats {
        let timestamp = self.now();
        let bytes = state.memory.get(container.name()).copied().unwrap_or(0);
        ContainerStats {
            attributes: Some(ContainerAttributes {
                id: container.id.clone(),
                metadata: container.config.metadata.clone(),
                labels: container.config.labels.clone(),
                annotations: container.config.annotations.clone(),
            }),
            cpu: Some(CpuUsage { timestamp, usage_core_nano_seconds: number(0), ..Default::default() }),
            memory: Some(memory(timestamp, bytes)),
            ..Default::default()
        }
    }

    fn sandbox_stats(&self, state: &State, sandbox: &FakeSandbox) -> PodSandboxStats {
        let running = |container: &&FakeContainer| {
            container.sandbox_id == sandbox.id && container.state == ContainerState::ContainerRunning
        };
        let containers: Vec<ContainerStats> =
            state.containers.values().filter(running).map(|container| self.stats_of(state, container)).collect();
        let used = containers.iter().filter_map(|stats| Some(stats.memory.as_ref()?.working_set_bytes?.value)).sum();
        PodSandboxStats {
            attributes: Some(PodSandboxAttributes {
                id: sandbox.id.clone(),
                metadata: sandbox.config.metadata.clone(),
                labels: sandbox.config.labels.clone(),
                annotations: sandbox.config.annotations.clone(),
            }),
            linux: Some(LinuxPodSandboxStats {
                memory: Some(memory(self.now(), used)),
                containers,
                ..Default::default()
            }),
            windows: None,
        }
    }
}

fn number(value: u64) -> Option<UInt64Value> {
    Some(UInt64Value { value })
}

fn memory(timestamp: i64, bytes: u64) -> MemoryUsage {
    MemoryUsage { timestamp, working_set_bytes: number(bytes), usage_bytes: number(bytes), ..Default::default() }
}

fn missing(operation: &'static str, what: &str, id: &str) -> CriError {
    CriError::rpc(operation, Code::NotFound, format!("an error occurred when try to find {what} {id:?}: not found"))
}

fn invalid(operation: &'static str, text: impl Into<String>) -> CriError {
    CriError::rpc(operation, Code::InvalidArgument, text)
}

/// The checks that runtimes make before they give out a URL.
impl FakeRuntime {
    fn streaming_url(&self, what: &str) -> String {
        let state = self.shared.state.lock();
        format!("{}/{what}/token", state.streaming_base.as_deref().unwrap_or(STREAMING_BASE))
    }
}

fn check_streams(operation: &'static str, [stdin, stdout, stderr, tty]: [bool; 4]) -> Result<(), CriError> {
    if tty && stderr {
        return Err(invalid(operation, "tty and stderr cannot both be true"));
    }
    if !stdin && !stdout && !stderr {
        return Err(invalid(operation, "one of stdin, stdout, or stderr must be set"));
    }
    Ok(())
}

impl State {
    fn new_id(&mut self) -> String {
        self.next_id += 1;
        format!("{:064x}", self.next_id)
    }

    fn new_ip(&mut self) -> String {
        self.next_ip += 1;
        let [_, _, third, last] = (self.next_ip + 1).to_be_bytes();
        format!("10.88.{third}.{last}")
    }

    /// The next script of a container name; the last one stays.
    fn next_script(&mut self, name: &str) -> Script {
        let Some(scripts) = self.scripts.get_mut(name) else { return Script::forever() };
        let last = scripts.len() <= 1;
        let next = if last { scripts.front().cloned() } else { scripts.pop_front() };
        next.unwrap_or_else(Script::forever)
    }
}

#[async_trait]
impl Runtime for FakeRuntime {
    async fn version(&self) -> Result<VersionResponse, CriError> {
        self.enter("version", "").await?;
        Ok(VersionResponse {
            version: API_VERSION.to_owned(),
            runtime_name: "fake".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    async fn status(&self, _verbose: bool) -> Result<StatusResponse, CriError> {
        self.enter("status", "").await?;
        let state = self.shared.state.lock();
        Ok(StatusResponse {
            status: Some(RuntimeStatus { conditions: state.conditions.clone() }),
            runtime_handlers: vec![RuntimeHandler::default()],
            features: state.features,
            ..Default::default()
        })
    }

    async fn runtime_config(&self) -> Result<RuntimeConfigResponse, CriError> {
        self.enter("runtime_config", "").await?;
        let linux = LinuxRuntimeConfiguration { cgroup_driver: CgroupDriver::Systemd.into() };
        Ok(RuntimeConfigResponse { linux: Some(linux) })
    }

    async fn update_runtime_config(&self, pod_cidr: &str) -> Result<(), CriError> {
        self.enter("update_runtime_config", pod_cidr).await?;
        self.shared.state.lock().pod_cidr = pod_cidr.to_owned();
        Ok(())
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, runtime_handler: &str) -> Result<String, CriError> {
        let metadata =
            config.metadata.clone().ok_or_else(|| invalid("run_podsandbox", "sandbox metadata is required"))?;
        self.enter("run_podsandbox", &format!("{}/{}", metadata.namespace, metadata.name)).await?;
        let now = self.now();
        let mut state = self.shared.state.lock();
        if state.sandboxes.values().any(|sandbox| sandbox.config.metadata.as_ref() == Some(&metadata)) {
            let text = format!("failed to reserve sandbox name for pod {:?}", metadata.name);
            return Err(CriError::rpc("run_podsandbox", Code::AlreadyExists, text));
        }
        let id = state.new_id();
        let mut sandbox = FakeSandbox {
            id: id.clone(),
            config,
            runtime_handler: runtime_handler.to_owned(),
            ready: true,
            created_at: now,
            ips: Vec::new(),
        };
        if !sandbox.uses_host_network() {
            sandbox.ips.push(state.new_ip());
        }
        state.sandboxes.insert(id.clone(), sandbox);
        self.emit(&state, &id, &id, ContainerEventType::ContainerStartedEvent, now);
        Ok(id)
    }

    async fn stop_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError> {
        self.enter("stop_podsandbox", sandbox_id).await?;
        self.kill_all(sandbox_id);
        let now = self.now();
        let mut state = self.shared.state.lock();
        let Some(sandbox) = state.sandboxes.get_mut(sandbox_id) else { return Ok(()) };
        if std::mem::replace(&mut sandbox.ready, false) {
            self.emit(&state, sandbox_id, sandbox_id, ContainerEventType::ContainerStoppedEvent, now);
        }
        Ok(())
    }

    async fn remove_pod_sandbox(&self, sandbox_id: &str) -> Result<(), CriError> {
        self.enter("remove_podsandbox", sandbox_id).await?;
        self.kill_all(sandbox_id);
        let now = self.now();
        let mut state = self.shared.state.lock();
        state.containers.retain(|_, container| container.sandbox_id != sandbox_id);
        if state.sandboxes.remove(sandbox_id).is_some() {
            self.emit(&state, sandbox_id, sandbox_id, ContainerEventType::ContainerDeletedEvent, now);
        }
        Ok(())
    }

    async fn pod_sandbox_status(&self, sandbox_id: &str, _verbose: bool) -> Result<PodSandboxStatusResponse, CriError> {
        self.enter("podsandbox_status", sandbox_id).await?;
        let timestamp = self.now();
        let state = self.shared.state.lock();
        let sandbox = state.sandboxes.get(sandbox_id);
        let sandbox = sandbox.ok_or_else(|| missing("podsandbox_status", "sandbox", sandbox_id))?;
        Ok(PodSandboxStatusResponse { status: Some(sandbox.status()), timestamp, ..Default::default() })
    }

    async fn list_pod_sandboxes(&self, filter: Option<PodSandboxFilter>) -> Result<Vec<PodSandbox>, CriError> {
        self.enter("list_podsandbox", "").await?;
        let state = self.shared.state.lock();
        let matching = state.sandboxes.values().filter(|sandbox| sandbox.matches(filter.as_ref()));
        Ok(matching.map(FakeSandbox::listed).collect())
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox_id: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<(), CriError> {
        self.enter("update_podsandbox_resources", sandbox_id).await?;
        let mut state = self.shared.state.lock();
        let sandbox = state.sandboxes.get_mut(sandbox_id);
        let sandbox = sandbox.ok_or_else(|| missing("update_podsandbox_resources", "sandbox", sandbox_id))?;
        let linux = sandbox.config.linux.get_or_insert_default();
        linux.overhead = overhead.or(linux.overhead.take());
        linux.resources = resources.or(linux.resources.take());
        Ok(())
    }

    async fn create_container(
        &self,
        sandbox_id: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String, CriError> {
        const OPERATION: &str = "create_container";
        let metadata = config.metadata.clone().ok_or_else(|| invalid(OPERATION, "container metadata is required"))?;
        self.enter(OPERATION, &metadata.name).await?;
        let now = self.now();
        let mut state = self.shared.state.lock();
        let sandbox = state.sandboxes.get(sandbox_id).ok_or_else(|| missing(OPERATION, "sandbox", sandbox_id))?;
        if !sandbox.ready {
            let text = format!("sandbox container {sandbox_id:?} is not running");
            return Err(CriError::rpc(OPERATION, Code::Unknown, text));
        }
        let same = |container: &FakeContainer| {
            container.sandbox_id == sandbox_id && container.config.metadata.as_ref() == Some(&metadata)
        };
        if state.containers.values().any(same) {
            let text = format!("failed to reserve container name {:?}", metadata.name);
            return Err(CriError::rpc(OPERATION, Code::AlreadyExists, text));
        }
        let wanted = config.image.as_ref().map_or("", |image| &image.image);
        let image_id = find(&state, wanted).map(|image| image.id.clone());
        let image_id = image_id.ok_or_else(|| missing(OPERATION, "image", wanted))?;
        let id = state.new_id();
        let container = FakeContainer {
            id: id.clone(),
            sandbox_id: sandbox_id.to_owned(),
            log_path: format!("{}/{}", sandbox_config.log_directory, config.log_path),
            resources: config.linux.as_ref().and_then(|linux| linux.resources.clone()),
            config,
            image_id,
            state: ContainerState::ContainerCreated,
            created_at: now,
            started_at: 0,
            finished_at: 0,
            exit_code: 0,
            reason: String::new(),
            message: String::new(),
            on_stop: None,
            ended: watch::channel(false).0,
        };
        state.containers.insert(id.clone(), container);
        self.emit(&state, &id, sandbox_id, ContainerEventType::ContainerCreatedEvent, now);
        Ok(id)
    }

    async fn start_container(&self, container_id: &str) -> Result<(), CriError> {
        const OPERATION: &str = "start_container";
        self.enter(OPERATION, container_id).await?;
        let now = self.now();
        let mut state = self.shared.state.lock();
        let found = state.containers.get(container_id).ok_or_else(|| missing(OPERATION, "container", container_id))?;
        if found.state != ContainerState::ContainerCreated {
            let text = format!("container {container_id:?} is in {} state", found.state.as_str_name());
            return Err(CriError::rpc(OPERATION, Code::Unknown, text));
        }
        let name = found.name().to_owned();
        let script = state.next_script(&name);
        let container =
            state.containers.get_mut(container_id).ok_or_else(|| missing(OPERATION, "container", container_id))?;
        if let Some(text) = script.start_error {
            container.state = ContainerState::ContainerExited;
            container.finished_at = now;
            container.exit_code = START_FAILED;
            container.reason = "StartError".to_owned();
            container.message.clone_from(&text);
            container.ended.send_replace(true);
            return Err(CriError::rpc(OPERATION, Code::Unknown, text));
        }
        container.state = ContainerState::ContainerRunning;
        container.started_at = now;
        container.on_stop = script.on_stop;
        let (ended, sandbox_id) = (container.ended.subscribe(), container.sandbox_id.clone());
        self.emit(&state, container_id, &sandbox_id, ContainerEventType::ContainerStartedEvent, now);
        drop(state);
        self.run(container_id, &script, ended);
        Ok(())
    }

    async fn stop_container(&self, container_id: &str, grace: Duration) -> Result<(), CriError> {
        self.enter("stop_container", container_id).await?;
        let (on_stop, mut ended) = {
            let state = self.shared.state.lock();
            let Some(container) = state.containers.get(container_id) else { return Ok(()) };
            if container.state != ContainerState::ContainerRunning {
                return Ok(());
            }
            (container.on_stop, container.ended.subscribe())
        };
        let (wait, code) = match on_stop {
            Some((takes, code)) if takes <= grace && !grace.is_zero() => (takes, code),
            _ => (grace, KILLED),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => drop(self.end(container_id, code, "")),
            _ = ended.wait_for(|ended| *ended) => {}
        }
        Ok(())
    }

    async fn remove_container(&self, container_id: &str) -> Result<(), CriError> {
        self.enter("remove_container", container_id).await?;
        self.end(container_id, KILLED, "");
        let now = self.now();
        let mut state = self.shared.state.lock();
        if let Some(container) = state.containers.remove(container_id) {
            let sandbox_id = container.sandbox_id;
            self.emit(&state, container_id, &sandbox_id, ContainerEventType::ContainerDeletedEvent, now);
        }
        Ok(())
    }

    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>, CriError> {
        self.enter("list_containers", "").await?;
        let state = self.shared.state.lock();
        let matching = state.containers.values().filter(|container| container.matches(filter.as_ref()));
        Ok(matching.map(FakeContainer::listed).collect())
    }

    async fn container_status(&self, container_id: &str, _verbose: bool) -> Result<ContainerStatusResponse, CriError> {
        self.enter("container_status", container_id).await?;
        let status = self.with_container("container_status", container_id, |container| Ok(container.status()))?;
        Ok(ContainerStatusResponse { status: Some(status), ..Default::default() })
    }

    async fn update_container_resources(&self, request: UpdateContainerResourcesRequest) -> Result<(), CriError> {
        self.enter("update_container", &request.container_id).await?;
        self.with_container("update_container", &request.container_id, |container| {
            container.resources = request.linux.or(container.resources.take());
            Ok(())
        })
    }

    async fn reopen_container_log(&self, container_id: &str) -> Result<(), CriError> {
        self.enter("reopen_container_log", container_id).await?;
        self.with_container("reopen_container_log", container_id, |container| match container.state {
            ContainerState::ContainerRunning => Ok(()),
            _ => Err(CriError::rpc("reopen_container_log", Code::Unknown, "container is not running")),
        })
    }

    async fn exec_sync(
        &self,
        container_id: &str,
        command: Vec<String>,
        timeout: Duration,
    ) -> Result<ExecSyncResponse, CriError> {
        self.enter("exec_sync", container_id).await?;
        let command = command.join(" ");
        self.with_container("exec_sync", container_id, |container| match container.state {
            ContainerState::ContainerRunning => Ok(()),
            _ => Err(CriError::rpc("exec_sync", Code::Unknown, "container is not running")),
        })?;
        let script = self.shared.state.lock().execs.get(&command).cloned().unwrap_or_default();
        if !timeout.is_zero() && script.takes > timeout {
            tokio::time::sleep(timeout).await;
            return Err(CriError::CommandTimeout { command, after: format!("{}s", timeout.as_secs()) });
        }
        if !script.takes.is_zero() {
            tokio::time::sleep(script.takes).await;
        }
        Ok(ExecSyncResponse { stdout: script.stdout, stderr: script.stderr, exit_code: script.exit_code })
    }

    async fn exec(&self, request: ExecRequest) -> Result<String, CriError> {
        self.enter("exec", &request.container_id).await?;
        check_streams("exec", [request.stdin, request.stdout, request.stderr, request.tty])?;
        self.with_container("exec", &request.container_id, |_| Ok(()))?;
        Ok(self.streaming_url("exec"))
    }

    async fn attach(&self, request: AttachRequest) -> Result<String, CriError> {
        self.enter("attach", &request.container_id).await?;
        check_streams("attach", [request.stdin, request.stdout, request.stderr, request.tty])?;
        self.with_container("attach", &request.container_id, |_| Ok(()))?;
        Ok(self.streaming_url("attach"))
    }

    async fn port_forward(&self, request: PortForwardRequest) -> Result<String, CriError> {
        self.enter("port_forward", &request.pod_sandbox_id).await?;
        let is_there = self.shared.state.lock().sandboxes.contains_key(&request.pod_sandbox_id);
        match is_there {
            true => Ok(self.streaming_url("portforward")),
            false => Err(missing("port_forward", "sandbox", &request.pod_sandbox_id)),
        }
    }

    async fn container_stats(&self, container_id: &str) -> Result<ContainerStats, CriError> {
        self.enter("container_stats", container_id).await?;
        let state = self.shared.state.lock();
        let container = state.containers.get(container_id);
        let container = container.ok_or_else(|| missing("container_stats", "container", container_id))?;
        Ok(self.stats_of(&state, container))
    }

    async fn list_container_stats(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>, CriError> {
        self.enter("list_container_stats", "").await?;
        let filter = filter.map(|filter| ContainerFilter {
            id: filter.id,
            pod_sandbox_id: filter.pod_sandbox_id,
            label_selector: filter.label_selector,
            state: None,
        });
        let state = self.shared.state.lock();
        let matching = state.containers.values().filter(|container| {
            container.state == ContainerState::ContainerRunning && container.matches(filter.as_ref())
        });
        Ok(matching.map(|container| self.stats_of(&state, container)).collect())
    }

    async fn pod_sandbox_stats(&self, sandbox_id: &str) -> Result<PodSandboxStats, CriError> {
        self.enter("podsandbox_stats", sandbox_id).await?;
        let state = self.shared.state.lock();
        let sandbox = state.sandboxes.get(sandbox_id);
        let sandbox = sandbox.ok_or_else(|| missing("podsandbox_stats", "sandbox", sandbox_id))?;
        Ok(self.sandbox_stats(&state, sandbox))
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>, CriError> {
        self.enter("list_podsandbox_stats", "").await?;
        let filter = filter.unwrap_or_default();
        let state = self.shared.state.lock();
        let matching = state.sandboxes.values().filter(|sandbox| {
            (filter.id.is_empty() || sandbox.id == filter.id)
                && contains(&sandbox.config.labels, &filter.label_selector)
        });
        Ok(matching.map(|sandbox| self.sandbox_stats(&state, sandbox)).collect())
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<MetricDescriptor>, CriError> {
        self.enter("list_metric_descriptors", "").await?;
        Ok(self.shared.state.lock().metrics.0.clone())
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<PodSandboxMetrics>, CriError> {
        self.enter("list_podsandbox_metrics", "").await?;
        Ok(self.shared.state.lock().metrics.1.clone())
    }

    async fn checkpoint_container(
        &self,
        container_id: &str,
        _location: &str,
        _timeout: Duration,
    ) -> Result<(), CriError> {
        self.enter("checkpoint_container", container_id).await?;
        Err(CriError::rpc("checkpoint_container", Code::Unimplemented, "the fake runtime has no checkpoints"))
    }

    async fn container_events(&self) -> Result<EventStream, CriError> {
        self.enter("get_container_events", "").await?;
        let receiver = self.shared.events.subscribe();
        let stream = futures_util::stream::unfold(Some(receiver), |receiver| async {
            let mut receiver = receiver?;
            match receiver.recv().await {
                Ok(event) => Some((Ok(event), Some(receiver))),
                Err(broadcast::error::RecvError::Closed) => None,
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    let text = "the reader fell behind";
                    Some((Err(CriError::rpc("get_container_events", Code::ResourceExhausted, text)), None))
                }
            }
        });
        Ok(stream.boxed())
    }
}
