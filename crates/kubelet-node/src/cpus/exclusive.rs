//! The static policy: guaranteed containers that ask for whole processors have them for themselves. Pure.
//!
//! Upstream: the CPU manager's static policy, KEP-3570.

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod, ResourceList};
use component_helpers::{pod_requests, qos};
use sys::cpu_set::CpuSet;

use super::machine::{Processors, Unit};
use super::options::CpuOptions;
use super::pick::{Manner, TooFew, pick};
use crate::topology::{Answer, EmptyPool, NodeSet, OfPod, is_ending, places, pod_pool};

/// Which container of which pod has which processors, by uid and name.
pub type Assignments = BTreeMap<String, OfPod<CpuSet>>;

pub(super) const CPU: &str = "cpu";

/// Why a container does not get processors of its own, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// Whole cores only, and that is not what it asks for.
    #[error("SMT Alignment Error: requested {requested} cpus not multiple cpus per core = {per_core}")]
    PartOfCore { requested: usize, per_core: usize },
    /// Whole cores only, and too few are free.
    #[error(
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = {available}, requested CPUs = \
         {requested}, CPUs per core = {per_core}"
    )]
    TooFewCores { available: usize, requested: usize, per_core: usize },
    #[error(transparent)]
    EmptyPool(#[from] EmptyPool),
}

impl CpuError {
    /// Whether it is only about whole cores.
    #[must_use]
    pub fn is_alignment(&self) -> bool {
        matches!(self, Self::PartOfCore { .. } | Self::TooFewCores { .. })
    }
}

/// Why the static policy cannot be had on this machine, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StaticError {
    #[error("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")]
    NothingReserved,
    #[error("[cpumanager] unable to reserve the required amount of CPUs (size of {set} did not equal {count})")]
    Reserved { set: String, count: usize },
    #[error("[cpumanager] unable to reserve the required amount of CPUs: {0}")]
    TooFew(#[from] TooFew),
}

/// The policy on one machine.
#[derive(Debug, Clone)]
pub(super) struct Static {
    pub(super) machine: Processors,
    pub(super) options: CpuOptions,
    /// Never given away.
    pub(super) reserved: CpuSet,
    /// Gate `PodLevelResourceManagers`: pods that say what their containers may have together have processors, too.
    pub(super) pod_level: bool,
}

impl Static {
    /// Keeps `reserved_milli` thousandths of processors for the system, rounded up: those listed, or some.
    pub(super) fn new(
        machine: Processors,
        options: CpuOptions,
        reserved_milli: i64,
        listed: Option<CpuSet>,
    ) -> Result<Self, StaticError> {
        let count = usize::try_from(reserved_milli).unwrap_or_default().div_ceil(1000);
        if count == 0 {
            return Err(StaticError::NothingReserved);
        }
        let mut own = Self { machine, options, reserved: CpuSet::default(), pod_level: false };
        own.reserved = match listed {
            Some(listed) => listed,
            None => pick(&own.machine, &own.machine.all(), count, own.manner())?,
        };
        if own.reserved.len() != count {
            return Err(StaticError::Reserved { set: own.reserved.to_string(), count });
        }
        Ok(own)
    }

    fn manner(&self) -> Manner {
        let group = if self.options.full_cores { self.machine.per_core() } else { 1 };
        Manner {
            over_nodes: self.options.over_nodes.then_some(group),
            over_cores: self.options.over_cores,
            by_cache: self.options.by_cache,
        }
    }

    /// What all containers without processors of their own share.
    pub(super) fn shared(&self, assigned: &Assignments) -> CpuSet {
        let all = self.machine.all();
        let all = if self.options.strict { all.minus(&self.reserved) } else { all };
        all.minus(&exclusive(assigned))
    }

    /// What may be given away.
    fn free(&self, assigned: &Assignments) -> CpuSet {
        self.shared(assigned).minus(&self.reserved)
    }

