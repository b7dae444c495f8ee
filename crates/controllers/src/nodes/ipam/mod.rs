//! Gives each node a range of pod addresses, one of each address family.

mod cidr;
mod cidr_set;
mod metrics;
mod options;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::value::{ValueMap, to_value};
use api_types::core_v1::Node;
use client::{Change, EventType, Informer, ObjectKey, Patch};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::Settings;
use cidr::Cidr;
use cidr_set::CidrSet;
use metrics::SetMetrics;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "node-ipam-controller",
    aliases: &["nodeipam"],
    gates: &[],
    identity: "node-controller",
    event_component: "cidrAllocator",
    disabled_by_default: false,
    build,
};

const WORKERS: usize = 30;
/// Tries to write a node's ranges, back to back.
const TRIES: usize = 3;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.ipam.clone();
    if !settings.allocate {
        return Err(BuildError::Skipped("--allocate-node-cidrs is false".to_owned()));
    }
    let (mut sets, services) = options::complete(&settings).map_err(|error| BuildError::Failed(error.to_string()))?;
    for set in &mut sets {
        set.show(SetMetrics::new(build.metrics(), set.cluster()));
    }
    for service in &services {
        for set in &mut sets {
            if set.cluster().overlaps(service) {
                drop(set.occupy(service));
            }
        }
    }
    let ranges = Arc::new(Mutex::new(Ranges { sets, given: BTreeMap::new() }));
    let queue = build.queue("cidrallocator_node");
    let released = Arc::clone(&ranges);
    let on_node = move |change: &Change<Node>| {
        let Change::Deleted { object, .. } = change else { return Some(change.key()) };
        released.lock().release(object);
        None
    };
    let nodes = build.watch::<Node>().enqueue_keys(&queue, on_node).informer();
    metrics::started(build.metrics());
    build.run(&queue, WORKERS, Arc::new(Allocator { nodes, ranges, listed: OnceCell::new() }));
    Ok(())
}

/// Which blocks are taken, and by whom as far as the cache does not tell yet.
struct Ranges {
    /// One for each cluster range.
    sets: Vec<CidrSet>,
    /// What was written to nodes, by name, until the cache shows it. A node changes often when it is new, and the
    /// event of such a change may have it looked at again before the event of the write is here. Bounded by the nodes.
    given: BTreeMap<String, Given>,
}

struct Given {
    uid: String,
    ranges: Vec<Cidr>,
}

impl Ranges {
    /// A node is gone: its blocks are free, those that the cache never showed included.
    fn release(&mut self, node: &Node) {
        let unseen = self.given.get(&node.metadata.name).is_some_and(|given| given.uid == node.metadata.uid);
        let given = if unseen { self.given.remove(&node.metadata.name) } else { None };
        if node.spec.pod_cidrs.is_empty() {
            self.give_back(&given.map(|given| given.ranges).unwrap_or_default());
            return;
        }
        for (set, range) in self.sets.iter_mut().zip(&node.spec.pod_cidrs) {
            if let Ok(range) = range.parse() {
                drop(set.release(&range));
            }
        }
    }

    fn give_back(&mut self, ranges: &[Cidr]) {
        for (set, range) in self.sets.iter_mut().zip(ranges) {
            drop(set.release(range));
        }
    }

    /// Whether this very node has ranges already that the cache does not show yet.
    fn has_given(&self, node: &Node) -> bool {
        self.given.get(&node.metadata.name).is_some_and(|given| given.uid == node.metadata.uid)
    }
}

struct Allocator {
    nodes: Informer<Node>,
    ranges: Arc<Mutex<Ranges>>,
    /// Set once the ranges of all nodes that were there at the start are taken.
    listed: OnceCell<()>,
}

#[async_trait::async_trait]
impl Controller for Allocator {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        self.listed.get_or_try_init(|| self.take_present(cx)).await?;
        let Some(node) = self.nodes.get(key) else { return Ok(Next::Done) };
        if node.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        if !node.spec.pod_cidrs.is_empty() {
            self.ranges.lock().given.remove(&key.name);
            self.take(&node)?;
            return Ok(Next::Done);
        }
        if self.ranges.lock().has_given(&node) {
            return Ok(Next::Done);
        }
        let ranges = self.allocate(cx, &node)?;
        self.write(cx, key, &ranges).await?;
        Ok(Next::Done)
    }
}

