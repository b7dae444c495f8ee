//! Watches over the nodes: says in their conditions when they fall silent, taints them so that no pods come and those
//! that are there leave, and says of their pods that they are not ready.
//!
//! Four parts work side by side: a pass over all nodes every few seconds (`monitor`), the queue of nodes whose pods are
//! to leave, slowed down by zone (`zones`, `eviction_queue`), taints and labels that mirror a node (`mirror`), and pods that
//! were bound to a node that is already silent (`pods`).

mod conditions;
mod eviction_queue;
mod metrics;
mod mirror;
mod monitor;
mod pods;
mod record;
#[cfg(test)]
mod tests;
mod zones;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_types::coordination_v1::Lease;
use api_types::core_v1::constants::NAMESPACE_NODE_LEASE;
use api_types::core_v1::{Node, Pod};
use client::{Change, Informer, Scope};
use controller::{Build, BuildError, Descriptor, NODE_NAME};
use parking_lot::Mutex;

use crate::Settings;
use crate::settings::NodeHealthSettings;
use eviction_queue::{EvictionQueue, Tainter};
use metrics::NodeMetrics;
use mirror::Mirror;
use monitor::Monitor;
use pods::NewPods;
use record::Record;
use zones::Zones;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "node-lifecycle-controller",
    aliases: &["nodelifecycle"],
    gates: &[],
    identity: "node-controller",
    event_component: "node-controller",
    disabled_by_default: false,
    build,
};

const NODE_WORKERS: usize = 8;
const POD_WORKERS: usize = 4;
/// How often the queue of nodes to taint is looked at.
const TAINT_PERIOD: Duration = Duration::from_millis(100);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.node_health.clone();
    let node_queue = build.queue("node_lifecycle_controller");
    let pod_queue = build.queue("node_lifecycle_controller_pods");
    let nodes = build.watch::<Node>().enqueue_self(&node_queue).informer();
    let bound = |change: &Change<Pod>| {
        let (now, before) = (&change.object().spec.node_name, change.old().map(|old| &old.spec.node_name));
        (!change.is_deleted() && !now.is_empty() && before != Some(now)).then(|| change.key())
    };
    let by_node = |pod: &Pod| Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty()).into_iter().collect();
    let pods = build.watch::<Pod>().index(NODE_NAME, by_node).enqueue_keys(&pod_queue, bound).informer();
    let leases = Scope { namespace: NAMESPACE_NODE_LEASE.to_owned(), ..Scope::default() };
    let leases = build.watch_scoped::<Lease>(&leases).informer();
    let period = settings.monitor_period;
    let metrics = NodeMetrics::new(build.metrics());
    let shared = Arc::new(Shared { nodes, pods, leases, settings, metrics, state: Mutex::default() });
    build.run(&node_queue, NODE_WORKERS, Arc::new(Mirror(Arc::clone(&shared))));
    build.run(&pod_queue, POD_WORKERS, Arc::new(NewPods(Arc::clone(&shared))));
    build.every("node_lifecycle_monitor", period, Arc::new(Monitor::new(Arc::clone(&shared))));
    build.every("node_lifecycle_taints", TAINT_PERIOD, Arc::new(Tainter(shared)));
    Ok(())
}

/// What the parts share.
struct Shared {
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    leases: Informer<Lease>,
    settings: NodeHealthSettings,
    metrics: NodeMetrics,
    state: Mutex<State>,
}

/// What is remembered of nodes and zones. Bounded by the nodes that exist.
#[derive(Default)]
struct State {
    /// What was heard of each node.
    records: HashMap<String, Record>,
    /// The states of the zones.
    zones: Zones,
    /// Nodes to taint, by zone.
    queues: BTreeMap<String, EvictionQueue>,
}
