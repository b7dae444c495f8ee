//! Memory near to the processors for containers of guaranteed pods: the memory manager.
//!
//! Upstream: the memory manager's static policy, KEP-1769.

mod divide;
mod reserved;
mod state;
mod tables;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod, ResourceList};
use component_helpers::{pod_requests, qos};
use parking_lot::Mutex;
use sys::cpu_set::CpuSet;

use crate::state_file::{StateError, StateFile};
use crate::topology::{Answer, EmptyPool, Hint, NodeSet, OfPod, ResourceCounts, Share, Source, places, pod_pool};

use divide::Divided;
pub use reserved::{NodeReservation, Reserved, ReservedError};
pub(crate) use state::OWNER;
pub use tables::{Amounts, Block, Blocks};
use tables::{MEMORY, Machine, give, reusable};

/// Why a container does not get its memory, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    #[error("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")]
    NoRoom,
    #[error("[memorymanager] failed to find the default preferred hint")]
    DefaultNotPreferred,
    #[error("[memorymanager] failed to find NUMA nodes to extend the current topology hint")]
    NotExtensible,
    #[error("[memorymanager] failed to find the extended preferred hint")]
    ExtendedNotPreferred,
    #[error("[memorymanager] preferred hint violates NUMA node allocation")]
    Violates,
    #[error(transparent)]
    EmptyPool(#[from] EmptyPool),
}

/// What the memory manager is told.
#[derive(Debug, Clone, Default)]
pub struct MemorySettings {
    /// What is kept of each node's memory; none where nobody's is bound to nodes.
    pub reserved: Option<Reserved>,
    /// Gate `PodLevelResourceManagers`: pods that say what their containers may have together are bound, too.
    pub pod_level: bool,
}

/// The memory of a node.
pub struct MemoryNodes {
    /// The empty machine; none where nobody's memory is bound to nodes.
    machine: Option<Machine>,
    /// Gate `PodLevelResourceManagers`: pods that say what their containers may have together are bound, too.
    pod_level: bool,
    blocks: Mutex<Blocks>,
    file: StateFile,
    counts: Arc<dyn ResourceCounts>,
}

impl MemoryNodes {
    pub fn new(root: &Path, settings: &MemorySettings, counts: Arc<dyn ResourceCounts>) -> Self {
        let MemorySettings { reserved, pod_level } = settings;
        let policy = if reserved.is_some() { "Static" } else { "None" };
        let file = StateFile::new(root, &OWNER, policy, *pod_level);
        let machine = reserved.as_ref().map(Reserved::machine);
        Self { machine, pod_level: *pod_level, blocks: Mutex::default(), file, counts }
    }

    /// Takes over what an earlier kubelet gave away.
    pub(crate) fn restore(&self) -> Result<(), StateError> {
        match (&self.machine, self.file.load()?) {
            (Some(machine), Some(saved)) => {
                let restored = self.file.decoded(&saved, state::decode)?;
                if !state::is_alike(&state::machine(&machine.with(&restored)), &saved[state::MACHINE]) {
                    let text = "[memorymanager] the expected machine state is different from the real one";
                    return Err(self.file.error(text));
                }
                *self.blocks.lock() = restored;
            }
            // Nobody has anything, and the next kubelet is to find a file that says so.
            (None, Some(saved)) if self.file.is_intact(&saved) => {}
            (_, None) | (None, Some(_)) => self.save().map_err(|error| self.file.error(error))?,
        }
        Ok(())
    }

