//! Amounts of resources as the scheduler counts them: whole numbers in fixed columns, the rest by name.

use std::sync::Arc;

use api_types::core_v1::ResourceList;

/// What a container without a CPU request counts for when nodes are scored, in milli-CPUs.
pub(crate) const DEFAULT_MILLI_CPU: i64 = 100;
/// What a container without a memory request counts for when nodes are scored, in bytes.
pub(crate) const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// Thousandths of a CPU.
    pub milli_cpu: i64,
    /// Bytes of memory.
    pub memory: i64,
    /// Bytes of local storage.
    pub ephemeral_storage: i64,
    /// Number of pods; only nodes have one.
    pub pods: i64,
    /// Other resources, sorted by name.
    pub scalars: Vec<(Arc<str>, i64)>,
}

/// No amount counts for more, whoever states it, so that the sum over all pods of a node is never too large for its type.
/// In bytes it is 4 PiB.
const MOST: i64 = 1 << 52;

fn counted(amount: i64) -> i64 {
    amount.clamp(-MOST, MOST)
}

impl Resources {
    /// The amounts of a list. Names that are neither native, prefixed, nor huge pages or volumes are dropped.
    #[must_use]
    pub fn of(list: &ResourceList) -> Self {
        let mut resources = Self::default();
        for (name, amount) in list {
            match name.as_str() {
                "cpu" => resources.milli_cpu = counted(amount.milli_value()),
                "memory" => resources.memory = counted(amount.value()),
                "ephemeral-storage" => resources.ephemeral_storage = counted(amount.value()),
                "pods" => resources.pods = counted(amount.value()),
                name if is_scalar(name) => resources.scalars.push((name.into(), counted(amount.value()))),
                _ => {}
            }
        }
        resources
    }

    /// The amount of a resource by name.
    #[must_use]
    pub fn named(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            "pods" => self.pods,
            name => self.scalar(name),
        }
    }

    /// The amount of a resource without a column of its own.
    #[must_use]
    pub fn scalar(&self, name: &str) -> i64 {
        self.scalars.iter().find(|(other, _)| **other == *name).map_or(0, |(_, amount)| *amount)
    }

    /// Adds what a pod asks for.
    pub fn add(&mut self, other: &Self) {
        self.apply(other, 1);
    }

    /// Takes away what was added.
    pub fn sub(&mut self, other: &Self) {
        self.apply(other, -1);
    }

    fn apply(&mut self, other: &Self, sign: i64) {
        for (own, amount) in [
            (&mut self.milli_cpu, other.milli_cpu),
            (&mut self.memory, other.memory),
            (&mut self.ephemeral_storage, other.ephemeral_storage),
        ] {
            *own = own.saturating_add(sign * amount);
        }
        for (name, amount) in &other.scalars {
            match self.scalars.binary_search_by(|(own, _)| own.cmp(name)) {
                Ok(place) => {
                    if let Some((_, own)) = self.scalars.get_mut(place) {
                        *own = own.saturating_add(sign * amount);
                    }
                }
                Err(place) => self.scalars.insert(place, (Arc::clone(name), sign * amount)),
            }
        }
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn asks_nothing(&self) -> bool {
        self.milli_cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.scalars.is_empty()
    }
}

/// CPU and memory with a default for containers that ask for none; what scores are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NonZero {
    /// Thousandths of a CPU.
    pub milli_cpu: i64,
    /// Bytes.
    pub memory: i64,
}

impl NonZero {
    /// The amounts of a list, which has the defaults in it.
    #[must_use]
    pub fn of(list: &ResourceList) -> Self {
        Self {
            milli_cpu: list.get("cpu").map_or(0, |amount| counted(amount.milli_value())),
            memory: list.get("memory").map_or(0, |amount| counted(amount.value())),
        }
    }

    /// Adds `sign` times what another has.
    pub(crate) fn add(&mut self, other: Self, sign: i64) {
        self.milli_cpu = self.milli_cpu.saturating_add(sign * other.milli_cpu);
        self.memory = self.memory.saturating_add(sign * other.memory);
    }
}

/// Whether a resource has no column of its own but counts.
#[must_use]
pub(crate) fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// Whether a resource is neither native nor huge pages.
#[must_use]
pub(crate) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

#[cfg(test)]
mod tests {
    use crate::node_info::NodeInfo;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{node, pod};

    #[test]
    fn what_others_state_never_makes_a_node_look_empty() {
        let classes = ClassTable::default();
        let large =
            |name: &str| pod(name).request("cpu", "9E").request("memory", "9E").request("a/b", "9E").info(&classes);
        let mut info = NodeInfo::of(node("n").capacity("memory", "-9E").capacity("a/b", "9E").build());
        let pods = [large("p"), large("q"), large("r")];
        for pod in &pods {
            info.add_pod(std::sync::Arc::clone(pod));
        }
        assert!(
            info.requested.memory > info.allocatable.memory && info.requested.milli_cpu > 0,
            "{:?}",
            info.requested
        );
        assert!(info.requested.scalar("a/b") > info.allocatable.scalar("a/b"));
        assert!(!crate::cache::Snapshot::of(vec![std::sync::Arc::new(info.clone())]).has_room(0, &pods[0].request));
        for pod in &pods {
            assert!(info.remove_pod(pod.uid()));
        }
        assert_eq!((info.requested.memory, info.requested.scalar("a/b"), info.non_zero.memory), (0, 0, 0));
    }
}
