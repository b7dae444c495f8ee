//! The configured pods by uid and name, and which mirror stands for which static pod.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use parking_lot::RwLock;

use super::news::Herald;
use super::{is_mirror, is_static};
use crate::runtime::text::full_name;

/// The pods that the node is asked to run. Mirrors are kept apart.
#[derive(Default)]
pub(crate) struct PodStore {
    state: RwLock<State>,
    herald: Arc<Herald>,
}

#[derive(Default)]
struct State {
    pods: HashMap<String, Arc<Pod>>,
    mirrors: HashMap<String, Arc<Pod>>,
    /// Full name to uid.
    by_name: HashMap<String, String>,
    mirror_by_name: HashMap<String, String>,
}

impl PodStore {
    /// A store without pods, of which the herald tells.
    pub(crate) fn new(herald: Arc<Herald>) -> Self {
        Self { state: RwLock::default(), herald }
    }

    pub(crate) fn put(&self, pod: &Arc<Pod>) {
        self.keep(pod);
        if !is_mirror(pod) {
            self.herald.changed(&pod.metadata.uid);
        }
    }

    fn keep(&self, pod: &Arc<Pod>) {
        let mut state = self.state.write();
        let (uid, name) = (pod.metadata.uid.clone(), full_name(pod));
        if is_mirror(pod) {
            state.mirror_by_name.insert(name, uid.clone());
            state.mirrors.insert(uid, Arc::clone(pod));
        } else {
            state.by_name.insert(name, uid.clone());
            state.pods.insert(uid, Arc::clone(pod));
        }
    }

    pub(crate) fn remove(&self, pod: &Pod) {
        self.drop(pod);
        if !is_mirror(pod) {
            self.herald.removed(pod);
        }
    }

    fn drop(&self, pod: &Pod) {
        let mut state = self.state.write();
        let (uid, name) = (&pod.metadata.uid, full_name(pod));
        let state = &mut *state;
        let (pods, names) = if is_mirror(pod) {
            (&mut state.mirrors, &mut state.mirror_by_name)
        } else {
            (&mut state.pods, &mut state.by_name)
        };
        pods.remove(uid);
        if names.get(&name) == Some(uid) {
            names.remove(&name);
        }
    }

    /// How many mirrors there are.
    pub(crate) fn mirrors(&self) -> usize {
        self.state.read().mirrors.len()
    }

    /// All pods but mirrors.
    pub(crate) fn all(&self) -> Vec<Arc<Pod>> {
        self.state.read().pods.values().cloned().collect()
    }

    pub(crate) fn get(&self, uid: &str) -> Option<Arc<Pod>> {
        self.state.read().pods.get(uid).cloned()
    }

    /// The pod of this uid, or the static pod for which the mirror of this uid stands.
    pub(crate) fn translated(&self, uid: &str) -> Option<Arc<Pod>> {
        let state = self.state.read();
        if let Some(pod) = state.pods.get(uid) {
            return Some(Arc::clone(pod));
        }
        let mirror = state.mirrors.get(uid)?;
        state.pods.get(state.by_name.get(&full_name(mirror))?).cloned()
    }

    pub(crate) fn by_full_name(&self, name: &str) -> Option<Arc<Pod>> {
        let state = self.state.read();
        state.pods.get(state.by_name.get(name)?).cloned()
    }

    pub(crate) fn mirror_of(&self, pod: &Pod) -> Option<Arc<Pod>> {
        let state = self.state.read();
        state.mirrors.get(state.mirror_by_name.get(&full_name(pod))?).cloned()
    }

    /// Mirrors for which there is no static pod.
    pub(crate) fn orphan_mirrors(&self) -> Vec<Arc<Pod>> {
        let state = self.state.read();
        let orphan = |mirror: &&Arc<Pod>| {
            let pod = state.by_name.get(&full_name(mirror)).and_then(|uid| state.pods.get(uid));
            !pod.is_some_and(|pod| is_static(pod))
        };
        state.mirrors.values().filter(orphan).cloned().collect()
    }

    /// The pod's state in the API: its own, or its mirror's.
    pub(crate) fn in_api(&self, pod: &Arc<Pod>) -> Option<Arc<Pod>> {
        if is_static(pod) { self.mirror_of(pod) } else { self.get(&pod.metadata.uid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::{CONFIG_MIRROR, CONFIG_SOURCE};

    fn pod(uid: &str, annotation: &str, value: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        (pod.metadata.uid, pod.metadata.name, pod.metadata.namespace) = (uid.into(), "web".into(), "default".into());
        pod.metadata.annotations.insert(annotation.into(), value.into());
        Arc::new(pod)
    }

    #[test]
    fn a_pod_that_goes_takes_no_name_of_another() {
        for (annotation, value) in [(CONFIG_SOURCE, "file"), (CONFIG_MIRROR, "hash")] {
            let store = PodStore::default();
            let (first, second) = (pod("1", annotation, value), pod("2", annotation, value));
            store.put(&first);
            store.put(&second);
            store.remove(&first);
            let name = full_name(&second);
            let found = store.by_full_name(&name).or_else(|| store.mirror_of(&second));
            assert_eq!(found.map(|pod| pod.metadata.uid.clone()), Some("2".to_owned()), "{annotation}");
            store.remove(&second);
            assert!(store.by_full_name(&name).or_else(|| store.mirror_of(&second)).is_none(), "{annotation}");
        }
    }
}
