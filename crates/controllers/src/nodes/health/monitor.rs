//! The pass over all nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::constants::NAMESPACE_NODE_LEASE;
use api_types::core_v1::{Node, ObjectReference};
use client::{ClientError, EventType, ObjectKey};
use controller::{Controller, Cx, NODE_NAME, Next, ReconcileError};
use futures_util::StreamExt as _;
use parking_lot::Mutex;

use super::conditions::{ready, silence};
use super::eviction_queue::{EvictionQueue, both, wanted};
use super::pods::mark;
use super::record::{Grace, Now, hear};
use super::zones::{Change, Count, zone_of};
use super::{Shared, State};
use crate::nodes::node_taints::{change, has};

/// Nodes looked at at the same time.
const PARALLEL: usize = 8;
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// Looks at all nodes.
pub(super) struct Monitor {
    shared: Arc<Shared>,
    /// The nodes of the last pass, with their uids.
    known: Mutex<BTreeMap<String, String>>,
    /// Nodes whose pods may still have to be marked: new ones, and those where it failed.
    owed: Mutex<BTreeSet<String>>,
}

/// A node as it was found, and as it was before.
struct Seen {
    node: Arc<Node>,
    zone: String,
    before: String,
    now: String,
}

impl Monitor {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, known: Mutex::default(), owed: Mutex::default() }
    }
}

#[async_trait::async_trait]
impl Controller for Monitor {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let started = cx.clock.monotonic();
        let nodes = self.shared.nodes.list();
        self.welcome(cx, &nodes).await;
        let mut looks = Vec::with_capacity(nodes.len());
        for node in &nodes {
            looks.push(self.look_timed(cx, node));
        }
        let seen: Vec<Seen> =
            futures_util::stream::iter(looks).buffer_unordered(PARALLEL).filter_map(std::future::ready).collect().await;
        for one in &seen {
            self.treat(cx, one).await;
        }
        self.judge_zones(cx, &seen).await;
        self.shared.metrics.looked_at_all(cx.clock.monotonic().saturating_duration_since(started));
        Ok(Next::Done)
    }
}

