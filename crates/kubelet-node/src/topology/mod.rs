//! Resources of one container close to each other: the topology manager, which has devices, processors and memory given.
//!
//! Upstream: the topology manager and its hint providers, KEP-693, KEP-2402.

mod allocation;
mod hint;
mod node_set;
mod policy;

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::core_v1::Pod;
use component_helpers::pod_state::is_sidecar;

pub use allocation::{AdmitError, Held, TopologyManager, TopologyParts};
pub(crate) use hint::places;
pub use hint::{Answer, Distances, Hint};
pub use node_set::{MAX_NODE, NodeSet};
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

    /// So many processors are shared by all, so many are somebody's own, and that many of each node of memory are.
    fn processors(&self, shared: usize, exclusive: usize, by_node: &BTreeMap<u32, usize>);
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

        fn processors(&self, shared: usize, exclusive: usize, by_node: &BTreeMap<u32, usize>) {
            self.note(format!("{shared} shared, {exclusive} exclusive, {:?}", by_node.values().collect::<Vec<_>>()));
        }
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
