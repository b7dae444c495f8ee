//! Tells new nodes what the cloud knows of them, and only then lets pods come.

use std::sync::Arc;

use api_machinery::value::{ValueMap, to_value};
use api_types::core_v1::constants::{
    LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_INSTANCE_TYPE, LABEL_INSTANCE_TYPE_STABLE,
    LABEL_TOPOLOGY_REGION, LABEL_TOPOLOGY_ZONE,
};
use api_types::core_v1::{Node, NodeAddress};
use client::{EventType, Informer, ObjectKey, Patch};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::component::Settings;
use crate::provider::{InstanceMetadata, Provider};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "cloud-node-controller",
    aliases: &["cloud-node"],
    gates: &[],
    identity: "node-controller",
    event_component: "cloud-node-controller",
    disabled_by_default: false,
    build,
};

/// The taint that kubelets set with `--cloud-provider=external`.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, provider) = (settings.node_syncs, Arc::clone(&settings.provider));
    let queue = build.queue("Nodes");
    let nodes = build.watch::<Node>().enqueue_self(&queue).informer();
    build.run(&queue, workers, Arc::new(CloudNode { nodes, provider }));
    Ok(())
}

struct CloudNode {
    nodes: Informer<Node>,
    provider: Arc<dyn Provider>,
}

/// The node with what the cloud knows, and without the taint.
fn initialized(node: &Node, metadata: &InstanceMetadata) -> Node {
    let mut node = node.clone();
    if node.spec.provider_id.is_empty() {
        node.spec.provider_id.clone_from(&metadata.provider_id);
    }
    let known = [
        (&metadata.instance_type, [LABEL_INSTANCE_TYPE, LABEL_INSTANCE_TYPE_STABLE]),
        (&metadata.zone, [LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_ZONE]),
        (&metadata.region, [LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_TOPOLOGY_REGION]),
    ];
    for (value, labels) in known.into_iter().filter(|(value, _)| !value.is_empty()) {
        for label in labels {
            node.metadata.labels.insert(label.to_owned(), value.clone());
        }
    }
    for (label, value) in metadata.labels.iter().filter(|(label, _)| !is_reserved(label)) {
        node.metadata.labels.entry(label.clone()).or_insert_with(|| value.clone());
    }
    node.spec.taints.retain(|taint| taint.key != UNINITIALIZED);
    node
}

/// Labels of Kubernetes itself are not the cloud's to set.
fn is_reserved(label: &str) -> bool {
    let Some((prefix, _)) = label.split_once('/') else { return false };
    ["kubernetes.io", "k8s.io"]
        .iter()
        .any(|domain| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// The cloud's addresses; the node's own host name stays where the cloud has none.
fn addresses(node: &Node, metadata: &InstanceMetadata) -> Option<Vec<NodeAddress>> {
    if metadata.addresses.is_empty() {
        return None;
    }
    let mut addresses = metadata.addresses.clone();
    if !addresses.iter().any(|address| address.type_ == "Hostname") {
        addresses.extend(node.status.addresses.iter().filter(|address| address.type_ == "Hostname").cloned());
    }
    (addresses != node.status.addresses).then_some(addresses)
}

#[async_trait::async_trait]
impl Controller for CloudNode {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(node) = self.nodes.get(key) else { return Ok(Next::Done) };
        if !node.spec.taints.iter().any(|taint| taint.key == UNINITIALIZED) {
            return Ok(Next::Done);
        }
        let metadata = self.provider.instance_metadata(&node).await.map_err(|error| {
            ReconcileError::failed(format!("failed to get instance metadata for node {}: {error}", key.name))
        })?;
        let Some(metadata) = metadata else { return Ok(Next::Done) };
        if metadata.provider_id.is_empty() && node.spec.provider_id.is_empty() {
            let text = format!("cloud provider does not set node provider ID for node {}", key.name);
            return Err(ReconcileError::failed(text));
        }
        // Labels and taint in one write: nobody sees a node that takes pods but has no zone yet.
        cx.client.all::<Node>().update(&initialized(&node, &metadata)).await?;
        if let Some(addresses) = addresses(&node, &metadata) {
            let mut status = ValueMap::new();
            status.insert("addresses".into(), to_value(&addresses));
            let mut body = ValueMap::new();
            body.insert("status".into(), status.into());
            if let Err(error) = cx.client.all::<Node>().patch_status(&key.name, &Patch::Merge(body.into())).await {
                tracing::error!(%error, node = key.name, "Writing the addresses of a node failed");
            }
        }
        cx.events.event(&*node, EventType::Normal, "Synced", "Node synced successfully");
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Taint;

    use super::*;

    #[test]
    fn nodes_learn_what_the_cloud_knows() {
        let mut node = Node::default();
        node.metadata.labels.insert("own".into(), "kept".into());
        for key in [UNINITIALIZED, "mine"] {
            node.spec.taints.push(Taint { key: key.into(), ..Taint::default() });
        }
        let labels = [("own", "x"), ("more", "y"), ("node.kubernetes.io/z", "z")];
        let metadata = InstanceMetadata {
            provider_id: "fake://1".into(),
            zone: "a".into(),
            labels: labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into(),
            ..InstanceMetadata::default()
        };
        let node = initialized(&node, &metadata);
        assert_eq!(node.spec.provider_id, "fake://1");
        assert_eq!(node.spec.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["mine"]);
        let label = |name: &str| node.metadata.labels.get(name).map(String::as_str);
        assert_eq!(
            [label("own"), label("more"), label("node.kubernetes.io/z"), label(LABEL_TOPOLOGY_ZONE)],
            [Some("kept"), Some("y"), None, Some("a")]
        );
    }
}
