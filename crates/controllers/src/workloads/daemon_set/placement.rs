//! Which nodes there are, what the set means for each, and which of its pods are where.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::apps_v1::DaemonSet;
use api_types::core_v1::{Node, Pod};
use component_helpers::pod_state;
use component_helpers::taints::Comparing;

use super::eligibility::{Eligibility, judge, model};
use super::pod_content::NODE_NAME_FIELD;

/// Nodes and pods of a set at one moment.
pub(super) struct Placement {
    /// Every node, by name.
    pub nodes: BTreeMap<String, Eligibility>,
    /// The set's pods by node, the one that counts first. Includes nodes that are gone.
    pub pods: BTreeMap<String, Vec<Arc<Pod>>>,
}

/// The node that a pod is on or made for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    if !pod.spec.node_name.is_empty() {
        return Some(&pod.spec.node_name);
    }
    let affinity = pod.spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let mut fields = terms.iter().flat_map(|term| &term.match_fields);
    let named = fields.find(|field| field.key == NODE_NAME_FIELD && field.operator == "In")?;
    match named.values.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

impl Placement {
    /// Sorts pods to nodes. Those that have ended and are being deleted are as good as gone.
    pub(super) fn new(set: &DaemonSet, nodes: &[Arc<Node>], pods: Vec<Arc<Pod>>, comparing: Comparing) -> Self {
        let model = model(set);
        let judged = |node: &Arc<Node>| (node.metadata.name.clone(), judge(&model, node, comparing));
        let nodes = nodes.iter().map(judged).collect();
        let mut by_node = BTreeMap::<String, Vec<Arc<Pod>>>::new();
        for pod in pods {
            let gone = pod_state::is_terminal(&pod) && pod.metadata.deletion_timestamp.is_some();
            if let (Some(node), false) = (node_of(&pod), gone) {
                by_node.entry(node.to_owned()).or_default().push(pod);
            }
        }
        for pods in by_node.values_mut() {
            pods.sort_by(|one, two| rank(one).cmp(&rank(two)));
        }
        Self { nodes, pods: by_node }
    }

    /// What the set means for a node; nothing for one that is gone.
    pub(super) fn verdict(&self, node: &str) -> Eligibility {
        self.nodes.get(node).copied().unwrap_or(Eligibility { run: false, keep: false })
    }

    /// The pods for a node.
    pub(super) fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.pods.get(node).map_or(&[], Vec::as_slice)
    }

    /// How many nodes should have a pod.
    pub(super) fn desired(&self) -> i32 {
        i32::try_from(self.nodes.values().filter(|verdict| verdict.run).count()).unwrap_or(i32::MAX)
    }
}

/// Assigned before unassigned, then the oldest.
fn rank(pod: &Pod) -> impl Ord + '_ {
    (pod.spec.node_name.is_empty(), pod.metadata.creation_timestamp, &pod.metadata.name)
}
