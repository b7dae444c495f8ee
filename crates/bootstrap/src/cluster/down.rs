//! Taking a cluster down: nothing of it stays but, unless asked otherwise, its data.

use sys::mounts::Unmount;
use sys::packet_filter::{Nft, PacketFilter as _};

use super::processes::Managed;
use super::settings::{ClusterError, Layout, Settings, file_error};
use super::up::control_plane;
use super::{Progress, nodes, static_pods};
use crate::node::{Fabric, Machine, NodeEnvironment};

/// The table of kube-proxy.
const SERVICE_TABLE: &str = "kube-proxy";

/// What becomes of the cluster's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// Certificates, kubeconfigs and the store stay: the next `up` finds the same cluster.
    Keep,
    /// Everything goes.
    Remove,
}

/// Stops every process of the cluster and removes pods, mounts, namespaces, control groups and rules. Works from the
/// settings alone, so also after a crash; goes on after a failure and reports the first.
///
/// # Errors
/// Something could not be taken away.
pub async fn down(settings: &Settings, data: Data, progress: Progress) -> Result<(), ClusterError> {
    let machine = Machine::linux();
    let mut first = Ok(());
    let mut note = |outcome: Result<(), ClusterError>| {
        if let (Ok(()), Err(error)) = (&first, outcome) {
            first = Err(error);
        }
    };
    progress.step("nodes");
    for index in (0..existing_nodes(settings)).rev() {
        note(node_down(settings, index, &machine).await);
    }
    progress.step("control plane");
    note(static_pods::remove(settings));
    for managed in control_plane(settings).iter().rev() {
        note(managed.stop(settings).await.map(drop));
    }
    progress.step("network between nodes");
    let fabric = Settings { nodes: existing_nodes(settings), ..settings.clone() }.fabric();
    note(Fabric::new(fabric, &machine).down().await.map_err(ClusterError::from));
    note(remove(&settings.state));
    if data == Data::Remove {
        note(remove(&settings.root));
    }
    first
}

/// How many nodes there are or were: an earlier `up` may have had more than the settings now say.
fn existing_nodes(settings: &Settings) -> u8 {
    let layout = Layout::new(&settings.root);
    let exists = |index: &u8| layout.node(&settings.node_name(*index)).exists();
    let found = (0..u8::MAX).take_while(exists).count();
    u8::try_from(found).unwrap_or(u8::MAX).max(settings.nodes)
}

async fn node_down(settings: &Settings, index: u8, machine: &Machine) -> Result<(), ClusterError> {
    let environment = NodeEnvironment::new(settings.node_config(index)?, machine.clone());
    let agents: [Managed; 2] =
        [nodes::kube_proxy(settings, index, &environment)?, nodes::kubelet(settings, index, &environment)?];
    for agent in agents {
        agent.stop(settings).await?;
    }
    remove_service_rules(&environment, machine).await?;
    let kubelet = Layout::new(&settings.root).kubelet(&settings.node_name(index));
    machine.mounts.unmount_below(&kubelet, Unmount::Lazy).map_err(crate::node::NodeError::from)?;
    environment.stop().await?;
    Ok(())
}

/// What a stopped kube-proxy leaves in the kernel, as upstream's does, so that Services outlive its restarts.
async fn remove_service_rules(environment: &NodeEnvironment, machine: &Machine) -> Result<(), ClusterError> {
    let filter =
        Nft::new(machine.exec.clone(), environment.config().netns.as_deref().map(sys::netns::path_of).as_deref());
    for family in ["ip", "ip6"] {
        // Adding first makes it no error if there is none.
        let script = format!("add table {family} {SERVICE_TABLE}\ndelete table {family} {SERVICE_TABLE}\n");
        filter.apply(&script).await.map_err(ClusterError::ServiceRules)?;
    }
    Ok(())
}

fn remove(directory: &std::path::Path) -> Result<(), ClusterError> {
    sys::tree::remove_tree(directory).map_err(file_error("removing", directory))
}
