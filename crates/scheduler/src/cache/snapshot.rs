//! The cluster as one cycle sees it: nodes in order, and tables by node that plugins ask for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::spread::Spread;
use crate::node_info::{NodeInfo, NodeView};
use crate::resources::Resources;

/// How many topology tables a snapshot keeps; more are computed again each time.
const MAX_TOPOLOGIES: usize = 32;

/// The nodes at one moment.
#[derive(Default)]
pub struct Snapshot {
    nodes: Vec<Arc<NodeInfo>>,
    index: Arc<HashMap<Arc<str>, usize>>,
    with_affinity: BTreeSet<usize>,
    with_required_anti: BTreeSet<usize>,
    with_volumes: BTreeSet<usize>,
    /// What is left on each node, side by side, so that full nodes are passed over without looking at them.
    room: Vec<Room>,
    topologies: Mutex<HashMap<String, Arc<Topology>>>,
    /// The pods of the domains, for labels that were asked for.
    spreads: Mutex<HashMap<String, Arc<Spread>>>,
}

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
            index: Arc::clone(&self.index),
            with_affinity: self.with_affinity.clone(),
            with_required_anti: self.with_required_anti.clone(),
            with_volumes: self.with_volumes.clone(),
            room: self.room.clone(),
            topologies: Mutex::new(self.topologies.lock().clone()),
            spreads: Mutex::new(self.spreads.lock().clone()),
        }
    }
}

/// What is left on a node.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    milli_cpu: i64,
    memory: i64,
    pods: i64,
}

impl Room {
    fn of(info: &NodeInfo) -> Self {
        Self {
            milli_cpu: info.allocatable.milli_cpu - info.requested.milli_cpu,
            memory: info.allocatable.memory - info.requested.memory,
            pods: info.allocatable.pods - i64::try_from(info.pods.len()).unwrap_or(i64::MAX),
        }
    }
}

/// The domains that a label divides the nodes into, by place of the node.
#[derive(Debug)]
pub struct Topology {
    /// The label.
    pub key: String,
    domains: Vec<u32>,
    ids: HashMap<String, u32>,
    complete: bool,
}

/// Nodes without the label are in no domain.
const NO_DOMAIN: u32 = u32::MAX;

impl Topology {
    fn new(key: &str, nodes: &[Arc<NodeInfo>]) -> Self {
        let mut ids: HashMap<String, u32> = HashMap::new();
        let domains = nodes
            .iter()
            .map(|node| {
                let Some(value) = node.label(key) else { return NO_DOMAIN };
                if let Some(id) = ids.get(value) {
                    return *id;
                }
                let id = u32::try_from(ids.len()).unwrap_or(NO_DOMAIN);
                ids.insert(value.to_owned(), id);
                id
            })
            .collect();
        let complete = nodes.iter().all(|node| node.node.is_none() || node.label(key).is_some());
        Self { key: key.to_owned(), domains, ids, complete }
    }

    /// The domain of the node at a place.
    #[must_use]
    pub fn domain(&self, index: usize) -> Option<usize> {
        self.domains.get(index).filter(|id| **id != NO_DOMAIN).map(|id| *id as usize)
    }

    /// The domain that a value of the label stands for.
    #[must_use]
    pub fn domain_of_value(&self, value: &str) -> Option<usize> {
        self.ids.get(value).map(|id| *id as usize)
    }

    /// Whether every node is in a domain.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// How many domains there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no node has the label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

impl Snapshot {
    /// A snapshot of these nodes, in this order.
    #[must_use]
    pub fn of(nodes: Vec<Arc<NodeInfo>>) -> Self {
        let mut snapshot = Self::default();
        snapshot.replace_all(nodes);
        snapshot
    }

    /// A snapshot of those of its nodes that have these names.
    #[must_use]
    pub fn only(&self, names: &[Arc<str>]) -> Self {
        let node = |name: &Arc<str>| self.nodes.get(self.index_of(name)?).cloned();
        Self::of(names.iter().filter_map(node).collect())
    }

    /// The nodes in order.
    #[must_use]
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The place of a node.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// A node by place.
    #[must_use]
    pub fn view(&self, index: usize) -> Option<NodeView<'_>> {
        NodeView::new(self.nodes.get(index)?, index)
    }

