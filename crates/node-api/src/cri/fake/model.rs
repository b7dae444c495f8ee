//! The fake runtime's sandboxes and containers, and how they appear over CRI.

use std::collections::HashMap;

use tokio::sync::watch;

use crate::cri::v1::{
    Container, ContainerConfig, ContainerFilter, ContainerResources, ContainerState, ContainerStatus,
    LinuxContainerResources, NamespaceMode, PodIp, PodSandbox, PodSandboxConfig, PodSandboxFilter,
    PodSandboxNetworkStatus, PodSandboxState, PodSandboxStatus,
};

/// A sandbox with all that was asked of it.
pub(super) struct FakeSandbox {
    pub(super) id: String,
    pub(super) config: PodSandboxConfig,
    pub(super) runtime_handler: String,
    pub(super) ready: bool,
    pub(super) created_at: i64,
    pub(super) ips: Vec<String>,
}

/// A container with all that was asked of it.
pub(super) struct FakeContainer {
    pub(super) id: String,
    pub(super) sandbox_id: String,
    pub(super) config: ContainerConfig,
    pub(super) image_id: String,
    pub(super) state: ContainerState,
    pub(super) created_at: i64,
    pub(super) started_at: i64,
    pub(super) finished_at: i64,
    pub(super) exit_code: i32,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) log_path: String,
    pub(super) resources: Option<LinuxContainerResources>,
    pub(super) on_stop: Option<(std::time::Duration, i32)>,
    pub(super) ended: watch::Sender<bool>,
}

impl FakeSandbox {
    pub(super) fn uses_host_network(&self) -> bool {
        let linux = self.config.linux.as_ref();
        let options = linux.and_then(|linux| linux.security_context.as_ref()?.namespace_options.as_ref());
        options.is_some_and(|options| options.network() == NamespaceMode::Node)
    }

    fn state(&self) -> PodSandboxState {
        if self.ready { PodSandboxState::SandboxReady } else { PodSandboxState::SandboxNotready }
    }

    pub(super) fn listed(&self) -> PodSandbox {
        PodSandbox {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.runtime_handler.clone(),
        }
    }

    pub(super) fn status(&self) -> PodSandboxStatus {
        let mut ips = self.ips.iter().filter(|_| self.ready);
        let network = PodSandboxNetworkStatus {
            ip: ips.next().cloned().unwrap_or_default(),
            additional_ips: ips.map(|ip| PodIp { ip: ip.clone() }).collect(),
        };
        PodSandboxStatus {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            network: Some(network),
            linux: None,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.runtime_handler.clone(),
        }
    }

    pub(super) fn matches(&self, filter: Option<&PodSandboxFilter>) -> bool {
        filter.is_none_or(|filter| {
            (filter.id.is_empty() || self.id == filter.id)
                && filter.state.as_ref().is_none_or(|wanted| wanted.state() == self.state())
                && contains(&self.config.labels, &filter.label_selector)
        })
    }
}

impl FakeContainer {
    pub(super) fn name(&self) -> &str {
        self.config.metadata.as_ref().map_or("", |metadata| &metadata.name)
    }

    pub(super) fn listed(&self) -> Container {
        Container {
            id: self.id.clone(),
            pod_sandbox_id: self.sandbox_id.clone(),
            metadata: self.config.metadata.clone(),
            image: self.config.image.clone(),
            image_ref: self.image_id.clone(),
            state: self.state.into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            image_id: self.image_id.clone(),
        }
    }

    pub(super) fn status(&self) -> ContainerStatus {
        ContainerStatus {
            id: self.id.clone(),
            metadata: self.config.metadata.clone(),
            state: self.state.into(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            exit_code: self.exit_code,
            image: self.config.image.clone(),
            image_ref: self.image_id.clone(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            mounts: self.config.mounts.clone(),
            log_path: self.log_path.clone(),
            resources: Some(ContainerResources { linux: self.resources.clone(), windows: None }),
            image_id: self.image_id.clone(),
            user: None,
            stop_signal: self.config.stop_signal,
        }
    }

    pub(super) fn matches(&self, filter: Option<&ContainerFilter>) -> bool {
        filter.is_none_or(|filter| {
            (filter.id.is_empty() || self.id == filter.id)
                && (filter.pod_sandbox_id.is_empty() || self.sandbox_id == filter.pod_sandbox_id)
                && filter.state.as_ref().is_none_or(|wanted| wanted.state() == self.state)
                && contains(&self.config.labels, &filter.label_selector)
        })
    }
}

/// Whether every wanted label is there with its value.
pub(super) fn contains(labels: &HashMap<String, String>, wanted: &HashMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
