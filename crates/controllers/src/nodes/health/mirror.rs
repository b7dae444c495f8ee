//! Taints that keep new pods off, and old names of labels: both mirror what is on the node anyway.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::Time;
use api_machinery::value::{ValueMap, to_value};
use api_types::core_v1::constants::{
    LABEL_ARCH_STABLE, LABEL_OS_STABLE, TAINT_NODE_DISK_PRESSURE, TAINT_NODE_MEMORY_PRESSURE,
    TAINT_NODE_NETWORK_UNAVAILABLE, TAINT_NODE_NOT_READY, TAINT_NODE_PID_PRESSURE, TAINT_NODE_UNREACHABLE,
    TAINT_NODE_UNSCHEDULABLE,
};
use api_types::core_v1::{Node, Taint};
use client::{ObjectKey, Patch};
use controller::{Controller, Cx, Next, ReconcileError};

use super::Shared;
use crate::nodes::node_taints::{change, same, taint};

const NO_SCHEDULE: &str = "NoSchedule";
/// Condition, status, taint.
const BY_CONDITION: &[(&str, &str, &str)] = &[
    ("Ready", "False", TAINT_NODE_NOT_READY),
    ("Ready", "Unknown", TAINT_NODE_UNREACHABLE),
    ("MemoryPressure", "True", TAINT_NODE_MEMORY_PRESSURE),
    ("DiskPressure", "True", TAINT_NODE_DISK_PRESSURE),
    ("NetworkUnavailable", "True", TAINT_NODE_NETWORK_UNAVAILABLE),
    ("PIDPressure", "True", TAINT_NODE_PID_PRESSURE),
];
const OLD_LABELS: &[(&str, &str)] =
    &[(LABEL_OS_STABLE, "beta.kubernetes.io/os"), (LABEL_ARCH_STABLE, "beta.kubernetes.io/arch")];

/// Works on each node that changes.
pub(super) struct Mirror(pub(super) Arc<Shared>);

#[async_trait::async_trait]
impl Controller for Mirror {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(node) = self.0.nodes.get(key) else { return Ok(Next::Done) };
        let (add, remove) = taints(&node, Time::from(cx.clock.wall()));
        if !add.is_empty() {
            change(cx, &key.name, &add, &[]).await?;
        }
        if !remove.is_empty() {
            change(cx, &key.name, &[], &remove).await?;
        }
        let labels = labels(&node);
        if !labels.is_empty() {
            let mut metadata = ValueMap::new();
            metadata.insert("labels".into(), to_value(&labels));
            let mut body = ValueMap::new();
            body.insert("metadata".into(), metadata.into());
            cx.client.all::<Node>().patch(&key.name, &Patch::Strategic(body.into())).await?;
        }
        Ok(Next::Done)
    }
}

/// The taints to add and those to remove. Taints of others are not touched.
pub(super) fn taints(node: &Node, now: Time) -> (Vec<Taint>, Vec<Taint>) {
    let applies = |(condition, status, _): &&(&str, &str, &str)| {
        let conditions = &node.status.conditions;
        conditions.iter().any(|one| one.type_ == *condition && one.status == *status)
    };
    let mut wanted: Vec<Taint> =
        BY_CONDITION.iter().filter(applies).map(|(_, _, key)| taint(key, NO_SCHEDULE, now)).collect();
    if node.spec.unschedulable {
        wanted.push(taint(TAINT_NODE_UNSCHEDULABLE, NO_SCHEDULE, now));
    }
    let ours = |one: &&Taint| {
        let known = BY_CONDITION.iter().any(|(_, _, key)| *key == one.key) || one.key == TAINT_NODE_UNSCHEDULABLE;
        one.effect == NO_SCHEDULE && known
    };
    let present: Vec<Taint> = node.spec.taints.iter().filter(ours).cloned().collect();
    let missing = wanted.iter().filter(|one| !present.iter().any(|other| same(one, other))).cloned().collect();
    let extra = present.iter().filter(|one| !wanted.iter().any(|other| same(one, other))).cloned().collect();
    (missing, extra)
}

/// The labels to set.
fn labels(node: &Node) -> BTreeMap<String, String> {
    let labels = &node.metadata.labels;
    let missing = |(new, old): &(&str, &str)| {
        let value = labels.get(*new)?;
        (labels.get(*old) != Some(value)).then(|| ((*old).to_owned(), value.clone()))
    };
    OLD_LABELS.iter().filter_map(missing).collect()
}
