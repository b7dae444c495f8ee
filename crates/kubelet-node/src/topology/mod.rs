//! Resources of one container close to each other: the topology manager, which has devices, processors and memory given.
//!
//! Upstream: the topology manager and its hint providers, KEP-693, KEP-2402.

mod allocation;
mod hint;
mod node_set;
pub(crate) mod pod_pool;
mod policy;

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::core_v1::Pod;
use component_helpers::pod_state::is_sidecar;

pub use allocation::{AdmitError, Held, TopologyManager, TopologyParts};
pub(crate) use hint::places;
pub use hint::{Answer, Distances, Hint};
pub use node_set::{MAX_NODE, NodeSet};
pub use pod_pool::{EmptyPool, OfPod, has_pod_level_resources};
pub use policy::{Policy, Scope, TopologyError, TopologySettings};

/// Who counts what is done with processors, memory and their topology.
pub trait ResourceCounts: Send + Sync + 'static {
    /// A pod was asked for, and admitted or not, after this time.
    fn admitted(&self, admitted: bool, took: Duration);

    /// A container was to have processors for itself, and got them or not.
    fn pinned_cpus(&self, given: bool);

    /// A container's memory was to be bound to nodes, and could be or not.
    fn pinned_memory(&self, given: bool);

    /// What a container or pod has lies within one `boundary`, or does not.
    fn aligned(&self, scope: Scope, boundary: &'static str, aligned: bool);

    /// A manager of a resource gave a container something, in so many pieces (gate `PodLevelResourceManagers`).
    fn given(&self, resource: &'static str, share: Share, pieces: u32);

    /// A manager of a resource had nothing for a container or a pod (gate `PodLevelResourceManagers`).
    fn not_given(&self, resource: &'static str, from: Source);

    /// So many processors are shared by all, so many are somebody's own, and that many of each node of memory are.
    fn processors(&self, shared: usize, exclusive: usize, by_node: &BTreeMap<u32, usize>);
}

/// Of what a container is given something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Of what the node has.
    Node,
    /// Of what its pod has as a whole.
    Pod,
}

impl Source {
    /// As metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Pod => "pod",
        }
    }
}

/// How a container has what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// For itself, of what the node has.
    OfNode,
    /// For itself, of what its pod has.
    OfPod,
    /// With others of its pod.
    WithinPod,
}

impl Share {
    /// As metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OfNode => "node_exclusive",
            Self::OfPod => "pod_exclusive",
            Self::WithinPod => "pod_shared",
        }
    }

    #[must_use]
    pub fn source(self) -> Source {
        match self {
            Self::OfNode => Source::Node,
            Self::OfPod | Self::WithinPod => Source::Pod,
        }
    }
}

/// Whether a container is an init container that ends before the next one starts, so that what it has may be used again.
pub(crate) fn is_ending(pod: &Pod, container: &str) -> bool {
    pod.spec.init_containers.iter().any(|init| init.name == container && !is_sidecar(init))
}

#[cfg(test)]
pub(crate) mod fixtures {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::Container;
    use parking_lot::Mutex;

    use super::*;

    /// What was counted, as text.
    #[derive(Default)]
    pub(crate) struct Counted(pub(crate) Mutex<Vec<String>>);

    impl Counted {
        fn note(&self, text: String) {
            self.0.lock().push(text);
        }
    }

    impl ResourceCounts for Counted {
        fn admitted(&self, admitted: bool, _: Duration) {
            self.note(format!("admitted {admitted}"));
        }

        fn pinned_cpus(&self, given: bool) {
            self.note(format!("cpus {given}"));
        }

        fn pinned_memory(&self, given: bool) {
            self.note(format!("memory {given}"));
        }

        fn aligned(&self, scope: Scope, boundary: &'static str, aligned: bool) {
            self.note(format!("{} {boundary} {aligned}", scope.name()));
        }

        fn given(&self, resource: &'static str, share: Share, pieces: u32) {
            self.note(format!("{resource} {} {pieces}", share.name()));
        }

        fn not_given(&self, resource: &'static str, from: Source) {
            self.note(format!("no {resource} of the {}", from.name()));
        }

        fn processors(&self, shared: usize, exclusive: usize, by_node: &BTreeMap<u32, usize>) {
            self.note(format!("{shared} shared, {exclusive} exclusive, {:?}", by_node.values().collect::<Vec<_>>()));
        }
    }

    /// The same pod, which says what its containers may have together: processors, memory.
    pub(crate) fn with_pool(mut pod: Pod, cpu: &str, memory: &str) -> Pod {
        let mut whole = guaranteed("", &[("", cpu, memory)]).spec.containers.remove(0).resources;
        whole.claims.clear();
        pod.spec.resources = Some(whole);
        pod
    }

    /// A pod whose containers may use just what they ask for: name, processors, memory.
    pub(crate) fn guaranteed(uid: &str, containers: &[(&str, &str, &str)]) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.uid = uid.into();
        for (name, cpu, memory) in containers {
            let mut container = Container { name: (*name).into(), ..Container::default() };
            let list = [("cpu", cpu), ("memory", memory)];
            container.resources.requests =
                list.iter().map(|(kind, text)| ((*kind).into(), Quantity::parse(text).unwrap())).collect();
            container.resources.limits = container.resources.requests.clone();
            pod.spec.containers.push(container);
        }
        pod
    }
}