impl Monitor {
    /// Nodes that came and went.
    async fn welcome(&self, cx: &Cx, nodes: &[Arc<Node>]) {
        let uid = |node: &Arc<Node>| (node.metadata.name.clone(), node.metadata.uid.clone());
        let now: BTreeMap<String, String> = nodes.iter().map(uid).collect();
        let before = std::mem::replace(&mut *self.known.lock(), now.clone());
        for node in nodes {
            let zone = zone_of(node);
            let mut state = self.shared.state.lock();
            if state.zones.enter(&zone) {
                let queue = EvictionQueue::new(self.shared.settings.eviction_rate, cx.clock.monotonic());
                self.shared.metrics.entered(&zone);
                state.queues.insert(zone, queue);
            }
        }
        for node in nodes.iter().filter(|node| !before.contains_key(&node.metadata.name)) {
            let name = &node.metadata.name;
            tell(cx, node, "RegisteredNode", format!("Node {name} event: Registered Node {name} in Controller"));
            self.owed.lock().insert(name.clone());
            // The pass does it again for a node that is ready; the others are not to wait for this one.
            if let Err(error) = self.free(cx, node).await {
                tracing::warn!(%error, node = name, "Removing the taints of a new node failed");
            }
        }
        for (name, uid) in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
            let mut gone = Node::default();
            gone.metadata.name.clone_from(name);
            gone.metadata.uid.clone_from(uid);
            tell(cx, &gone, "RemovingNode", format!("Node {name} event: Removing Node {name} from Controller"));
            self.owed.lock().remove(name);
            let mut state = self.shared.state.lock();
            state.records.remove(name);
            state.queues.values_mut().for_each(|queue| queue.remove(name));
        }
    }

    /// Takes the taints away that drive pods off.
    async fn free(&self, cx: &Cx, node: &Node) -> Result<(), ClientError> {
        let name = &node.metadata.name;
        let taints = both(Time::from(cx.clock.wall()));
        if taints.iter().any(|taint| has(node, &taint.key, &taint.effect)) {
            change(cx, name, &[], &taints).await?;
        }
        self.shared.state.lock().queues.values_mut().for_each(|queue| queue.remove(name));
        Ok(())
    }

    async fn look_timed(&self, cx: &Cx, node: &Arc<Node>) -> Option<Seen> {
        let started = cx.clock.monotonic();
        let seen = self.look(cx, node).await;
        self.shared.metrics.looked(cx.clock.monotonic().saturating_duration_since(started));
        seen
    }

    /// Listens to a node; says in its status when it is silent. Nothing where that could not be written.
    async fn look(&self, cx: &Cx, node: &Arc<Node>) -> Option<Seen> {
        let settings = &self.shared.settings;
        let name = &node.metadata.name;
        let now = Now { wall: Time::from(cx.clock.wall()), monotonic: cx.clock.monotonic() };
        let grace = Grace { startup: settings.startup_grace_period, running: settings.monitor_grace_period };
        let lease = self.shared.leases.find(NAMESPACE_NODE_LEASE, name);
        let renewed = lease.and_then(|lease| lease.spec.renew_time);
        let silent = {
            let mut state = self.shared.state.lock();
            let record = hear(state.records.get(name), node, renewed, grace, now);
            let silent = record.is_silent(now.monotonic);
            state.records.insert(name.clone(), record);
            silent
        };
        let zone = zone_of(node);
        let status = |node: &Node| ready(node).map(|ready| ready.status.clone()).unwrap_or_default();
        let before = status(node);
        if !silent {
            return Some(Seen { node: Arc::clone(node), zone, now: before.clone(), before });
        }
        let mut changed = Node::clone(node);
        if !silence(&mut changed, now.wall) {
            return Some(Seen { node: Arc::clone(node), zone, now: before.clone(), before });
        }
        match write_silence(cx, changed, now.wall).await {
            Ok(written) => {
                let written = Arc::new(written);
                self.remember_written(name, &written);
                Some(Seen { now: status(&written), node: written, zone, before })
            }
            Err(error) => {
                tracing::error!(%error, node = name, "Writing the status of a silent node failed");
                None
            }
        }
    }

    /// What this controller wrote is no word of the node.
    fn remember_written(&self, name: &str, node: &Node) {
        let mut state = self.shared.state.lock();
        if let Some(record) = state.records.get_mut(name) {
            record.ready = ready(node).cloned();
        }
    }

    /// Taints by readiness, and pods that lose theirs.
    async fn treat(&self, cx: &Cx, seen: &Seen) {
        let name = &seen.node.metadata.name;
        let now = Time::from(cx.clock.wall());
        let outcome = match wanted(&seen.now, now) {
            None if seen.now == "True" => self.free(cx, &seen.node).await,
            None => Ok(()),
            Some((add, remove)) if has(&seen.node, &remove.key, &remove.effect) => {
                change(cx, name, &[add], &[remove]).await
            }
            Some((add, _)) => {
                let missing = !has(&seen.node, &add.key, &add.effect);
                let mut state = self.shared.state.lock();
                if let Some(queue) = state.queues.get_mut(&seen.zone) {
                    if missing {
                        queue.reset(name);
                    }
                    queue.add(name);
                }
                Ok(())
            }
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, node = name, "Changing the taints of a node failed");
        }
        self.mark_pods(cx, seen).await;
    }

    async fn mark_pods(&self, cx: &Cx, seen: &Seen) {
        let name = &seen.node.metadata.name;
        let fell = seen.before == "True" && seen.now != "True";
        if fell {
            tell(cx, &seen.node, "NodeNotReady", format!("Node {name} status is now: NodeNotReady"));
        }
        // Only of a node that fell silent, and once: a kubelet that talks says itself what it knows of its pods.
        let owed = self.owed.lock().remove(name) && seen.now == "Unknown";
        if !fell && !owed {
            return;
        }
        let pods = self.shared.pods.by_index(NODE_NAME, name);
        if let Err(error) = mark(cx, &pods).await {
            tracing::warn!(%error, node = name, "Marking the pods of a node as not ready failed, trying again");
            self.owed.lock().insert(name.clone());
        }
    }

    async fn judge_zones(&self, cx: &Cx, seen: &[Seen]) {
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        for one in seen.iter().filter(|one| !one.node.metadata.labels.contains_key(EXCLUDED)) {
            let count = counts.entry(one.zone.clone()).or_default();
            if one.now == "True" { count.ready += 1 } else { count.not_ready += 1 }
        }
        self.shared.metrics.zones(counts.iter());
        let now = cx.clock.monotonic();
        let all_down = {
            let mut state = self.shared.state.lock();
            let state = &mut *state;
            match state.zones.update(&counts, &self.shared.settings) {
                Change::Rates(rates) => {
                    set_rates(state, &rates, now);
                    false
                }
                Change::Recovered(rates) => {
                    state.records.values_mut().for_each(|record| record.heard = now);
                    set_rates(state, &rates, now);
                    false
                }
                Change::AllDown => {
                    for queue in state.queues.values_mut() {
                        queue.clear();
                        queue.set_rate(0.0, now);
                    }
                    true
                }
            }
        };
        if all_down {
            tracing::warn!("Controller detected that all Nodes are not-Ready. Entering master disruption mode.");
            for one in seen {
                if let Err(error) = self.free(cx, &one.node).await {
                    tracing::error!(%error, node = one.node.metadata.name, "Removing the taints of a node failed");
                }
            }
        }
    }
}

fn set_rates(state: &mut State, rates: &[(String, f64)], now: tokio::time::Instant) {
    for (zone, rate) in rates {
        if let Some(queue) = state.queues.get_mut(zone) {
            queue.set_rate(*rate, now);
        }
    }
}

/// Writes the status; where the node changed meanwhile, once more on what it is now.
async fn write_silence(cx: &Cx, node: Node, now: Time) -> Result<Node, ClientError> {
    let nodes = cx.client.all::<Node>();
    match nodes.update_status(&node).await {
        Err(error) if error.is_conflict() => {}
        outcome => return outcome,
    }
    let mut live = nodes.get(&node.metadata.name).await?;
    if silence(&mut live, now) { nodes.update_status(&live).await } else { Ok(live) }
}

fn tell(cx: &Cx, node: &Node, reason: &str, message: String) {
    let about = ObjectReference {
        kind: "Node".to_owned(),
        api_version: "v1".to_owned(),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..ObjectReference::default()
    };
    cx.events.event_for(about, EventType::Normal, reason, message);
}