    /// Writes down who has what.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        let blocks = self.blocks.lock();
        self.file.save(state::encode(self.machine.as_ref(), &blocks))
    }

    /// What one pod has.
    pub(crate) fn of_pod(&self, uid: &str) -> Option<OfPod<Vec<Block>>> {
        self.blocks.lock().get(uid).cloned()
    }

    /// Gives a pod what it had.
    pub(crate) fn put_back(&self, uid: &str, had: Option<OfPod<Vec<Block>>>) {
        let mut blocks = self.blocks.lock();
        match had {
            Some(had) => drop(blocks.insert(uid.to_owned(), had)),
            None => drop(blocks.remove(uid)),
        }
    }

    /// Takes back what pods have that are not among these; whether there was something.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) -> bool {
        let mut blocks = self.blocks.lock();
        let before = blocks.len();
        blocks.retain(|uid, _| uids.contains(uid));
        blocks.len() != before
    }

    /// Where a container, or all of a pod, may have its memory.
    pub(crate) fn places(&self, pod: &Pod, container: Option<&Container>) -> Answer {
        let Some(machine) = &self.machine else { return Answer::new() };
        let blocks = self.blocks.lock();
        let wanted = match container {
            Some(container) => wanted(pod, container, self.pod_level),
            None => wanted_by_pod(pod, self.pod_level),
        };
        if container.is_none() && pod_pool::has_pod_level_resources(pod) && self.divided(pod, &wanted).is_err() {
            return wanted.into_keys().map(|kind| (kind, Some(Vec::new()))).collect();
        }
        let own = blocks.get(&pod.metadata.uid);
        let had: Vec<&Block> = match container {
            Some(container) => own.and_then(|own| own.containers.get(&container.name)).into_iter().flatten().collect(),
            None => own.into_iter().flat_map(OfPod::taken).flatten().collect(),
        };
        if let Some(first) = had.first() {
            let hint = Hint { nodes: Some(first.nodes), preferred: true };
            return wanted.into_keys().map(|kind| (kind, Some(vec![hint]))).collect();
        }
        let hints = hints(machine, pod, &wanted, &blocks);
        if hints.is_empty() {
            // Nothing is said, so that the refusal comes with its cause when the memory is to be given.
            return Answer::new();
        }
        wanted.into_keys().map(|kind| (kind, Some(hints.clone()))).collect()
    }

    /// Binds a container's memory to `nodes` if they can hold it, with more nodes if not; none is anywhere.
    pub(crate) fn allocate(&self, pod: &Pod, container: &Container, place: Hint) -> Result<(), MemoryError> {
        let Some(machine) = &self.machine else { return Ok(()) };
        let wanted = wanted(pod, container, self.pod_level);
        let mut blocks = self.blocks.lock();
        let has = blocks.get(&pod.metadata.uid).is_some_and(|own| own.containers.contains_key(&container.name));
        if wanted.is_empty() || has {
            return Ok(());
        }
        let nodes = choose(machine, pod, &wanted, place, &blocks);
        self.counts.pinned_memory(nodes.is_ok());
        self.count(nodes.is_ok(), Source::Node, [(Share::OfNode, wanted.len())]);
        let nodes = nodes?;
        let given = wanted.into_iter().map(|(kind, bytes)| Block { nodes, kind, bytes }).collect();
        give(pod, &container.name, given, &mut blocks);
        Ok(())
    }

    /// Binds the memory of a pod as a whole as above, and gives each container its part.
    pub(crate) fn allocate_pod(&self, pod: &Pod, place: Hint) -> Result<(), MemoryError> {
        let Some(machine) = &self.machine else { return Ok(()) };
        let wanted = wanted_by_pod(pod, self.pod_level);
        let mut blocks = self.blocks.lock();
        let has = blocks.get(&pod.metadata.uid).is_some_and(|own| own.whole.is_some());
        if wanted.is_empty() || has {
            return Ok(());
        }
        let divided = self.divided(pod, &wanted).map_err(MemoryError::from);
        let given = divided.and_then(|divided| Ok((choose(machine, pod, &wanted, place, &blocks)?, divided)));
        self.counts.pinned_memory(given.is_ok());
        let shares: Vec<Share> = given.iter().flat_map(|(_, divided)| divided.shares()).collect();
        for _ in shares.iter().filter(|share| **share == Share::OfPod) {
            self.counts.pinned_memory(true);
        }
        self.count(given.is_ok(), Source::Pod, shares.into_iter().map(|share| (share, 1)));
        let (nodes, divided) = given?;
        blocks.insert(pod.metadata.uid.clone(), divided.on(nodes, wanted));
        Ok(())
    }

    fn divided(&self, pod: &Pod, whole: &Amounts) -> Result<Divided, EmptyPool> {
        Divided::new(pod, whole, |container| wanted(pod, container, self.pod_level))
    }

    /// Counts what containers were given in how many blocks, or that somebody was given nothing.
    fn count(&self, given: bool, from: Source, shares: impl IntoIterator<Item = (Share, usize)>) {
        if !self.pod_level {
            return;
        }
        if !given {
            return self.counts.not_given(MEMORY, from);
        }
        for (share, blocks) in shares {
            self.counts.given(MEMORY, share, u32::try_from(blocks).unwrap_or(u32::MAX));
        }
    }

    /// The nodes that a container's memory is bound to; none where it may be anywhere.
    #[must_use]
    pub fn of_container(&self, uid: &str, container: &str) -> Option<CpuSet> {
        let blocks = self.blocks.lock();
        let own = blocks.get(uid)?.containers.get(container)?;
        Some(own.iter().flat_map(|block| block.nodes.iter()).collect())
    }

    /// The blocks of a container.
    #[must_use]
    pub fn blocks(&self, uid: &str, container: &str) -> Vec<Block> {
        self.blocks.lock().get(uid).and_then(|own| own.containers.get(container)).cloned().unwrap_or_default()
    }

    /// Whether memory may be bound at all, which is why a guaranteed pod's cannot be changed.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.machine.is_some()
    }

    /// What may be given away on each node, given away or not.
    #[must_use]
    pub fn allocatable(&self) -> Vec<Block> {
        let nodes = self.machine.iter().flat_map(|machine| &machine.0);
        let of_node = |(number, node): (&u32, &tables::Node)| {
            let nodes: NodeSet = [*number].into_iter().collect();
            let block = move |(kind, table): (&String, &tables::Table)| Block {
                nodes,
                kind: kind.clone(),
                bytes: table.allocatable,
            };
            node.tables.iter().map(block).collect::<Vec<_>>()
        };
        nodes.flat_map(of_node).collect()
    }
}

