//! What the scheduler believes of the cluster: nodes, the pods on them, and its own decisions that the API server has
//! not confirmed yet.
//!
//! A pod is assumed when a node was chosen for it, and added when the watch shows it there. Assumed pods do not
//! expire: a failed binding forgets them.

mod counted;
mod images;
mod node_order;
mod snapshot;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_types::core_v1::{Node, Pod};
use component_base::Gates;
use parking_lot::Mutex;

pub(crate) use counted::GATES as COUNTED_GATES;
pub use snapshot::{Snapshot, Topology};

use crate::node_info::NodeInfo;
use crate::pod_class::ClassTable;
use crate::pod_info::PodInfo;
use counted::Counted;
use images::Images;
use node_order::NodeOrder;

/// Nodes, pods and decisions.
#[derive(Default)]
pub struct Cache {
    state: Mutex<State>,
    classes: Arc<ClassTable>,
    counted: Counted,
}

#[derive(Default)]
struct State {
    nodes: HashMap<Arc<str>, Arc<NodeInfo>>,
    pods: HashMap<String, CachedPod>,
    assumed: usize,
    order: NodeOrder,
    images: Images,
    generation: u64,
    /// Nodes that changed since the last snapshot.
    dirty: BTreeSet<Arc<str>>,
    /// Whether nodes came or went since the last snapshot.
    reordered: bool,
}

struct CachedPod {
    info: Arc<PodInfo>,
    node: Arc<str>,
    assumed: bool,
}

/// Why the cache refused a change.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CacheError {
    /// The pod is there already.
    #[error("pod {uid}({name}) is in the cache, so can't be assumed")]
    AlreadyCached {
        /// Its uid.
        uid: String,
        /// `namespace/name`.
        name: String,
    },
    /// A confirmed pod cannot be forgotten.
    #[error("pod {uid}({name}) wasn't assumed so cannot be forgotten")]
    NotAssumed {
        /// Its uid.
        uid: String,
        /// `namespace/name`.
        name: String,
    },
}