    /// A node by name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<NodeView<'_>> {
        self.view(self.index_of(name)?)
    }

    /// All nodes as views.
    pub fn views(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.iter().enumerate().filter_map(|(index, info)| NodeView::new(info, index))
    }

    /// Nodes with pods that have a pod affinity or anti-affinity.
    pub fn with_affinity(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.with_affinity.iter().filter_map(|index| self.view(*index))
    }

    /// Nodes with pods that have required anti-affinity terms.
    pub fn with_required_anti(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.with_required_anti.iter().filter_map(|index| self.view(*index))
    }

    /// Nodes with pods that have volumes that other pods may have, too.
    pub fn with_volumes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.with_volumes.iter().filter_map(|index| self.view(*index))
    }

    /// Whether the node at a place has room for a request as far as CPU, memory and the number of pods go. Where it has
    /// not, `NodeResourcesFit` rejects it for certain.
    #[must_use]
    pub fn has_room(&self, index: usize, request: &Resources) -> bool {
        self.room.get(index).is_none_or(|room| {
            room.pods >= 1
                && (request.milli_cpu == 0 || request.milli_cpu <= room.milli_cpu)
                && (request.memory == 0 || request.memory <= room.memory)
        })
    }

    /// The domains of a label. Kept until a node's labels change.
    #[must_use]
    pub fn topology(&self, key: &str) -> Arc<Topology> {
        let mut known = self.topologies.lock();
        if let Some(topology) = known.get(key) {
            return Arc::clone(topology);
        }
        let topology = Arc::new(Topology::new(key, &self.nodes));
        if known.len() >= MAX_TOPOLOGIES {
            known.clear();
        }
        known.insert(key.to_owned(), Arc::clone(&topology));
        topology
    }

    /// The pods of the domains of a label. Kept up to date until a node's labels change.
    #[must_use]
    pub(crate) fn spread(&self, key: &str) -> Arc<Spread> {
        let topology = self.topology(key);
        let mut known = self.spreads.lock();
        if let Some(spread) = known.get(key) {
            return Arc::clone(spread);
        }
        let spread = Arc::new(Spread::new(topology, &self.nodes));
        if known.len() >= MAX_TOPOLOGIES {
            known.clear();
        }
        known.insert(key.to_owned(), Arc::clone(&spread));
        spread
    }

    /// Takes over all nodes, in a new order.
    pub(crate) fn replace_all(&mut self, nodes: Vec<Arc<NodeInfo>>) {
        let places = nodes.iter().enumerate().map(|(index, node)| (Arc::clone(&node.name), index));
        self.index = Arc::new(places.collect());
        self.nodes = nodes;
        self.with_affinity.clear();
        self.with_required_anti.clear();
        self.with_volumes.clear();
        self.room = vec![Room::default(); self.nodes.len()];
        for index in 0..self.nodes.len() {
            self.note_sums(index);
        }
        self.topologies.get_mut().clear();
        self.spreads.get_mut().clear();
    }

    /// Takes over a newer version of one node; says whether the node is known.
    pub(crate) fn replace(&mut self, info: &Arc<NodeInfo>) -> bool {
        let Some(index) = self.index_of(&info.name) else { return false };
        let Some(slot) = self.nodes.get_mut(index) else { return false };
        let labels = |info: &NodeInfo| info.node.clone();
        let same_labels = match (labels(slot), labels(info)) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old, &new) || old.metadata.labels == new.metadata.labels,
            _ => false,
        };
        let old = std::mem::replace(slot, Arc::clone(info));
        if same_labels {
            for spread in self.spreads.get_mut().values_mut() {
                Arc::make_mut(spread).replace(index, &old, info);
            }
        } else {
            self.topologies.get_mut().clear();
            self.spreads.get_mut().clear();
        }
        self.note_sums(index);
        true
    }

    fn note_sums(&mut self, index: usize) {
        let Some(info) = self.nodes.get(index) else { return };
        if let Some(room) = self.room.get_mut(index) {
            *room = Room::of(info);
        }
        note(&mut self.with_affinity, index, info.affinity_pods > 0);
        note(&mut self.with_required_anti, index, info.required_anti_pods > 0);
        note(&mut self.with_volumes, index, info.shared_volumes > 0);
    }
}

fn note(set: &mut BTreeSet<usize>, index: usize, member: bool) {
    if member {
        set.insert(index);
    } else {
        set.remove(&index);
    }
}
