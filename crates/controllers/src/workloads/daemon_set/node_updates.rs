//! Which daemon sets a changed node concerns: those that mean something else for it now than what is there.

use std::sync::Arc;

use api_types::apps_v1::DaemonSet;
use api_types::core_v1::{Node, Pod};
use client::{Change, Informer, ObjectKey};
use component_helpers::taints::Comparing;
use controller::{Controller, Cx, NODE_NAME, Next, Queue, ReconcileError, controller_of};

use super::super::owners::key;
use super::eligibility::{judge, model};

/// The node of a change that can matter: a new one, or one with other labels or taints.
pub(super) fn concerned(change: &Change<Node>) -> Option<ObjectKey> {
    let matters = match change {
        Change::Added { .. } => true,
        Change::Updated { old, new } => {
            old.metadata.labels != new.metadata.labels || old.spec.taints != new.spec.taints
        }
        Change::Deleted { .. } => false,
    };
    matters.then(|| change.key())
}

/// Finds the sets of a node.
pub(super) struct NodeUpdates {
    pub(super) sets: Informer<DaemonSet>,
    pub(super) pods: Informer<Pod>,
    pub(super) nodes: Informer<Node>,
    pub(super) comparing: Comparing,
    /// Of daemon sets.
    pub(super) queue: Queue,
}

#[async_trait::async_trait]
impl Controller for NodeUpdates {
    async fn reconcile(&self, _cx: &Cx, node: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(node) = self.nodes.get(node) else { return Ok(Next::Done) };
        let pods = self.pods.by_index(NODE_NAME, &node.metadata.name);
        for set in self.sets.list().into_iter().filter(|set| must_look(set, &node, &pods, self.comparing)) {
            self.queue.add(key(&*set));
        }
        Ok(Next::Done)
    }
}

/// Whether the set's pods on the node are not as it means them to be.
fn must_look(set: &DaemonSet, node: &Node, pods: &[Arc<Pod>], comparing: Comparing) -> bool {
    let owned = |pod: &&Arc<Pod>| {
        let owner = controller_of(&pod.metadata);
        pod.metadata.namespace == set.metadata.namespace && owner.is_some_and(|owner| owner.name == set.metadata.name)
    };
    let placed = pods.iter().any(|pod| owned(&pod));
    let verdict = judge(&model(set), node, comparing);
    if placed { !verdict.keep || set.status.number_misscheduled > 0 } else { verdict.run }
}
