//! What is attached where, as far as the controller knows.

use std::collections::{BTreeMap, BTreeSet};

use api_types::core_v1::{AttachedVolume, Node};
use tokio::time::Instant;

use super::plan::{BackOff, Work};
use super::target::Target;

/// On a node: its volumes are attached by this controller, not by the kubelet itself.
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// A volume on a node.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) target: Target,
    /// Whether it is known to be attached; else it may be.
    pub(super) is_confirmed: bool,
    /// Whether the node's status is to list it, so that the kubelet may mount it.
    pub(super) is_reported: bool,
    /// Since when nobody wants it there.
    pub(super) unwanted_since: Option<Instant>,
    pub(super) work: Work,
    pub(super) back_off: BackOff,
}

impl Entry {
    /// A volume that is attached.
    pub(super) fn attached(target: Target) -> Self {
        Self { is_confirmed: true, is_reported: true, ..Self::uncertain(target) }
    }

    /// A volume that may be attached.
    pub(super) fn uncertain(target: Target) -> Self {
        Self {
            target,
            is_confirmed: false,
            is_reported: false,
            unwanted_since: None,
            work: Work::Idle,
            back_off: BackOff::default(),
        }
    }
}

/// What is remembered of a node, also when its object is gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Whether its volumes are attached here. Stays true.
    pub(super) is_managed: bool,
    /// What its kubelet last said it has mounted, by name.
    pub(super) in_use: BTreeSet<String>,
}

/// Everything. Bounded by the nodes that exist and the volumes on them.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Whether the start is over: what was attached before is known.
    pub(super) is_filled: bool,
    pub(super) nodes: BTreeMap<String, Known>,
    /// By node and the volume's name.
    entries: BTreeMap<String, BTreeMap<String, Entry>>,
    /// Nodes that have an entry of a volume.
    places: BTreeMap<String, BTreeSet<String>>,
    /// Nodes that wait until a volume is free, and whether their pods were told.
    waiting: BTreeMap<String, BTreeMap<String, bool>>,
}

/// Why a volume cannot be attached to a node right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// It is on these nodes.
    Attached(Vec<String>),
    /// Something is being done with it on another node, or it may be there.
    Moving,
}

impl State {
    /// A node is there, or was: this is its last state.
    pub(super) fn saw(&mut self, node: &Node) {
        let known = self.nodes.entry(node.metadata.name.clone()).or_default();
        known.is_managed |= node.metadata.annotations.contains_key(MANAGED);
        known.in_use = node.status.volumes_in_use.iter().cloned().collect();
    }

    /// The volumes on a node, by name.
    pub(super) fn on(&self, node: &str) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.get(node).into_iter().flatten()
    }

    pub(super) fn entry(&mut self, node: &str, volume: &str) -> Option<&mut Entry> {
        self.entries.get_mut(node)?.get_mut(volume)
    }

    /// Takes a volume in, replacing what was there.
    pub(super) fn put(&mut self, node: &str, entry: Entry) {
        let name = entry.target.name();
        self.places.entry(name.clone()).or_default().insert(node.to_owned());
        self.entries.entry(node.to_owned()).or_default().insert(name, entry);
    }

    /// A volume is not on a node any more.
    pub(super) fn remove(&mut self, node: &str, volume: &str) {
        remove_from(&mut self.entries, node, |volumes| volumes.remove(volume).is_some(), BTreeMap::is_empty);
        remove_from(&mut self.places, volume, |nodes| nodes.remove(node), BTreeSet::is_empty);
    }

    /// What keeps a volume that can be on one node only from another. Where it may be on another, because something failed or
    /// this process has just begun, it is waited for what becomes of that; of two nodes that may both have it the first goes on.
    pub(super) fn elsewhere(&self, node: &str, volume: &str) -> Option<Elsewhere> {
        let others = self.places.get(volume).into_iter().flatten().filter(|other| *other != node);
        let others: Vec<(&String, &Entry)> =
            others.filter_map(|other| Some((other, self.entries.get(other)?.get(volume)?))).collect();
        if others.iter().any(|(_, entry)| !matches!(entry.work, Work::Idle)) {
            return Some(Elsewhere::Moving);
        }
        let attached: Vec<String> =
            others.iter().filter(|(_, entry)| entry.is_confirmed).map(|(node, _)| (*node).clone()).collect();
        if !attached.is_empty() {
            return Some(Elsewhere::Attached(attached));
        }
        let may_be_here = self.entries.get(node).is_some_and(|own| own.contains_key(volume));
        let goes_first = |other: &str| !may_be_here || other < node;
        others.iter().any(|(other, _)| goes_first(other)).then_some(Elsewhere::Moving)
    }

    /// A node waits for a volume. Says whether its pods are to be told, which they are once.
    pub(super) fn wait(&mut self, node: &str, volume: &str, tells: bool) -> bool {
        let told = self.waiting.entry(volume.to_owned()).or_default().entry(node.to_owned()).or_default();
        let is_news = tells && !*told;
        *told |= tells;
        is_news
    }

    /// A node waits for none but these volumes.
    pub(super) fn stop_waiting(&mut self, node: &str, still: &BTreeSet<String>) {
        self.waiting.retain(|volume, nodes| {
            if !still.contains(volume) {
                nodes.remove(node);
            }
            !nodes.is_empty()
        });
    }

    /// Nodes that wait for a volume.
    pub(super) fn waiting_for(&self, volume: &str) -> Vec<String> {
        self.waiting.get(volume).map(|nodes| nodes.keys().cloned().collect()).unwrap_or_default()
    }

    /// What the status of a node is to list, by name. Volumes of drivers have no path that is known here.
    pub(super) fn reported_on(&self, node: &str) -> Vec<AttachedVolume> {
        let reported = self.on(node).filter(|(_, entry)| entry.is_reported);
        reported.map(|(name, _)| AttachedVolume { name: name.clone(), device_path: String::new() }).collect()
    }

    /// Nothing needs to be remembered of a node that is gone and has nothing.
    pub(super) fn forget_if_empty(&mut self, node: &str) {
        self.stop_waiting(node, &BTreeSet::new());
        if !self.entries.contains_key(node) {
            self.nodes.remove(node);
        }
    }

    /// All entries, with their nodes.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter().flat_map(|(node, volumes)| volumes.values().map(move |entry| (node, entry)))
    }
}

/// Takes something out of a collection in a map, and the collection with it once that is empty.
fn remove_from<C>(
    map: &mut BTreeMap<String, C>,
    key: &str,
    remove: impl FnOnce(&mut C) -> bool,
    is_empty: impl FnOnce(&C) -> bool,
) {
    if let Some(inner) = map.get_mut(key)
        && remove(inner)
        && is_empty(inner)
    {
        map.remove(key);
    }
}
