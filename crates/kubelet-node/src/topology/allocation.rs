//! Giving a pod its devices, processors and memory: all of it, or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::core_v1::{Container, Pod};
use base::SharedClock;
use sys::cpu_set::CpuSet;
use sys::topology::Topology;

use super::hint::{Distances, lists};
use super::{Hint, NodeSet, OfPod, Policy, ResourceCounts, Scope, TopologySettings, pod_pool};
use crate::cpus::{CpuError, Cpus, StateError};
use crate::devices::{AllocateError, DeviceAssignments, Devices};
use crate::memory::{Block, MemoryError, MemoryNodes};

/// Why a pod does not get its resources.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// The policy does not admit where they would be.
    #[error("Resources cannot be allocated with Topology locality")]
    Affinity,
    /// The same, of a pod that says what its containers may have together.
    #[error("Pod Scope pod with pod-level resources failed admission {}", managed(*.0))]
    PodAffinity(Scope),
    #[error(transparent)]
    Devices(#[from] AllocateError),
    #[error(transparent)]
    Cpus(#[from] CpuError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// What is given cannot be written down.
    #[error("could not save checkpoint: {0}")]
    Save(#[from] std::io::Error),
}

/// What one pod has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Held {
    devices: DeviceAssignments,
    cpus: Option<OfPod<CpuSet>>,
    memory: Option<OfPod<Vec<Block>>>,
}

/// Which manager did not admit, as upstream says it.
fn managed(scope: Scope) -> &'static str {
    match scope {
        Scope::Container => "with a container-level topology manager",
        Scope::Pod => "under pod-scope topology manager",
    }
}

/// What the manager is made of.
pub struct TopologyParts {
    pub settings: TopologySettings,
    /// The machine; only its nodes of memory count here.
    pub topology: Topology,
    pub devices: Arc<Devices>,
    pub cpus: Cpus,
    pub memory: MemoryNodes,
    /// Gate `PodLevelResourceManagers`.
    pub pod_level: bool,
    pub counts: Arc<dyn ResourceCounts>,
    pub clock: SharedClock,
}

/// Who has a pod's devices, processors and memory given.
pub struct TopologyManager {
    settings: TopologySettings,
    nodes: NodeSet,
    distances: Distances,
    /// What plugins offer.
    pub devices: Arc<Devices>,
    /// Who has processors for itself.
    pub cpus: Cpus,
    /// Whose memory is bound to nodes.
    pub memory: MemoryNodes,
    pod_level: bool,
    counts: Arc<dyn ResourceCounts>,
    clock: SharedClock,
    /// One pod is given at a time.
    turn: tokio::sync::Mutex<()>,
}

