//! Taking a node's surroundings away, in the order in which nothing gets orphaned: pods by way of the runtime (which runs
//! the network plugins' clean-up), then the runtime, then whatever is left of each kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use node_api::cri::{ClientOptions, CriClient, CriError, Runtime};
use sys::cgroups::CgroupPath;
use sys::mounts::Unmount;
use sys::net::{IpRoute, Network as _};
use sys::process::{Process, Stopped};

use super::{Machine, NodeConfig, NodeError, cni, file_error, hostport};

/// Pods that are removed at once.
const PODS_AT_ONCE: usize = 8;
/// How long the runtime may take per call while it is being taken down.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
const RUNTIME_GRACE: Duration = Duration::from_secs(10);
/// Shims have nothing to say good-bye to.
const SHIM_GRACE: Duration = Duration::from_millis(200);
/// Where containerd puts the sockets of shims.
const SHIM_SOCKETS: &str = "/run/containerd/s";
const CGROUP_DEADLINE: Duration = Duration::from_secs(10);

/// Goes through every step whatever fails, and reports the first failure.
pub(super) async fn run(config: &NodeConfig, machine: &Machine) -> Result<(), NodeError> {
    config.validate()?;
    remove_pods(config).await;
    let mut outcomes = vec![stop_processes(config).await];
    outcomes.push(destroy_containers(config, machine).await);
    outcomes.push(machine.mounts.unmount_below(&config.state, Unmount::Lazy).map(drop).map_err(NodeError::from));
    outcomes.push(machine.mounts.unmount_below(&config.root, Unmount::Lazy).map(drop).map_err(NodeError::from));
    outcomes.push(remove_network(config, machine).await);
    for directory in [&config.state, &config.root] {
        outcomes.push(sys::tree::remove_tree(directory).map_err(file_error("removing", directory)));
    }
    outcomes.into_iter().collect()
}

/// Asks the runtime to stop and remove its pods. A failure is no more than a warning: what stays is taken away by the
/// later steps.
async fn remove_pods(config: &NodeConfig) {
    if !config.socket().exists() {
        return;
    }
    let options = ClientOptions { request_timeout: CALL_TIMEOUT, ..ClientOptions::new(&config.endpoint()) };
    let pods = async {
        let client = CriClient::connect(&options).await?;
        let pods = client.list_pod_sandboxes(None).await?;
        Ok::<_, CriError>((client, pods))
    };
    let (client, pods) = match pods.await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(node = config.name, %error, "cannot ask the runtime for its pods");
            return;
        }
    };
    futures_util::stream::iter(pods)
        .for_each_concurrent(PODS_AT_ONCE, |pod| {
            let client = client.clone();
            async move {
                if let Err(error) = remove_pod(&client, &pod.id).await {
                    tracing::warn!(node = config.name, pod = pod.id, %error, "cannot remove a pod");
                }
            }
        })
        .await;
}

async fn remove_pod(client: &CriClient, id: &str) -> Result<(), CriError> {
    client.stop_pod_sandbox(id).await?;
    client.remove_pod_sandbox(id).await
}

/// Ends the runtime, and shims that it left.
async fn stop_processes(config: &NodeConfig) -> Result<(), NodeError> {
    let failed = |path: &Path| file_error("stopping the process of", path);
    if let Some(process) = Process::from_pidfile(&config.pidfile(), &config.config_file().display().to_string())
        && process.stop(RUNTIME_GRACE).await.map_err(failed(&config.pidfile()))? == Stopped::Stuck
    {
        tracing::warn!(node = config.name, pid = process.pid(), "containerd does not end");
    }
    let socket = config.socket();
    for shim in Process::with_argument(&socket.display().to_string()).map_err(failed(&socket))? {
        shim.stop(SHIM_GRACE).await.map_err(failed(&socket))?;
    }
    for leftover in shim_sockets(&config.state.join("containerd/io.containerd.runtime.v2.task")) {
        // Removed already if the shim ended in order.
        let _ = fs::remove_file(leftover);
    }
    Ok(())
}

/// The sockets of shims, which containerd puts into a directory that all instances share, from the shims' bundles.
fn shim_sockets(bundles: &Path) -> Vec<PathBuf> {
    let namespaces = fs::read_dir(bundles).into_iter().flatten().flatten();
    let tasks = namespaces.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten());
    let addresses = tasks.filter_map(|entry| fs::read_to_string(entry.path().join("address")).ok());
    let sockets = addresses.filter_map(|address| Some(PathBuf::from(address.trim().strip_prefix("unix://")?)));
    sockets.filter(|path| path.starts_with(SHIM_SOCKETS)).collect()
}

/// Kills what runs in containers that outlived their shims, and removes every control group of the node.
async fn destroy_containers(config: &NodeConfig, machine: &Machine) -> Result<(), NodeError> {
    let mut groups = container_groups(&config.state.join("runc"));
    groups.insert(config.cgroup_root.clone());
    for group in groups {
        sys::cgroups::destroy(&*machine.cgroups, &group, CGROUP_DEADLINE).await?;
    }
    Ok(())
}

/// The control groups of the containers that runc still knows, from its state files. Pods that were made without a
/// parent group have theirs outside the node's own.
fn container_groups(runc_root: &Path) -> BTreeSet<CgroupPath> {
    let namespaces = fs::read_dir(runc_root).into_iter().flatten().flatten();
    let containers = namespaces.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten());
    containers.filter_map(|entry| container_group(&fs::read(entry.path().join("state.json")).ok()?)).collect()
}

fn container_group(state: &[u8]) -> Option<CgroupPath> {
    let state: serde_json::Value = serde_json::from_slice(state).ok()?;
    let group = CgroupPath::new(state.pointer("/config/cgroups/path")?.as_str()?)?;
    // Never the root: everything on the machine is in it.
    (!group.relative().as_os_str().is_empty()).then_some(group)
}

/// Removes the pods' bridge, and the host port rules that the network plugins leave in the machine's own network.
/// Another namespace takes both with it when it goes.
async fn remove_network(config: &NodeConfig, machine: &Machine) -> Result<(), NodeError> {
    cni::forget_results(config);
    if config.netns.is_some() {
        return Ok(());
    }
    let network = IpRoute::new(Arc::clone(&machine.exec), None);
    network.delete_link(&config.bridge).await?;
    hostport::sweep(&machine.exec, &cni::network_name(config)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_from_state_files() {
        let group = |text: &str| container_group(text.as_bytes()).map(|group| group.to_string());
        let cases = [
            (r#"{"config":{"cgroups":{"path":"/k8s.io/abc"}}}"#, Some("/k8s.io/abc")),
            (r#"{"config":{"cgroups":{"path":"/"}}}"#, None),
            (r#"{"config":{"cgroups":{"path":"/a/../.."}}}"#, None),
            (r#"{"config":{}}"#, None),
            ("not json", None),
        ];
        for (text, expected) in cases {
            assert_eq!(group(text).as_deref(), expected, "{text}");
        }
    }
}