/// Which nodes a container's memory is bound to.
fn choose(
    machine: &Machine,
    pod: &Pod,
    wanted: &Amounts,
    place: Hint,
    blocks: &Blocks,
) -> Result<NodeSet, MemoryError> {
    let mut best = place;
    if place.nodes.is_none() {
        best = narrowest(hints(machine, pod, wanted, blocks)).ok_or(MemoryError::NoRoom)?;
        if !best.preferred && place.preferred {
            return Err(MemoryError::DefaultNotPreferred);
        }
    }
    let filled = machine.with(blocks);
    let mut nodes = best.nodes.unwrap_or_default();
    if !filled.can_hold(nodes, wanted, &reusable(pod, blocks)) {
        let all = hints(machine, pod, wanted, blocks).into_iter();
        let wider = all.filter(|hint| hint.nodes.is_some_and(|wider| wider.is_superset(nodes)));
        let extended = narrowest(wider.collect()).ok_or(MemoryError::NotExtensible)?;
        if !extended.preferred && best.preferred {
            return Err(MemoryError::ExtendedNotPreferred);
        }
        nodes = extended.nodes.unwrap_or_default();
    }
    if !filled.may_group(nodes) {
        return Err(MemoryError::Violates);
    }
    Ok(nodes)
}

/// Where so much memory may be.
fn hints(machine: &Machine, pod: &Pod, wanted: &Amounts, blocks: &Blocks) -> Vec<Hint> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let (filled, reusable) = (machine.with(blocks), reusable(pod, blocks));
    let (hints, _) = places(
        machine.nodes(),
        |nodes| machine.could_hold(nodes, wanted),
        |nodes| {
            filled.could_hold(nodes, wanted) && filled.may_group(nodes) && filled.can_hold(nodes, wanted, &reusable)
        },
    );
    hints
}

fn narrowest(hints: Vec<Hint>) -> Option<Hint> {
    hints.into_iter().min_by_key(|hint| (!hint.preferred, hint.nodes.map(|nodes| (nodes.len(), nodes))))
}

/// Whether a pod's memory is bound to nodes.
fn is_bound(pod: &Pod, pod_level: bool) -> bool {
    qos::class_of(pod) == pod_qos_class::GUARANTEED && (pod_level || !pod_pool::has_pod_level_resources(pod))
}

fn is_memory(kind: &str) -> bool {
    kind == MEMORY || kind.starts_with("hugepages-")
}

fn amounts(list: &ResourceList) -> Amounts {
    let memory = list.iter().filter(|(kind, _)| is_memory(kind));
    memory.map(|(kind, amount)| (kind.clone(), u64::try_from(amount.value()).unwrap_or_default())).collect()
}

/// The memory that a container is to have bound to nodes.
fn wanted(pod: &Pod, container: &Container, pod_level: bool) -> Amounts {
    if !is_bound(pod, pod_level) || pod_pool::has_pod_level_resources(pod) && !pod_pool::is_guaranteed(container) {
        return Amounts::new();
    }
    amounts(&container.resources.requests)
}

/// What a pod is to have as a whole: what it says itself, or all of its containers together.
fn wanted_by_pod(pod: &Pod, pod_level: bool) -> Amounts {
    if !is_bound(pod, pod_level) {
        return Amounts::new();
    }
    match pod.spec.resources.as_ref().filter(|_| pod_pool::has_pod_level_resources(pod)) {
        Some(own) => amounts(&own.requests).into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
        None => amounts(&pod_requests::aggregate(&pod.spec, |container| container.resources.requests.clone())),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
