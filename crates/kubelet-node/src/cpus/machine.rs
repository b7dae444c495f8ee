//! The machine's processors by what they share. Pure.

use std::collections::{BTreeMap, BTreeSet};

use sys::cpu_set::CpuSet;
use sys::topology::{Processor, Topology};

use crate::topology::NodeSet;

/// What processors share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Node,
    Socket,
    Cache,
    Core,
}

/// The processors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processors(BTreeMap<u32, Processor>);

impl Processors {
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        Self(topology.processors.clone())
    }

    /// All of them.
    pub(super) fn all(&self) -> CpuSet {
        self.0.keys().copied().collect()
    }

    /// The unit that a processor is in; a processor that there is not is in the first one.
    pub(super) fn unit_of(&self, cpu: u32, unit: Unit) -> u32 {
        self.0.get(&cpu).map_or(0, |place| match unit {
            Unit::Node => place.node,
            Unit::Socket => place.socket,
            Unit::Cache => place.cache,
            Unit::Core => place.core,
        })
    }

    /// The processors of a unit.
    pub(super) fn of(&self, unit: Unit, number: u32) -> CpuSet {
        self.0.keys().copied().filter(|cpu| self.unit_of(*cpu, unit) == number).collect()
    }

    /// The units that some processors are in.
    pub(super) fn units(&self, unit: Unit, cpus: &CpuSet) -> BTreeSet<u32> {
        cpus.iter().map(|cpu| self.unit_of(cpu, unit)).collect()
    }

    /// How many of these processors each unit has.
    pub(super) fn counts(&self, unit: Unit, cpus: &CpuSet) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        for cpu in cpus.iter() {
            *counts.entry(self.unit_of(cpu, unit)).or_default() += 1;
        }
        counts
    }

    /// How many units there are.
    pub(super) fn number_of(&self, unit: Unit) -> usize {
        self.units(unit, &self.all()).len()
    }

    /// Threads of a core.
    pub(super) fn per_core(&self) -> usize {
        self.0.len().checked_div(self.number_of(Unit::Core)).unwrap_or(1).max(1)
    }

    /// Nodes of memory that have processors.
    pub(super) fn nodes(&self) -> NodeSet {
        self.units(Unit::Node, &self.all()).into_iter().collect()
    }

    /// Those of these processors that are near to some nodes.
    pub(super) fn within(&self, nodes: NodeSet, cpus: &CpuSet) -> CpuSet {
        cpus.iter().filter(|cpu| nodes.contains(self.unit_of(*cpu, Unit::Node))).collect()
    }

    /// The sockets that some nodes are in.
    pub(super) fn sockets_of(&self, nodes: NodeSet) -> BTreeSet<u32> {
        self.units(Unit::Socket, &self.within(nodes, &self.all()))
    }

    /// Of these processors those whose whole core is among them.
    pub(super) fn whole_cores(&self, cpus: &CpuSet) -> CpuSet {
        let whole = |core: &u32| self.of(Unit::Core, *core).is_subset(cpus);
        let cores: BTreeSet<u32> = self.units(Unit::Core, cpus).into_iter().filter(whole).collect();
        cpus.iter().filter(|cpu| cores.contains(&self.unit_of(*cpu, Unit::Core))).collect()
    }
}

/// Machines for tests.
#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;

    /// A machine with nodes, sockets and cores in equal parts. The threads of a core are numbered as by most kernels:
    /// first the first threads of all cores, then the second ones. `caches` is for each node how many it has.
    pub(crate) struct Shape {
        pub(crate) sockets: u32,
        pub(crate) nodes: u32,
        pub(crate) caches: u32,
        pub(crate) cores: u32,
        pub(crate) threads: u32,
    }

    impl Shape {
        pub(crate) fn processors(&self) -> Processors {
            let of = |cpu: u32| {
                let core = cpu % self.cores;
                let part = |parts: u32| core / (self.cores / parts);
                let cache = part(self.nodes * self.caches) * (self.cores / (self.nodes * self.caches));
                (cpu, Processor { core, socket: part(self.sockets), node: part(self.nodes), cache })
            };
            Processors((0..self.cores * self.threads).map(of).collect())
        }
    }

    /// One socket with four cores of two threads: 0,4 1,5 2,6 3,7.
    pub(crate) const SINGLE: Shape = Shape { sockets: 1, nodes: 1, caches: 1, cores: 4, threads: 2 };
    /// Two sockets, each a node, with three cores of two threads: socket 0 has 0-2 and 6-8.
    pub(crate) const DUAL: Shape = Shape { sockets: 2, nodes: 2, caches: 1, cores: 6, threads: 2 };
    /// Two sockets of two nodes each, with ten cores a node and two threads a core: node 0 has 0-9 and 40-49.
    pub(crate) const FOUR_NODES: Shape = Shape { sockets: 2, nodes: 4, caches: 1, cores: 40, threads: 2 };
    /// One socket with four caches of four cores, one thread each.
    pub(crate) const CACHES: Shape = Shape { sockets: 1, nodes: 1, caches: 4, cores: 16, threads: 1 };
    /// One socket with two caches of four cores, two threads each: the first has 0-3 and 8-11.
    pub(crate) const CACHES_SMT: Shape = Shape { sockets: 1, nodes: 1, caches: 2, cores: 8, threads: 2 };
}

#[cfg(test)]
mod tests {
    use super::fixtures::{DUAL, FOUR_NODES};
    use super::*;

    #[test]
    fn units_are_found() {
        let dual = DUAL.processors();
        assert_eq!(dual.of(Unit::Socket, 1).to_string(), "3-5,9-11");
        assert_eq!(dual.of(Unit::Core, 4).to_string(), "4,10");
        assert_eq!((dual.per_core(), dual.number_of(Unit::Core)), (2, 6));
        assert_eq!(dual.whole_cores(&"0,1,7,9".parse().unwrap()).to_string(), "1,7");
        let four = FOUR_NODES.processors();
        assert_eq!(four.of(Unit::Node, 3).to_string(), "30-39,70-79");
        assert_eq!(four.sockets_of([1, 2].into_iter().collect()), [0, 1].into());
        assert_eq!(Processors::default().per_core(), 1);
    }
}