    /// The same, without cores of which a part is taken.
    fn free_cores(&self, assigned: &Assignments) -> CpuSet {
        self.machine.whole_cores(&self.free(assigned))
    }

    /// Where a container may have its processors.
    pub(super) fn places_of_container(&self, pod: &Pod, container: &Container, assigned: &Assignments) -> Answer {
        let had = assigned.get(&pod.metadata.uid).and_then(|own| own.containers.get(&container.name));
        self.places(pod, self.wanted(pod, container), had.cloned(), assigned)
    }

    /// Where all containers of a pod together may have them.
    pub(super) fn places_of_pod(&self, pod: &Pod, assigned: &Assignments) -> Answer {
        if pod_pool::has_pod_level_resources(pod) && self.check_pool(pod).is_err() {
            return [(CPU.to_owned(), Some(Vec::new()))].into();
        }
        let had = assigned.get(&pod.metadata.uid).filter(|own| own.taken().next().is_some());
        let had = had.map(|own| own.taken().fold(CpuSet::default(), |all, cpus| all.union(cpus)));
        self.places(pod, self.wanted_by_pod(pod), had, assigned)
    }

    /// How many processors a container is to have for itself.
    pub(super) fn wanted(&self, pod: &Pod, container: &Container) -> usize {
        if !self.may_have(pod) || pod_pool::has_pod_level_resources(pod) && !pod_pool::is_guaranteed(container) {
            return 0;
        }
        whole(&container.resources.requests)
    }

    /// How many a pod is to have as a whole: what it says itself, or all of its containers together.
    pub(super) fn wanted_by_pod(&self, pod: &Pod) -> usize {
        if let Some(own) = pod.spec.resources.as_ref().filter(|_| pod_pool::has_pod_level_resources(pod)) {
            return if self.may_have(pod) { whole(&own.requests) } else { 0 };
        }
        let of = |container: &Container| -> ResourceList {
            let count = i64::try_from(self.wanted(pod, container)).unwrap_or(i64::MAX);
            [(CPU.to_owned(), Quantity::from_value(count, api_machinery::quantity::Format::DecimalSi))].into()
        };
        whole(&pod_requests::aggregate(&pod.spec, of))
    }

    /// Whether anybody in the pod may have processors.
    fn may_have(&self, pod: &Pod) -> bool {
        qos::class_of(pod) == pod_qos_class::GUARANTEED && (self.pod_level || !pod_pool::has_pod_level_resources(pod))
    }

    fn places(&self, pod: &Pod, wanted: usize, had: Option<CpuSet>, assigned: &Assignments) -> Answer {
        if wanted == 0 {
            return Answer::new();
        }
        let (free, reused) = match had {
            Some(had) if had.len() != wanted => return [(CPU.to_owned(), Some(Vec::new()))].into(),
            Some(had) => (had, CpuSet::default()),
            None => (self.free(assigned), reusable(pod, assigned)),
        };
        let machine = &self.machine;
        let count = |nodes: NodeSet, cpus: &CpuSet| machine.within(nodes, cpus).len();
        let all = machine.all();
        let (mut hints, least) = places(
            machine.nodes(),
            |nodes| count(nodes, &all) >= wanted,
            |nodes| count(nodes, &reused) == reused.len() && reused.len() + count(nodes, &free) >= wanted,
        );
        if self.options.by_socket {
            for hint in &mut hints {
                hint.preferred |= hint.nodes.is_some_and(|nodes| self.is_within_sockets(nodes, least));
            }
        }
        [(CPU.to_owned(), Some(hints))].into()
    }

    /// Whether nodes are in no more sockets than so many nodes need.
    fn is_within_sockets(&self, nodes: NodeSet, least: usize) -> bool {
        let (of_machine, sockets) = (self.machine.nodes().len(), self.machine.number_of(Unit::Socket));
        let per_socket = of_machine.checked_div(sockets).unwrap_or_default();
        per_socket > 0 && self.machine.sockets_of(nodes).len() == least.div_ceil(per_socket)
    }

