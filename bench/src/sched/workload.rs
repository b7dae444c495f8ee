//! The nodes and pods, of the sizes that upstream's own benchmark has.

use anyhow::{Context, Result};
use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, ContainerPort, Node, Pod, ResourceList};

/// Where the pods are.
pub(super) const NAMESPACE: &str = "bench";
/// The label of a node's own name.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The label of a node's zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
/// Zones with equally many nodes.
pub(super) const ZONES: usize = 10;

fn amounts(pairs: &[(&str, &str)]) -> Result<ResourceList> {
    let parse = |(name, amount): &(&str, &str)| {
        let quantity = Quantity::parse(amount).ok().with_context(|| format!("{amount} is no quantity"))?;
        Ok(((*name).to_owned(), quantity))
    };
    pairs.iter().map(parse).collect()
}

/// A node with room for 40 pods.
pub(super) fn node(number: usize) -> Result<Node> {
    let mut node = Node::default();
    node.metadata.name = format!("node-{number:05}");
    node.metadata.labels.insert(HOSTNAME.into(), node.metadata.name.clone());
    node.metadata.labels.insert(ZONE.into(), zone(number % ZONES));
    node.status.capacity = amounts(&[("cpu", "4"), ("memory", "32Gi"), ("pods", "110")])?;
    node.status.allocatable = node.status.capacity.clone();
    Ok(node)
}

/// The name of a zone.
pub(super) fn zone(number: usize) -> String {
    format!("zone-{number}")
}

/// A plain pod without a node.
pub(super) fn pod(name: &str) -> Result<Pod> {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.metadata.namespace = NAMESPACE.into();
    pod.metadata.labels.insert("app".into(), "bench".into());
    pod.spec.scheduler_name = "default-scheduler".into();
    let mut container =
        Container { name: "pause".into(), image: "registry.k8s.io/pause:3.10".into(), ..Container::default() };
    container.ports.push(ContainerPort { container_port: 80, ..ContainerPort::default() });
    container.resources.requests = amounts(&[("cpu", "100m"), ("memory", "500Mi")])?;
    container.resources.limits = container.resources.requests.clone();
    pod.spec.containers.push(container);
    Ok(pod)
}