impl Allocator {
    /// Nothing may be given away before it is known what is taken.
    async fn take_present(&self, cx: &Cx) -> Result<(), ReconcileError> {
        let nodes = cx.client.all::<Node>().list_all(&ListOptions::default()).await?;
        for node in &nodes.items {
            self.take(node)?;
        }
        Ok(())
    }

    /// Marks a node's own ranges as taken.
    fn take(&self, node: &Node) -> Result<(), ReconcileError> {
        let (name, ranges) = (&node.metadata.name, &node.spec.pod_cidrs);
        let sets = &mut self.ranges.lock().sets;
        for (index, text) in ranges.iter().enumerate() {
            let range: Cidr = text.parse().map_err(|_| {
                ReconcileError::failed(format!("failed to parse node {name}, CIDR [{}]", ranges.join(" ")))
            })?;
            let set = sets.get_mut(index).ok_or_else(|| {
                ReconcileError::failed(format!(
                    "node:{name} has an allocated cidr: {text} at index:{index} that does not exist in cluster cidrs \
                     configuration"
                ))
            })?;
            set.occupy(&range).map_err(|error| {
                ReconcileError::failed(format!(
                    "failed to mark cidr[{text}] at idx [{index}] as occupied for node: {name}: {error}"
                ))
            })?;
        }
        Ok(())
    }

    fn allocate(&self, cx: &Cx, node: &Node) -> Result<Vec<Cidr>, ReconcileError> {
        let mut own = self.ranges.lock();
        let mut ranges: Vec<Cidr> = Vec::with_capacity(own.sets.len());
        for index in 0..own.sets.len() {
            match own.sets[index].allocate() {
                Ok(range) => ranges.push(range),
                Err(error) => {
                    // Unlike upstream, what was taken from the other sets is given back.
                    own.give_back(&ranges);
                    tell(cx, node, "CIDRNotAvailable");
                    let text = format!("failed to allocate cidr from cluster cidr at idx:{index}: {error}");
                    return Err(ReconcileError::failed(text));
                }
            }
        }
        Ok(ranges)
    }

    async fn write(&self, cx: &Cx, key: &ObjectKey, ranges: &[Cidr]) -> Result<(), ReconcileError> {
        let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        let Some(node) = self.nodes.get(key) else {
            self.ranges.lock().give_back(ranges);
            return Ok(());
        };
        if node.spec.pod_cidrs == texts {
            return Ok(());
        }
        if !node.spec.pod_cidrs.is_empty() {
            self.ranges.lock().give_back(ranges);
            return Ok(());
        }
        let patch = patch(&texts);
        let mut failure = None;
        for _ in 0..TRIES {
            match cx.client.all::<Node>().patch(&key.name, &patch).await {
                Ok(written) => {
                    let given = Given { uid: written.metadata.uid, ranges: ranges.to_vec() };
                    self.ranges.lock().given.insert(key.name.clone(), given);
                    return Ok(());
                }
                Err(error) => failure = Some(error),
            }
        }
        let Some(error) = failure else { return Ok(()) };
        tell(cx, &node, "CIDRAssignmentFailed");
        // After a timeout the ranges may have been written all the same.
        if !error.is_timeout() {
            self.ranges.lock().give_back(ranges);
        }
        Err(error.into())
    }
}

fn patch(ranges: &[String]) -> Patch {
    let mut spec = ValueMap::new();
    spec.insert("podCIDR".into(), ranges.first().map(String::as_str).unwrap_or_default().into());
    spec.insert("podCIDRs".into(), to_value(&ranges.to_vec()));
    let mut body = ValueMap::new();
    body.insert("spec".into(), spec.into());
    Patch::Strategic(body.into())
}

fn tell(cx: &Cx, node: &Node, reason: &str) {
    let message = format!("Node {} status is now: {reason}", node.metadata.name);
    cx.events.event(node, EventType::Normal, reason, message);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
