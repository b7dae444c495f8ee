//! What the runtime says of a pod: its sandboxes and containers, newest first, free of the wire's shapes.

use std::collections::HashMap;

use node_api::cri::v1;

use super::labels;

/// The runtime's state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    Created,
    Running,
    Exited,
    Unknown,
}

impl RecordState {
    pub fn of(state: i32) -> Self {
        match v1::ContainerState::try_from(state) {
            Ok(v1::ContainerState::ContainerCreated) => Self::Created,
            Ok(v1::ContainerState::ContainerRunning) => Self::Running,
            Ok(v1::ContainerState::ContainerExited) => Self::Exited,
            _ => Self::Unknown,
        }
    }
}

/// One container that the runtime knows. Times are nanoseconds since 1970, 0 where not reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerRecord {
    pub id: String,
    pub name: String,
    pub sandbox_id: String,
    pub state: RecordState,
    pub created_at: i64,
    pub started_at: i64,
    pub finished_at: i64,
    pub exit_code: i32,
    pub reason: String,
    /// The runtime's text, with the termination message appended.
    pub message: String,
    pub image: String,
    pub image_ref: String,
    pub restart_count: i32,
    pub log_path: String,
    pub annotations: HashMap<String, String>,
    pub mounts: Vec<v1::Mount>,
    pub user: Option<v1::LinuxContainerUser>,
    pub resources: Option<v1::LinuxContainerResources>,
    /// The runtime's number of the signal that it ends it by, or of its default.
    pub stop_signal: i32,
}

impl ContainerRecord {
    pub fn is_running(&self) -> bool {
        self.state == RecordState::Running
    }

    /// Whether it ran and does so no more. What was only created is about to run.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, RecordState::Exited | RecordState::Unknown)
    }

    /// Whether it ended with success.
    pub fn succeeded(&self) -> bool {
        self.state == RecordState::Exited && self.exit_code == 0
    }

    pub fn annotation(&self, name: &str) -> &str {
        self.annotations.get(name).map_or("", String::as_str)
    }

    pub fn from_status(status: v1::ContainerStatus, sandbox_id: &str) -> Self {
        let name = status.labels.get(labels::CONTAINER_NAME).cloned();
        let metadata = status.metadata.unwrap_or_default();
        let restarts = status.annotations.get(labels::RESTART_COUNT).and_then(|text| text.parse().ok());
        Self {
            id: status.id,
            name: name.unwrap_or(metadata.name),
            sandbox_id: sandbox_id.to_owned(),
            state: RecordState::of(status.state),
            created_at: status.created_at,
            started_at: status.started_at,
            finished_at: status.finished_at,
            exit_code: status.exit_code,
            reason: status.reason,
            message: status.message,
            image: status.image.map(|image| image.image).unwrap_or_default(),
            image_ref: status.image_ref,
            restart_count: restarts.unwrap_or_else(|| i32::try_from(metadata.attempt).unwrap_or(i32::MAX)),
            log_path: status.log_path,
            annotations: status.annotations,
            mounts: status.mounts,
            user: status.user.and_then(|user| user.linux),
            resources: status.resources.and_then(|resources| resources.linux),
            stop_signal: status.stop_signal,
        }
    }
}

/// One sandbox that the runtime knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRecord {
    pub id: String,
    pub attempt: u32,
    pub ready: bool,
    pub created_at: i64,
    /// Primary address first; empty on the host's network.
    pub ips: Vec<String>,
    /// Whether the runtime said anything about the network.
    pub has_network: bool,
    /// `None` where the runtime does not say.
    pub host_network: Option<bool>,
    pub annotations: HashMap<String, String>,
}

impl SandboxRecord {
    pub fn from_status(status: &v1::PodSandboxStatus) -> Self {
        let ips = status
            .network
            .iter()
            .flat_map(|network| std::iter::once(&network.ip).chain(network.additional_ips.iter().map(|more| &more.ip)));
        let options = status.linux.as_ref().and_then(|linux| linux.namespaces.as_ref()?.options.as_ref());
        Self {
            id: status.id.clone(),
            attempt: status.metadata.as_ref().map_or(0, |metadata| metadata.attempt),
            ready: status.state() == v1::PodSandboxState::SandboxReady,
            created_at: status.created_at,
            ips: ips.filter(|ip| !ip.is_empty()).cloned().collect(),
            has_network: status.network.is_some(),
            host_network: options.map(|options| options.network() == v1::NamespaceMode::Node),
            annotations: status.annotations.clone(),
        }
    }
}

/// Records to start from, for tests.
#[cfg(test)]
impl ContainerRecord {
    pub fn example(id: &str, name: &str, state: RecordState) -> Self {
        let status = v1::ContainerStatus { id: id.to_owned(), created_at: 1, ..Default::default() };
        Self { name: name.to_owned(), state, ..Self::from_status(status, "s") }
    }
}

#[cfg(test)]
impl SandboxRecord {
    pub fn example(id: &str, ready: bool) -> Self {
        let status = v1::PodSandboxStatus {
            id: id.to_owned(),
            network: Some(v1::PodSandboxNetworkStatus::default()),
            ..Default::default()
        };
        Self { ready, ..Self::from_status(&status) }
    }
}

/// All that the runtime knows of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimePod {
    pub uid: String,
    pub name: String,
    pub namespace: String,
    /// Newest first: by attempt, then time, then id.
    pub sandboxes: Vec<SandboxRecord>,
    /// Newest first.
    pub containers: Vec<ContainerRecord>,
    /// Addresses of the newest sandbox, or the last known ones when it is gone.
    pub ips: Vec<String>,
}

impl RuntimePod {
    /// Sorts what was gathered and fills in the addresses, keeping those of `before` where none are left.
    pub fn finish(mut self, before: Option<&Self>) -> Self {
        self.sandboxes.sort_by(|a, b| (b.attempt, b.created_at, &b.id).cmp(&(a.attempt, a.created_at, &a.id)));
        self.containers.sort_by_key(|record| std::cmp::Reverse((record.created_at, record.restart_count)));
        self.ips = self.sandboxes.first().map(|sandbox| sandbox.ips.clone()).unwrap_or_default();
        if self.ips.is_empty() && !self.sandboxes.first().is_some_and(|sandbox| sandbox.ready) {
            self.ips = before.map(|before| before.ips.clone()).unwrap_or_default();
        }
        self
    }

    /// The newest record of a container.
    pub fn container(&self, name: &str) -> Option<&ContainerRecord> {
        self.containers.iter().find(|record| record.name == name)
    }

    /// All records of a container, newest first.
    pub fn records<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ContainerRecord> {
        self.containers.iter().filter(move |record| record.name == name)
    }

    pub fn running(&self) -> impl Iterator<Item = &ContainerRecord> {
        self.containers.iter().filter(|record| record.is_running())
    }

    pub fn has_ready_sandbox(&self) -> bool {
        self.sandboxes.iter().any(|sandbox| sandbox.ready)
    }

    pub fn is_empty(&self) -> bool {
        self.sandboxes.is_empty() && self.containers.is_empty()
    }

    /// Whether something of it may still run.
    pub fn is_alive(&self) -> bool {
        self.has_ready_sandbox() || self.running().next().is_some()
    }
}