/// How many of each the cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheSize {
    /// Nodes, those only known by their pods included.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Pods that are not confirmed.
    pub assumed: usize,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The classes of pods, which the queue shares.
    #[must_use]
    pub fn classes(&self) -> &Arc<ClassTable> {
        &self.classes
    }

    /// An empty cache, where these gates are switched so.
    #[must_use]
    pub fn obeying(gates: &Gates) -> Self {
        Self { counted: Counted::of(gates), ..Self::default() }
    }

    /// A pod as it counts, which is what plugins are told of.
    #[must_use]
    pub fn seen(&self, pod: &Arc<Pod>) -> Arc<Pod> {
        self.counted.seen(Arc::clone(pod))
    }

    /// Computes what is needed of a pod.
    #[must_use]
    pub fn pod_info(&self, pod: Arc<Pod>) -> Arc<PodInfo> {
        PodInfo::new(self.counted.seen(pod), &self.classes)
    }

    /// A node was chosen for a pod.
    ///
    /// # Errors
    /// When the pod is in the cache.
    pub fn assume(&self, info: &Arc<PodInfo>, node: &Arc<str>) -> Result<(), CacheError> {
        let mut state = self.state.lock();
        if state.pods.contains_key(info.uid()) {
            return Err(CacheError::AlreadyCached { uid: info.uid().to_owned(), name: info.full_name() });
        }
        state.put_pod(Arc::clone(info), Arc::clone(node), true);
        Ok(())
    }

    /// The choice does not hold. A pod that is not there is fine.
    ///
    /// # Errors
    /// When the pod is confirmed.
    pub fn forget(&self, uid: &str) -> Result<(), CacheError> {
        let mut state = self.state.lock();
        match state.pods.get(uid) {
            None => Ok(()),
            Some(pod) if !pod.assumed => {
                Err(CacheError::NotAssumed { uid: uid.to_owned(), name: pod.info.full_name() })
            }
            Some(_) => {
                state.take_pod(uid);
                Ok(())
            }
        }
    }

    /// Whether a choice waits for its confirmation.
    #[must_use]
    pub fn is_assumed(&self, uid: &str) -> bool {
        self.state.lock().pods.get(uid).is_some_and(|pod| pod.assumed)
    }

    /// The node that the cache has for a pod.
    #[must_use]
    pub fn node_of(&self, uid: &str) -> Option<Arc<str>> {
        self.state.lock().pods.get(uid).map(|pod| Arc::clone(&pod.node))
    }

    /// A pod is on a node, says the watch.
    pub fn add_pod(&self, pod: Arc<Pod>) {
        let info = self.pod_info(pod);
        let mut state = self.state.lock();
        let node = info.pod.spec.node_name.as_str();
        if let Some(known) = state.pods.get(info.uid())
            && *known.node != *node
        {
            tracing::warn!(pod = %info.full_name(), assumed = %known.node, node, "Pod was added to a different node than it was assumed");
        }
        state.take_pod(info.uid());
        let node = node.into();
        state.put_pod(info, node, false);
    }

    /// A pod on a node changed, says the watch. A pod that is only assumed keeps its assumed version.
    pub fn update_pod(&self, pod: Arc<Pod>) {
        if self.is_assumed(&pod.metadata.uid) {
            return;
        }
        self.add_pod(pod);
    }

    /// A pod is gone from its node, says the watch.
    pub fn remove_pod(&self, uid: &str) {
        self.state.lock().take_pod(uid);
    }

    /// A node was added or changed.
    pub fn set_node(&self, node: Arc<Node>) {
        let mut state = self.state.lock();
        let name: Arc<str> = node.metadata.name.as_str().into();
        let old = state.nodes.get(&name).and_then(|info| info.node.clone());
        if let Some(old) = &old {
            state.images.remove(&name, old);
        }
        if old.as_ref().is_none_or(|old| NodeOrder::moves(old, &node)) {
            if let Some(old) = &old {
                state.order.remove(old);
            }
            state.order.add(&node);
            state.reordered = true;
        }
        let images = state.images.add(&name, &node);
        state.change(&name, |info| {
            info.set_node(node);
            info.images = images;
        });
    }

    /// A node is gone; its pods stay until they are gone too.
    pub fn remove_node(&self, name: &str) {
        let mut state = self.state.lock();
        let Some(node) = state.nodes.get(name).and_then(|info| info.node.clone()) else { return };
        state.order.remove(&node);
        state.images.remove(name, &node);
        state.reordered = true;
        let name: Arc<str> = name.into();
        state.change(&name, NodeInfo::remove_node);
        state.drop_if_empty(&name);
    }

    /// Whether anything has changed since the last snapshot.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let state = self.state.lock();
        state.reordered || !state.dirty.is_empty()
    }

    /// Brings a snapshot up to date: only nodes that changed are looked at, unless nodes came or went.
    pub fn update_snapshot(&self, snapshot: &mut Snapshot) {
        let mut state = self.state.lock();
        let dirty = std::mem::take(&mut state.dirty);
        if std::mem::take(&mut state.reordered) {
            let list = state.order.list();
            snapshot.replace_all(list.iter().filter_map(|name| state.nodes.get(name).cloned()).collect());
            return;
        }
        for info in dirty.iter().filter_map(|name| state.nodes.get(name)) {
            snapshot.replace(info);
        }
    }

    /// How much there is.
    #[must_use]
    pub fn size(&self) -> CacheSize {
        let state = self.state.lock();
        CacheSize { nodes: state.nodes.len(), pods: state.pods.len(), assumed: state.assumed }
    }
}

impl State {
    fn put_pod(&mut self, info: Arc<PodInfo>, node: Arc<str>, assumed: bool) {
        self.change(&node, |target| target.add_pod(Arc::clone(&info)));
        self.assumed += usize::from(assumed);
        self.pods.insert(info.uid().to_owned(), CachedPod { info, node, assumed });
    }

    fn take_pod(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else { return };
        self.assumed -= usize::from(pod.assumed);
        self.change(&pod.node, |target| {
            target.remove_pod(uid);
        });
        self.drop_if_empty(&pod.node);
    }

    /// Changes a node, which is copied where a snapshot holds it.
    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut NodeInfo)) {
        self.generation += 1;
        let generation = self.generation;
        let slot = self.nodes.entry(Arc::clone(name)).or_insert_with(|| Arc::new(NodeInfo::named(Arc::clone(name))));
        let info = Arc::make_mut(slot);
        change(info);
        info.generation = generation;
        self.dirty.insert(Arc::clone(name));
    }

    fn drop_if_empty(&mut self, name: &str) {
        if self.nodes.get(name).is_some_and(|info| info.node.is_none() && info.pods.is_empty()) {
            self.nodes.remove(name);
        }
    }
}
