//! Deletes nodes whose instances are gone, and taints those whose instances are stopped.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::{Node, Taint};
use client::{ClientError, EventType, Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::component::Settings;
use crate::provider::{CloudError, Provider};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "cloud-node-lifecycle-controller",
    aliases: &["cloud-node-lifecycle"],
    gates: &[],
    identity: "node-controller",
    event_component: "cloud-node-lifecycle-controller",
    disabled_by_default: false,
    build,
};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const NO_SCHEDULE: &str = "NoSchedule";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (period, provider) = (settings.node_monitor_period, Arc::clone(&settings.provider));
    let nodes = build.watch::<Node>().informer();
    build.every("cloud_node_lifecycle", period, Arc::new(Lifecycle { nodes, provider }));
    Ok(())
}

struct Lifecycle {
    nodes: Informer<Node>,
    provider: Arc<dyn Provider>,
}

/// What to do with a node.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Leave,
    /// It is ready again.
    Untaint,
    Taint,
    Delete,
}

#[async_trait::async_trait]
impl Controller for Lifecycle {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        for node in self.nodes.list() {
            let name = &node.metadata.name;
            let outcome = match self.plan(&node).await {
                Ok(Plan::Leave) => Ok(()),
                Ok(Plan::Untaint) => set_taint(cx, name, false).await,
                Ok(Plan::Taint) => set_taint(cx, name, true).await,
                Ok(Plan::Delete) => {
                    delete(cx, &node).await;
                    Ok(())
                }
                Err(error) => {
                    tracing::error!(%error, node = name, "Asking the cloud for a node failed");
                    Ok(())
                }
            };
            if let Err(error) = outcome {
                tracing::error!(%error, node = name, "Changing the taints of a node failed");
            }
        }
        Ok(Next::Done)
    }
}

impl Lifecycle {
    async fn plan(&self, node: &Node) -> Result<Plan, CloudError> {
        let tainted = node.spec.taints.iter().any(|taint| taint.key == SHUTDOWN && taint.effect == NO_SCHEDULE);
        if component_helpers::nodes::is_ready(node) {
            return Ok(if tainted { Plan::Untaint } else { Plan::Leave });
        }
        if !self.provider.instance_exists(node).await? {
            return Ok(Plan::Delete);
        }
        let stopped = self.provider.instance_is_shut_down(node).await?;
        Ok(if stopped && !tainted { Plan::Taint } else { Plan::Leave })
    }
}

async fn delete(cx: &Cx, node: &Node) {
    let name = &node.metadata.name;
    let message = format!("Deleting node {name} because it does not exist in the cloud provider");
    cx.events.event(node, EventType::Normal, "DeletingNode", message);
    if let Err(error) = cx.client.all::<Node>().delete_this(&node.metadata, DeleteOptions::default()).await {
        let message = format!("Failed deleting node {name}: {error}");
        cx.events.event(node, EventType::Warning, "DeletingNodeFailed", message);
    }
}

/// Sets or removes the taint on the node as it is now.
async fn set_taint(cx: &Cx, name: &str, wanted: bool) -> Result<(), ClientError> {
    client::retry_on_conflict(&cx.rng, || async {
        let nodes = cx.client.all::<Node>();
        let Some(mut node) = nodes.get_opt(name).await? else { return Ok(()) };
        node.spec.taints.retain(|taint| taint.key != SHUTDOWN);
        if wanted {
            let taint = Taint { key: SHUTDOWN.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() };
            node.spec.taints.push(taint);
        }
        nodes.update(&node).await.map(drop)
    })
    .await
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::NodeCondition;

    use super::*;
    use crate::provider::InstanceMetadata;

    struct Cloud {
        exists: bool,
        stopped: bool,
    }

    #[async_trait::async_trait]
    impl Provider for Cloud {
        fn name(&self) -> &str {
            "test"
        }
        async fn instance_exists(&self, _: &Node) -> Result<bool, CloudError> {
            Ok(self.exists)
        }
        async fn instance_is_shut_down(&self, _: &Node) -> Result<bool, CloudError> {
            Ok(self.stopped)
        }
        async fn instance_metadata(&self, _: &Node) -> Result<Option<InstanceMetadata>, CloudError> {
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_nodes_that_are_not_ready_are_asked_for() {
        let server = client::fake::FakeServer::new();
        let nodes = client::Informers::new(&server.client(), client::InformerOptions::default()).of::<Node>();
        let node = |ready: &str, tainted: bool| {
            let mut node = Node::default();
            let condition = NodeCondition { type_: "Ready".into(), status: ready.into(), ..NodeCondition::default() };
            node.status.conditions.push(condition);
            if tainted {
                let taint = Taint { key: SHUTDOWN.into(), effect: NO_SCHEDULE.into(), ..Taint::default() };
                node.spec.taints.push(taint);
            }
            node
        };
        for (name, node, exists, stopped, expected) in [
            ("ready", node("True", false), false, false, Plan::Leave),
            ("ready again", node("True", true), true, true, Plan::Untaint),
            ("gone", node("Unknown", false), false, false, Plan::Delete),
            ("stopped", node("Unknown", false), true, true, Plan::Taint),
            ("stopped and tainted", node("Unknown", true), true, true, Plan::Leave),
            ("broken", node("False", true), true, false, Plan::Leave),
        ] {
            let lifecycle = Lifecycle { nodes: nodes.clone(), provider: Arc::new(Cloud { exists, stopped }) };
            assert_eq!(lifecycle.plan(&node).await, Ok(expected), "{name}");
        }
    }
}
