//! Groups of pods that are scheduled together (KEP-4671): which pods each has, and which of these have a node, or are about to
//! get one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::scheduling_v1alpha2::PodGroup;
use component_base::Feature;
pub(crate) use component_base::shared_gates::{GENERIC_WORKLOAD, GROUP_PREEMPTION, TOPOLOGY_AWARE_GROUPS};
use parking_lot::Mutex;

/// A group may want to be scheduled all at once, or not at all.
pub(crate) const GANG_SCHEDULING: Feature = Feature::named("GangScheduling");

/// The groups of all pods that are known.
#[derive(Default)]
pub struct PodGroups(Mutex<HashMap<GroupKey, Members>>);

/// By uid.
type Members = BTreeMap<String, Member>;

/// The name of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// Of the group and its pods.
    pub namespace: String,
    /// Unique in the namespace.
    pub name: String,
}

struct Member {
    pod: Arc<Pod>,
    is_placed: bool,
}

/// How many pods a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupSize {
    /// Those that have not ended.
    pub all: usize,
    /// Those that have a node, or are about to get one.
    pub placed: usize,
}

impl GroupKey {
    /// The group of a pod; none where it is on its own.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let name = pod.spec.scheduling_group.as_ref()?.pod_group_name.clone()?;
        Some(Self { namespace: pod.metadata.namespace.clone(), name })
    }

    /// The name of a group that is there.
    #[must_use]
    pub fn named(group: &PodGroup) -> Self {
        Self { namespace: group.metadata.namespace.clone(), name: group.metadata.name.clone() }
    }
}

impl PodGroups {
    /// A pod is there, or has changed. One that is about to get a node goes on being so.
    pub(crate) fn put(&self, pod: &Arc<Pod>) {
        let Some(key) = GroupKey::of(pod) else { return };
        let mut groups = self.0.lock();
        let members = groups.entry(key).or_default();
        let was_placed = members.get(&pod.metadata.uid).is_some_and(|member| member.is_placed);
        let is_placed = was_placed || !pod.spec.node_name.is_empty();
        members.insert(pod.metadata.uid.clone(), Member { pod: Arc::clone(pod), is_placed });
    }

    /// A pod is about to get a node, or does not get it after all.
    pub(crate) fn place(&self, pod: &Pod, is_placed: bool) {
        let Some(key) = GroupKey::of(pod) else { return };
        if let Some(member) = self.0.lock().get_mut(&key).and_then(|members| members.get_mut(&pod.metadata.uid)) {
            member.is_placed = is_placed;
        }
    }

    /// A pod is gone.
    pub(crate) fn remove(&self, pod: &Pod) {
        let Some(key) = GroupKey::of(pod) else { return };
        let mut groups = self.0.lock();
        let Some(members) = groups.get_mut(&key) else { return };
        members.remove(&pod.metadata.uid);
        if members.is_empty() {
            groups.remove(&key);
        }
    }

    /// How many pods a group has.
    #[must_use]
    pub fn size(&self, key: &GroupKey) -> GroupSize {
        let groups = self.0.lock();
        let Some(members) = groups.get(key) else { return GroupSize::default() };
        GroupSize { all: members.len(), placed: members.values().filter(|member| member.is_placed).count() }
    }

    /// The pods of a group that have a node, or are about to get one.
    #[must_use]
    pub fn placed(&self, key: &GroupKey) -> Vec<Arc<Pod>> {
        self.pods(key, true)
    }

    /// The pods of a group that have no node.
    #[must_use]
    pub fn waiting(&self, key: &GroupKey) -> Vec<Arc<Pod>> {
        self.pods(key, false)
    }

    fn pods(&self, key: &GroupKey, are_placed: bool) -> Vec<Arc<Pod>> {
        let groups = self.0.lock();
        let members = groups.get(key).into_iter().flat_map(BTreeMap::values);
        members.filter(|member| member.is_placed == are_placed).map(|member| Arc::clone(&member.pod)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_objects::{PodBuilder, pod};

    #[test]
    fn who_is_about_to_get_a_node_counts_as_placed() {
        let groups = PodGroups::default();
        let key = GroupKey { namespace: "default".into(), name: "g".into() };
        let member = |name: &str| pod(name).grouped("g");
        let put = |builder: PodBuilder| groups.put(&builder.build());
        let sizes = || (groups.size(&key).all, groups.size(&key).placed);
        put(pod("alone"));
        put(member("p"));
        put(member("q").on("n"));
        assert_eq!(sizes(), (2, 1));
        groups.place(&member("p").0, true);
        put(member("p").label("a", "b"));
        assert_eq!((sizes(), groups.waiting(&key).len()), ((2, 2), 0));
        groups.place(&member("p").0, false);
        assert_eq!(groups.waiting(&key)[0].metadata.name, "p");
        groups.remove(&member("p").0);
        groups.remove(&member("q").0);
        assert_eq!(sizes(), (0, 0));
        assert!(groups.0.lock().is_empty());
    }
}
