//! A node that is lost with a volume: the volume is taken from it by force, and when the node comes back, what still runs
//! there never writes to it, not even when the volume is there again.

use std::time::Duration;

use api_types::core_v1::{Node, Pod};
use client::Patch;
use serde_json::json;
use testing::{NODES, Part};

use super::{POD, Story};
use crate::simulate;
use crate::workloads::{NAMESPACE, delete};

/// Longer than it takes until a node that is not heard of counts as lost.
const UNHEARD: Duration = Duration::from_secs(60);
/// Long enough for what runs on a lost node to try to write.
const WHILE_BACK: Duration = Duration::from_secs(20);

impl Story {
    async fn of_a_lost_node() -> Vec<String> {
        let mut story = Self::begin().await;
        story.declare().await;
        story.until("the pod runs", |seen, disks| seen.runs_with_its_disk(disks, |_| true)).await;
        let node = story.node().await;
        let part = (0..NODES).map(Part::Node).find(|part| part.to_string() == node).expect("the node is there");
        story.cluster.stop(part);
        story.disks.set_lost(&node, true);
        story.wait(UNHEARD).await;
        story.give_up(&node, true).await;
        story.until("the pod runs elsewhere", |seen, disks| seen.runs_with_its_disk(disks, |now| now != node)).await;
        story.end_of_loss(part, &node).await;
        story.come_back(&node).await;
        story.end().await;
        story.finish().await
    }

    /// The node is there again, with all that ran on it.
    async fn end_of_loss(&mut self, part: Part, node: &str) {
        self.cluster.start(part).expect("it starts again");
        self.wait(WHILE_BACK).await;
        self.disks.set_lost(node, false);
        self.give_up(node, false).await;
        self.wait(WHILE_BACK).await;
        let still_there = self.cluster.containers().into_iter().filter(|own| own.node == node);
        self.left.extend(still_there.map(|own| format!("{} still runs on {node}", own.pod)));
    }

    /// The pod, and its disk with it, goes back to the node that was lost.
    async fn come_back(&mut self, node: &str) {
        for other in (0..NODES).map(|number| Part::Node(number).to_string()).filter(|other| other != node) {
            self.cordon(&other, true).await;
        }
        delete::<Pod>(self.cluster.admin(), NAMESPACE, POD, "Background").await;
        self.until("the pod runs where it was", |seen, disks| seen.runs_with_its_disk(disks, |now| now == node)).await;
    }

    /// Somebody says that the node is out of service, or is there again.
    async fn give_up(&self, node: &str, is_out: bool) {
        let nodes = self.cluster.admin().all::<Node>();
        let mut taints = nodes.get(node).await.expect("the node is there").spec.taints;
        taints.retain(|taint| taint.key != "node.kubernetes.io/out-of-service");
        let mut taints: Vec<_> = taints
            .iter()
            .map(|own| {
                let since = own.time_added.as_ref().map(ToString::to_string);
                json!({"key": own.key, "value": own.value, "effect": own.effect, "timeAdded": since})
            })
            .collect();
        if is_out {
            taints.push(
                json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}),
            );
        }
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        nodes.patch(node, &patch).await.expect("the node can be tainted");
    }
}

#[test]
fn a_node_that_was_lost_never_writes_to_a_volume_that_it_lost() {
    let left = simulate(Story::of_a_lost_node());
    assert!(left.is_empty(), "{}", left.join("\n"));
}
