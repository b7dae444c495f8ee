//! Tells new nodes what the cloud knows of them, and only then lets pods come; follows their addresses after that.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::Time;
use api_machinery::value::{Value, ValueMap, to_value};
use api_types::core_v1::constants::{
    LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_INSTANCE_TYPE, LABEL_INSTANCE_TYPE_STABLE,
    LABEL_TOPOLOGY_REGION, LABEL_TOPOLOGY_ZONE,
};
use api_types::core_v1::{Node, NodeAddress};
use client::{EventType, Informer, ObjectKey, Patch};
use component_base::metrics::{Desc, Histograms, Stability, exponential};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use futures_util::StreamExt as _;

use crate::addresses;
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

const DELAYS: &[f64] = &exponential::<6>(1.0, 4.0);
const TAINT_REMOVAL: Desc = Desc::new(
    "node_controller_cloud_provider_taint_removal_delay_seconds",
    "From the creation of a node until its taint was removed.",
    Stability::Alpha,
)
.buckets(DELAYS);
const INITIAL_SYNC: Desc = Desc::new(
    "node_controller_initial_node_sync_delay_seconds",
    "From the creation of a node until it was initialized.",
    Stability::Alpha,
)
.buckets(DELAYS);

/// The taint that kubelets set with `--cloud-provider=external`.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, provider) = (settings.node_syncs, Arc::clone(&settings.provider));
    let (parallel, period) = (settings.status_updates, settings.status_period);
    let queue = build.queue("Nodes");
    let nodes = build.watch::<Node>().enqueue_self(&queue).informer();
    let taint_removal = build.metrics().histograms(&TAINT_REMOVAL);
    let initial_sync = build.metrics().histograms(&INITIAL_SYNC);
    let addresses = Addresses { nodes: nodes.clone(), provider: Arc::clone(&provider), parallel };
    build.run(&queue, workers, Arc::new(CloudNode { nodes, provider, taint_removal, initial_sync }));
    build.every("cloud_node_addresses", period, Arc::new(addresses));
    Ok(())
}

struct CloudNode {
    nodes: Informer<Node>,
    provider: Arc<dyn Provider>,
    taint_removal: Histograms,
    initial_sync: Histograms,
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

/// Labels that were renamed: where only the old one is right, the new one follows.
fn repaired_labels(node: &Node) -> BTreeMap<&'static str, String> {
    const PAIRS: [(&str, &str); 3] = [
        (LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_ZONE),
        (LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_TOPOLOGY_REGION),
        (LABEL_INSTANCE_TYPE, LABEL_INSTANCE_TYPE_STABLE),
    ];
    let labels = &node.metadata.labels;
    let wrong = PAIRS.iter().filter_map(|(old, new)| Some((*new, labels.get(*old)?)));
    wrong.filter(|(new, value)| labels.get(*new) != Some(*value)).map(|(new, value)| (new, value.clone())).collect()
}

/// `{outer: {inner: value}}`
fn nested(outer: &str, inner: &str, value: Value) -> Value {
    let mut fields = ValueMap::new();
    fields.insert(inner.into(), value);
    let mut body = ValueMap::new();
    body.insert(outer.into(), fields.into());
    body.into()
}

/// Writes the addresses where they differ.
async fn write_addresses(cx: &Cx, node: &Node, wanted: Option<Vec<NodeAddress>>) {
    let Some(addresses) = wanted.filter(|addresses| *addresses != node.status.addresses) else { return };
    let name = &node.metadata.name;
    let patch = Patch::Merge(nested("status", "addresses", to_value(&addresses)));
    if let Err(error) = cx.client.all::<Node>().patch_status(name, &patch).await {
        tracing::error!(%error, node = name, "Writing the addresses of a node failed");
    }
}

fn is_uninitialized(node: &Node) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == UNINITIALIZED)
}

