//! Pods that have a node in mind: room is kept for them while they wait.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::pod_info::{NominatedPods, PodInfo};

/// Keeps nominations.
#[derive(Default)]
pub struct Nominator(Mutex<State>);

#[derive(Default)]
struct State {
    by_node: Arc<NominatedPods>,
    node_of: HashMap<String, String>,
}

impl Nominator {
    /// Nominates a pod to a node, in place of what it had.
    pub fn set(&self, info: &Arc<PodInfo>, node: &str) {
        let mut state = self.0.lock();
        state.remove(info.uid());
        if node.is_empty() {
            return;
        }
        state.node_of.insert(info.uid().to_owned(), node.to_owned());
        Arc::make_mut(&mut state.by_node).entry(node.to_owned()).or_default().push(Arc::clone(info));
    }

    /// Takes over a newer version of a pod. Where neither version names a node but a nomination is in memory, it stays.
    pub fn refresh(&self, old: Option<&PodInfo>, new: &Arc<PodInfo>) {
        let named = |info: &PodInfo| info.pod.status.nominated_node_name.clone();
        let before = old.map(named).unwrap_or_default();
        let mut node = named(new);
        if before.is_empty() && node.is_empty() {
            node = self.0.lock().node_of.get(new.uid()).cloned().unwrap_or_default();
        }
        self.set(new, &node);
    }

    /// Forgets a pod.
    pub fn remove(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// The nominations now. Cheap: they are copied only when they change while somebody looks.
    #[must_use]
    pub fn pods(&self) -> Arc<NominatedPods> {
        Arc::clone(&self.0.lock().by_node)
    }

    /// The node that a pod is nominated to.
    #[must_use]
    pub fn node_of(&self, uid: &str) -> Option<String> {
        self.0.lock().node_of.get(uid).cloned()
    }
}

impl State {
    fn remove(&mut self, uid: &str) {
        let Some(node) = self.node_of.remove(uid) else { return };
        let by_node = Arc::make_mut(&mut self.by_node);
        let Some(pods) = by_node.get_mut(&node) else { return };
        pods.retain(|pod| pod.uid() != uid);
        if pods.is_empty() {
            by_node.remove(&node);
        }
    }
}