    /// The processors that a container is to have for itself; none where it shares. It may be given those of init
    /// containers that have ended by then, and is given those near to `nodes` first.
    pub(super) fn choose(
        &self,
        pod: &Pod,
        container: &Container,
        nodes: Option<NodeSet>,
        assigned: &Assignments,
    ) -> Result<Option<CpuSet>, CpuError> {
        let wanted = self.wanted(pod, container);
        if wanted == 0 {
            return Ok(None);
        }
        if let Some(had) = assigned.get(&pod.metadata.uid).and_then(|own| own.containers.get(&container.name)) {
            return Ok(Some(had.clone()));
        }
        self.take(wanted, nodes, &reusable(pod, assigned), assigned).map(Some)
    }

    /// So many processors that are free or may be used again, near to `nodes` first.
    pub(super) fn take(
        &self,
        wanted: usize,
        nodes: Option<NodeSet>,
        reused: &CpuSet,
        assigned: &Assignments,
    ) -> Result<CpuSet, CpuError> {
        if self.options.full_cores {
            self.check_cores(wanted, reused, assigned)?;
        }
        let free = if self.options.full_cores { self.free_cores(assigned) } else { self.free(assigned) };
        let free = free.union(reused);
        let near = nodes.map_or_else(CpuSet::default, |nodes| self.near(nodes, &free));
        let mut taken = pick(&self.machine, &near, wanted.min(near.len()), self.manner())?;
        let rest = pick(&self.machine, &free.minus(&taken), wanted - taken.len(), self.manner())?;
        taken.extend(rest.iter());
        Ok(taken)
    }

    /// So many of these processors.
    pub(super) fn of(&self, cpus: &CpuSet, wanted: usize) -> Result<CpuSet, TooFew> {
        pick(&self.machine, cpus, wanted, self.manner())
    }

    fn check_cores(&self, requested: usize, reused: &CpuSet, assigned: &Assignments) -> Result<(), CpuError> {
        let per_core = self.machine.per_core();
        if !requested.is_multiple_of(per_core) {
            return Err(CpuError::PartOfCore { requested, per_core });
        }
        let available = self.free_cores(assigned).len();
        if requested > available + reused.len() {
            return Err(CpuError::TooFewCores { available, requested, per_core });
        }
        Ok(())
    }

    /// Those of these processors that are near to some nodes, or in their sockets where that is near enough.
    fn near(&self, nodes: NodeSet, cpus: &CpuSet) -> CpuSet {
        if !self.options.by_socket {
            return self.machine.within(nodes, cpus);
        }
        let sockets = self.machine.sockets_of(nodes);
        cpus.iter().filter(|cpu| sockets.contains(&self.machine.unit_of(*cpu, Unit::Socket))).collect()
    }

    /// Whether processors are in one cache.
    pub(super) fn shares_cache(&self, cpus: &CpuSet) -> bool {
        self.machine.units(Unit::Cache, cpus).len() == 1
    }
}

/// All that somebody has for itself.
pub(super) fn exclusive(assigned: &Assignments) -> CpuSet {
    assigned.values().flat_map(OfPod::taken).flat_map(CpuSet::iter).collect()
}

/// What a pod's init containers had and nobody else of the pod has.
fn reusable(pod: &Pod, assigned: &Assignments) -> CpuSet {
    let (mut ended, mut kept) = (CpuSet::default(), CpuSet::default());
    for (name, cpus) in assigned.get(&pod.metadata.uid).into_iter().flat_map(|own| &own.containers) {
        if is_ending(pod, name) { &mut ended } else { &mut kept }.extend(cpus.iter());
    }
    ended.minus(&kept)
}

/// How many processors are asked for, where that is a whole number.
fn whole(requests: &ResourceList) -> usize {
    let milli = pod_requests::amount(requests, CPU).milli_value();
    if milli % 1000 != 0 { 0 } else { usize::try_from(milli / 1000).unwrap_or_default() }
}

#[cfg(test)]
#[path = "exclusive_tests.rs"]
mod tests;