impl TopologyManager {
    pub fn new(parts: TopologyParts) -> Arc<Self> {
        let TopologyParts { settings, topology, devices, cpus, memory, pod_level, counts, clock } = parts;
        Arc::new(Self {
            settings,
            nodes: topology.nodes.keys().copied().collect(),
            distances: topology.nodes.into_iter().map(|(number, node)| (number, node.distances)).collect(),
            devices,
            cpus,
            memory,
            pod_level,
            counts,
            clock,
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Takes over what an earlier kubelet gave away.
    ///
    /// # Errors
    /// That is not known, or cannot be on this machine.
    pub fn restore(&self) -> Result<(), StateError> {
        self.devices.restore();
        self.cpus.restore()?;
        self.memory.restore()
    }

    /// Gives the containers of a pod what they ask for: all or none. Returns what the pod had before, where it was given
    /// anything that it had not.
    ///
    /// # Errors
    /// Why some container does not get what it asks for; the pod has what it had before.
    pub async fn allocate(&self, pod: &Pod) -> Result<Option<Held>, AdmitError> {
        let _turn = self.turn.lock().await;
        let (uid, began) = (&pod.metadata.uid, self.clock.monotonic());
        let before = self.held(uid);
        let mut given = self.give(pod).await;
        let changed = self.held(uid) != before;
        if changed && given.is_ok() {
            given = self.save();
        }
        self.counts.admitted(given.is_ok(), self.clock.monotonic().duration_since(began));
        match given {
            Ok(()) => Ok(changed.then_some(before)),
            Err(error) => {
                self.put_back(uid, before);
                Err(error)
            }
        }
    }

    /// Lets a running pod have other amounts. What a container has for itself stays what it is, devices among it; one that
    /// asks for whole processors now and had none is given some. Returns what the pod had before, where that changed.
    ///
    /// This waits for nobody's turn: processors and memory are chosen under the lock of who has what.
    ///
    /// # Errors
    /// The policy does not admit what it would have; the pod has what it had before.
    pub fn resize(&self, pod: &Pod) -> Result<Option<Held>, AdmitError> {
        let (uid, before) = (&pod.metadata.uid, self.held(&pod.metadata.uid));
        let mut given = self.give_again(pod);
        let changed = self.held(uid) != before;
        if changed && given.is_ok() {
            given = self.save();
        }
        match given {
            Ok(()) => Ok(changed.then_some(before)),
            Err(error) => {
                self.put_back(uid, before);
                Err(error)
            }
        }
    }

    fn give_again(&self, pod: &Pod) -> Result<(), AdmitError> {
        let of_pod = (self.settings.scope == Scope::Pod).then(|| self.place(pod, None)).transpose()?;
        if let Some(place) = of_pod.filter(|_| self.divides(pod)) {
            return self.give_pod(pod, place);
        }
        for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
            let place = of_pod.map_or_else(|| self.place(pod, Some(container)), Ok)?;
            self.cpus.allocate(pod, container, place.nodes)?;
            self.memory.allocate(pod, container, place)?;
        }
        Ok(())
    }

    async fn give(&self, pod: &Pod) -> Result<(), AdmitError> {
        let containers = || pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let scope = self.settings.scope;
        let of_pod = (scope == Scope::Pod).then(|| self.place(pod, None)).transpose()?;
        let divides = self.divides(pod);
        for container in containers() {
            let place = of_pod.map_or_else(|| self.place(pod, Some(container)), Ok)?;
            self.devices.allocate(pod, container, place.nodes).await?;
            if divides {
                continue;
            }
            self.cpus.allocate(pod, container, place.nodes)?;
            self.memory.allocate(pod, container, place)?;
            if self.is_guaranteed() && scope == Scope::Container {
                self.counts.aligned(scope, "numa_node", true);
            }
        }
        if let Some(place) = of_pod.filter(|_| divides) {
            self.give_pod(pod, place)?;
        }
        if self.is_guaranteed() && scope == Scope::Pod {
            self.counts.aligned(scope, "numa_node", true);
        }
        Ok(())
    }

    /// Whether a pod is given processors and memory as a whole, which its containers then have parts of.
    fn divides(&self, pod: &Pod) -> bool {
        let TopologySettings { policy, scope, .. } = self.settings;
        self.pod_level && scope == Scope::Pod && policy != Policy::None && pod_pool::has_pod_level_resources(pod)
    }

    fn give_pod(&self, pod: &Pod, place: Hint) -> Result<(), AdmitError> {
        self.cpus.allocate_pod(pod, place.nodes)?;
        Ok(self.memory.allocate_pod(pod, place)?)
    }

    /// Where a container, or all of a pod, is to have what it asks for.
    fn place(&self, pod: &Pod, container: Option<&Container>) -> Result<Hint, AdmitError> {
        if self.settings.policy == Policy::None {
            return Ok(Hint::ANYWHERE);
        }
        let answers = [
            self.devices.places(pod, container, self.nodes),
            self.cpus.places(pod, container),
            self.memory.places(pod, container),
        ];
        let place = self.settings.decide(self.nodes, lists(answers), &self.distances);
        place.ok_or_else(|| {
            if self.is_guaranteed() {
                self.counts.aligned(self.settings.scope, "numa_node", false);
            }
            if self.pod_level && pod_pool::has_pod_level_resources(pod) {
                return AdmitError::PodAffinity(self.settings.scope);
            }
            AdmitError::Affinity
        })
    }

    /// Whether what is admitted is within one node of memory.
    fn is_guaranteed(&self) -> bool {
        self.settings.policy == Policy::SingleNumaNode
    }

    fn held(&self, uid: &str) -> Held {
        Held { devices: self.devices.of_pod(uid), cpus: self.cpus.of_pod(uid), memory: self.memory.of_pod(uid) }
    }

    /// Gives a pod what it had.
    pub fn put_back(&self, uid: &str, had: Held) {
        self.devices.put_back(uid, had.devices);
        self.cpus.put_back(uid, had.cpus);
        self.memory.put_back(uid, had.memory);
        self.note();
    }

    /// Takes back what pods have that are not among these.
    pub fn keep(&self, uids: &BTreeSet<String>) {
        let changed = [self.devices.keep(uids), self.cpus.keep(uids), self.memory.keep(uids)];
        if changed.contains(&true) {
            self.note();
        }
    }

    fn save(&self) -> Result<(), AdmitError> {
        self.devices.save()?;
        self.cpus.save()?;
        self.memory.save()?;
        Ok(())
    }

    /// Writes down what is given back; a file that says more than is so is corrected by the next one that is written.
    fn note(&self) {
        if let Err(error) = self.save() {
            tracing::error!(%error, "Saving who has which resources failed");
        }
    }
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
