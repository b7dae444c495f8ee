//! What a container is created from, as the runtime takes it.

use api_types::core_v1::{Container, Pod};
use node_api::cri::v1::{
    CdiDevice, ContainerConfig, ContainerMetadata, ImageSpec, KeyValue, LinuxContainerConfig, LinuxContainerResources,
    LinuxContainerSecurityContext, Mount, Signal,
};

use super::images::Ready;
use super::labels;
use crate::interfaces::ContainerInputs;

/// Everything that goes into the config of one instance of a container.
pub struct ContainerConfigInputs<'a> {
    pub pod: &'a Pod,
    pub container: &'a Container,
    pub restart_count: u32,
    pub image: &'a Ready,
    pub inputs: ContainerInputs,
    pub termination_log: Option<Mount>,
    pub resources: LinuxContainerResources,
    pub security: LinuxContainerSecurityContext,
    pub stop_signal: Signal,
}

/// The log file relative to the pod's log directory.
pub fn log_path(container: &str, restart_count: u32) -> String {
    format!("{container}/{restart_count}.log")
}

pub fn config(from: ContainerConfigInputs<'_>) -> ContainerConfig {
    let ContainerConfigInputs { pod, container, restart_count, image, inputs, .. } = from;
    let ContainerConfigInputs { termination_log, resources, security, stop_signal, .. } = from;
    let lookup = |name: &str| inputs.env.get(name).cloned();
    let expand = |texts: &[String]| texts.iter().map(|text| crate::env::expand(text, &lookup)).collect();
    ContainerConfig {
        metadata: Some(ContainerMetadata { name: container.name.clone(), attempt: restart_count }),
        image: Some(ImageSpec {
            image: image.reference.clone(),
            user_specified_image: container.image.clone(),
            ..Default::default()
        }),
        command: expand(&container.command),
        args: expand(&container.args),
        working_dir: container.working_dir.clone(),
        mounts: inputs.mounts.into_iter().chain(termination_log).collect(),
        devices: inputs.devices,
        labels: labels::of_container(pod, container).into_iter().collect(),
        // What the kubelet itself goes by is nobody else's to say.
        annotations: inputs
            .annotations
            .into_iter()
            .chain(labels::container_annotations(pod, container, restart_count))
            .collect(),
        log_path: log_path(&container.name, restart_count),
        stdin: container.stdin,
        stdin_once: container.stdin_once,
        tty: container.tty,
        linux: Some(LinuxContainerConfig { resources: Some(resources), security_context: Some(security) }),
        windows: None,
        cdi_devices: inputs.cdi_devices.into_iter().map(|name| CdiDevice { name }).collect(),
        stop_signal: stop_signal.into(),
        envs: inputs.env.into_iter().map(|(key, value)| KeyValue { key, value: value.into_bytes() }).collect(),
    }
}
