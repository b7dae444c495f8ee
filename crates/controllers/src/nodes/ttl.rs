//! Tells kubelets how long they may keep Secrets and ConfigMaps, by the number of nodes: an annotation in seconds.

use std::sync::Arc;

use api_machinery::value::ValueMap;
use api_types::core_v1::Node;
use client::{Change, Informer, ObjectKey, Patch};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "ttl-controller",
    aliases: &["ttl"],
    gates: &[],
    identity: "ttl-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

const WORKERS: usize = 5;
const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// With fewer nodes the step below holds, with more the one above; the ranges overlap so that nothing flickers.
struct Step {
    down_below: usize,
    up_above: usize,
    seconds: u32,
}

const fn step(down_below: usize, up_above: usize, seconds: u32) -> Step {
    Step { down_below, up_above, seconds }
}

const STEPS: [Step; 5] =
    [step(0, 100, 0), step(90, 500, 15), step(450, 1000, 30), step(900, 2000, 60), step(1800, usize::MAX, 300)];

/// How many nodes there are, and the step that this led to.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    nodes: usize,
    step: usize,
}

impl Size {
    fn added(&mut self) {
        self.nodes += 1;
        if STEPS.get(self.step).is_some_and(|step| self.nodes > step.up_above) {
            self.step += 1;
        }
    }

    fn removed(&mut self) {
        self.nodes = self.nodes.saturating_sub(1);
        if STEPS.get(self.step).is_some_and(|step| self.nodes < step.down_below) {
            self.step -= 1;
        }
    }

    fn seconds(self) -> u32 {
        STEPS.get(self.step).map_or(0, |step| step.seconds)
    }
}

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("ttlcontroller");
    let size = Arc::new(Mutex::new(Size::default()));
    let counted = Arc::clone(&size);
    let nodes = build
        .watch::<Node>()
        .observe(move |change| match change {
            Change::Added { .. } => counted.lock().added(),
            Change::Updated { .. } => {}
            Change::Deleted { .. } => counted.lock().removed(),
        })
        .enqueue_keys(&queue, |change: &Change<Node>| (!change.is_deleted()).then(|| change.key()))
        .informer();
    build.run(&queue, WORKERS, Arc::new(Ttl { nodes, size }));
    Ok(())
}

struct Ttl {
    nodes: Informer<Node>,
    size: Arc<Mutex<Size>>,
}

/// The patch that a node needs.
fn plan(node: &Node, wanted: u32) -> Option<Patch> {
    let present = node.metadata.annotations.get(ANNOTATION).and_then(|text| text.parse::<i64>().ok());
    if present == Some(i64::from(wanted)) {
        return None;
    }
    let mut annotations = ValueMap::new();
    annotations.insert(ANNOTATION.into(), wanted.to_string().into());
    let mut metadata = ValueMap::new();
    metadata.insert("annotations".into(), annotations.into());
    let mut body = ValueMap::new();
    body.insert("metadata".into(), metadata.into());
    Some(Patch::Strategic(body.into()))
}

#[async_trait::async_trait]
impl Controller for Ttl {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(node) = self.nodes.get(key) else { return Ok(Next::Done) };
        let wanted = self.size.lock().seconds();
        if let Some(patch) = plan(&node, wanted) {
            cx.client.all::<Node>().patch(&key.name, &patch).await?;
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{Running, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];

    #[test]
    fn steps_follow_the_number_of_nodes() {
        let mut size = Size::default();
        let mut reach = |nodes: usize| {
            while size.nodes < nodes {
                size.added();
            }
            while size.nodes > nodes {
                size.removed();
            }
            size.seconds()
        };
        for (nodes, expected) in [
            (100, 0),
            (101, 15),
            (90, 15),
            (89, 0),
            (100, 0),
            (500, 15),
            (501, 30),
            (1001, 60),
            (2001, 300),
            (1800, 300),
            (1799, 60),
            (899, 30),
            (0, 0),
        ] {
            assert_eq!(reach(nodes), expected, "{nodes} nodes");
        }
    }

    #[test]
    fn only_other_values_are_written() {
        let with = |value: Option<&str>| {
            let mut node = Node::default();
            node.metadata.annotations.extend(value.map(|value| (ANNOTATION.to_owned(), value.to_owned())));
            plan(&node, 15).is_some()
        };
        let outcomes = [with(None), with(Some("x")), with(Some("0")), with(Some("15"))];
        assert_eq!(outcomes, [true, true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_are_annotated() {
        let running = Running::start(KNOWN);
        let mut node = Node::default();
        node.metadata.name = "n".into();
        running.put("v1/nodes", &node);
        run_until_idle().await;
        let node: Node = running.client.all().get("n").await.unwrap();
        assert_eq!(node.metadata.annotations.get(ANNOTATION).map(String::as_str), Some("0"));
        running.assert_steady().await;
    }
}