#[async_trait::async_trait]
impl Controller for CloudNode {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(node) = self.nodes.get(key) else { return Ok(Next::Done) };
        if is_uninitialized(&node) {
            self.initialize(cx, &node).await?;
            return Ok(Next::Done);
        }
        let labels = repaired_labels(&node);
        if !labels.is_empty() {
            let labels: ValueMap<String, Value> =
                labels.into_iter().map(|(label, value)| (label.into(), value.into())).collect();
            let patch = Patch::Strategic(nested("metadata", "labels", labels.into()));
            cx.client.all::<Node>().patch(&key.name, &patch).await.map_err(|error| {
                ReconcileError::failed(format!("failed update labels for node {}: {error}", key.name))
            })?;
        }
        Ok(Next::Done)
    }
}

impl CloudNode {
    async fn initialize(&self, cx: &Cx, node: &Node) -> Result<(), ReconcileError> {
        let name = &node.metadata.name;
        let metadata = self.provider.instance_metadata(node).await.map_err(|error| {
            ReconcileError::failed(format!("failed to get instance metadata for node {name}: {error}"))
        })?;
        let Some(metadata) = metadata else { return Ok(()) };
        if metadata.provider_id.is_empty() && node.spec.provider_id.is_empty() {
            let text = format!("cloud provider does not set node provider ID for node {name}");
            return Err(ReconcileError::failed(text));
        }
        let addresses = addresses::wanted(node, &metadata.addresses).map_err(|error| {
            ReconcileError::failed(format!(
                "failed to get node modifiers from cloud provider: provided node ip for node {name:?} is not valid: \
                 {error}"
            ))
        })?;
        // Labels and taint in one write: nobody sees a node that takes pods but has no zone yet.
        cx.client.all::<Node>().update(&initialized(node, &metadata)).await?;
        let age = || Time::from(cx.clock.wall()).since(node.metadata.creation_timestamp).as_secs_f64();
        self.taint_removal.with(&[]).observe(age());
        write_addresses(cx, node, addresses).await;
        cx.events.event(node, EventType::Normal, "Synced", "Node synced successfully");
        self.initial_sync.with(&[]).observe(age());
        Ok(())
    }
}

/// Follows what the cloud says of the addresses of nodes that are initialized.
struct Addresses {
    nodes: Informer<Node>,
    provider: Arc<dyn Provider>,
    parallel: usize,
}

#[async_trait::async_trait]
impl Controller for Addresses {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let nodes = self.nodes.list();
        let mut updates = Vec::with_capacity(nodes.len());
        for node in nodes.iter().filter(|node| !is_uninitialized(node)) {
            updates.push(self.update(cx, node));
        }
        futures_util::stream::iter(updates).buffer_unordered(self.parallel).for_each(|()| async {}).await;
        Ok(Next::Done)
    }
}

impl Addresses {
    async fn update(&self, cx: &Cx, node: &Node) {
        let name = &node.metadata.name;
        let addresses = match self.provider.instance_metadata(node).await {
            Ok(Some(metadata)) => addresses::wanted(node, &metadata.addresses),
            Ok(None) => return,
            Err(error) => Err(error.to_string()),
        };
        match addresses {
            Ok(addresses) => write_addresses(cx, node, addresses).await,
            Err(error) => tracing::error!(error, node = name, "Finding the addresses of a node failed"),
        }
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

    #[test]
    fn renamed_labels_follow_the_old_ones() {
        let mut node = Node::default();
        assert!(repaired_labels(&node).is_empty());
        node.metadata.labels.insert(LABEL_FAILURE_DOMAIN_BETA_ZONE.into(), "a".into());
        node.metadata.labels.insert(LABEL_TOPOLOGY_REGION.into(), "only-new".into());
        assert_eq!(repaired_labels(&node), [(LABEL_TOPOLOGY_ZONE, "a".to_owned())].into());
        node.metadata.labels.insert(LABEL_TOPOLOGY_ZONE.into(), "b".into());
        assert_eq!(repaired_labels(&node).len(), 1);
        node.metadata.labels.insert(LABEL_TOPOLOGY_ZONE.into(), "a".into());
        assert!(repaired_labels(&node).is_empty());
    }
}
