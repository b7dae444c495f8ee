//! The sandbox that a pod's containers live in, as the runtime takes it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use api_types::core_v1::Pod;
use node_api::cri::v1::{LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, PortMapping, Protocol};

use super::{labels, security};
use crate::interfaces::SandboxSetup;

/// Where a pod's logs are: `{root}/{namespace}_{name}_{uid}`.
pub fn log_directory(pod_logs_dir: &Path, pod: &Pod) -> PathBuf {
    let meta = &pod.metadata;
    pod_logs_dir.join(format!("{}_{}_{}", meta.namespace, meta.name, meta.uid))
}

/// The whole sandbox config of a pod.
pub fn config(
    pod: &Pod,
    attempt: u32,
    setup: &SandboxSetup,
    log_directory: &Path,
    defaults: &security::Defaults<'_>,
) -> PodSandboxConfig {
    let meta = &pod.metadata;
    let sysctls = pod.spec.security_context.iter().flat_map(|context| &context.sysctls);
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            namespace: meta.namespace.clone(),
            attempt,
        }),
        hostname: if pod.spec.host_network { String::new() } else { setup.hostname.clone() },
        log_directory: log_directory.to_string_lossy().into_owned(),
        dns_config: setup.dns.clone(),
        port_mappings: port_mappings(pod),
        labels: labels::of_sandbox(pod).into_iter().collect(),
        annotations: meta.annotations.clone().into_iter().collect(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: setup.cgroup_parent.clone(),
            security_context: Some(security::of_sandbox(pod, setup.users.as_ref(), defaults)),
            sysctls: sysctls.map(|sysctl| (sysctl.name.replace('/', "."), sysctl.value.clone())).collect(),
            overhead: setup.resources.overhead.clone(),
            resources: Some(setup.resources.containers.clone()),
        }),
        windows: None,
    }
}

/// All ports of regular containers, each name and each address once.
fn port_mappings(pod: &Pod) -> Vec<PortMapping> {
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    let mut out = Vec::new();
    for port in pod.spec.containers.iter().flat_map(|container| &container.ports) {
        let fresh_name = port.name.is_empty() || names.insert(port.name.clone());
        let place = (port.protocol.clone(), port.host_ip.clone(), port.host_port, port.container_port);
        if !fresh_name || !places.insert(place) {
            tracing::warn!(pod = %pod.metadata.name, port = %port.name, "Port conflicts with another one of the pod");
            continue;
        }
        let protocol = match port.protocol.as_str() {
            "UDP" => Protocol::Udp,
            "SCTP" => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        out.push(PortMapping {
            protocol: protocol.into(),
            container_port: port.container_port,
            host_port: port.host_port,
            host_ip: port.host_ip.clone(),
        });
    }
    out
}
