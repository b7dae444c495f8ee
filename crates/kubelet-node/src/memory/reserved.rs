//! `reservedMemory`: what of each node's memory is for the system.

use std::collections::BTreeMap;

use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::ResourceList;
use api_types::kubelet_config_v1beta1::MemoryReservation;
use sys::topology::{MemoryNode, Topology};

use super::tables::{Amounts, MEMORY, Machine, Node, Table};
use super::{amounts, is_memory};

/// What is kept on one node.
pub type NodeReservation = Amounts;

/// Why memory cannot be kept like that, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReservedError {
    #[error("[memorymanager] you should specify the system reserved memory")]
    Nothing,
    #[error("the reserved memory configuration references a NUMA node {0} that does not exist on this machine")]
    NoNode(i32),
    #[error(
        "the total amount {amount:?} of type {kind:?} is not equal to the value {expected:?} determined by Node Allocatable feature"
    )]
    Total { kind: String, amount: String, expected: String },
    #[error("the reserved memory has a duplicate value for NUMA node {node} and resource {kind:?}")]
    Twice { node: i32, kind: String },
    #[error(
        "the limit type {kind:?} for NUMA node {node} is not supported, only \"memory\" or \"hugepages-<size>\" are accepted"
    )]
    Kind { node: i32, kind: String },
    #[error("reserved memory may not be zero for NUMA node {node} and resource {kind:?}")]
    Zero { node: i32, kind: String },
}

/// The machine's nodes with what is kept on each.
#[derive(Debug, Clone)]
pub struct Reserved {
    nodes: BTreeMap<u32, MemoryNode>,
    kept: BTreeMap<u32, NodeReservation>,
}

impl Reserved {
    /// `configured` on the nodes of a machine of which `expected` is kept altogether: by reservations and by the hard
    /// threshold of eviction.
    ///
    /// # Errors
    /// These do not agree.
    pub fn new(
        topology: &Topology,
        configured: &[MemoryReservation],
        expected: &ResourceList,
    ) -> Result<Self, ReservedError> {
        if configured.is_empty() {
            return Err(ReservedError::Nothing);
        }
        check(configured)?;
        let mut kept: BTreeMap<u32, NodeReservation> = BTreeMap::new();
        for reservation in configured {
            let missing = ReservedError::NoNode(reservation.numa_node);
            let node = u32::try_from(reservation.numa_node).ok().filter(|node| topology.nodes.contains_key(node));
            kept.entry(node.ok_or(missing)?).or_default().extend(amounts(&reservation.limits));
        }
        let own = Self { nodes: topology.nodes.clone(), kept };
        own.check_totals(&amounts(expected))?;
        Ok(own)
    }

    fn check_totals(&self, expected: &Amounts) -> Result<(), ReservedError> {
        let mut totals = Amounts::new();
        for (kind, bytes) in self.kept.values().flatten() {
            *totals.entry(kind.clone()).or_default() += bytes;
        }
        let of = |list: &Amounts, kind: &String| list.get(kind).copied().unwrap_or_default();
        for kind in totals.keys().chain(expected.keys()) {
            let (amount, expected) = (of(&totals, kind), of(expected, kind));
            if amount != expected {
                let text = |bytes: u64| {
                    Quantity::from_value(i64::try_from(bytes).unwrap_or(i64::MAX), Format::BinarySi).to_string()
                };
                return Err(ReservedError::Total {
                    kind: kind.clone(),
                    amount: text(amount),
                    expected: text(expected),
                });
            }
        }
        Ok(())
    }

    /// The machine before anything is given away.
    pub(super) fn machine(&self) -> Machine {
        let node = |(number, node): (&u32, &MemoryNode)| {
            let kept = self.kept.get(number);
            let kept = |kind: &str| kept.and_then(|kept| kept.get(kind)).copied().unwrap_or_default();
            let mut tables = BTreeMap::new();
            let mut huge = 0_u64;
            for (size, count) in &node.huge_pages {
                let kind = format!(
                    "hugepages-{}",
                    Quantity::from_value(i64::try_from(*size).unwrap_or(i64::MAX), Format::BinarySi)
                );
                let total = size.saturating_mul(*count);
                huge = huge.saturating_add(total);
                let system = kept(&kind);
                tables.insert(kind, Table { total, system, allocatable: total.saturating_sub(system), reserved: 0 });
            }
            let (total, system) = (node.memory_bytes, kept(MEMORY));
            let allocatable = total.saturating_sub(system).saturating_sub(huge);
            tables.insert(MEMORY.to_owned(), Table { total, system, allocatable, reserved: 0 });
            (*number, Node { tables, assignments: 0, group: [*number].into_iter().collect() })
        };
        Machine(self.nodes.iter().map(node).collect())
    }
}

/// What can be seen without the machine.
fn check(configured: &[MemoryReservation]) -> Result<(), ReservedError> {
    let mut seen = std::collections::BTreeSet::new();
    for MemoryReservation { numa_node: node, limits } in configured {
        for (kind, amount) in limits {
            let (node, kind) = (*node, kind.clone());
            if !is_memory(&kind) {
                return Err(ReservedError::Kind { node, kind });
            }
            if amount.sign() <= 0 {
                return Err(ReservedError::Zero { node, kind });
            }
            if !seen.insert((node, kind.clone())) {
                return Err(ReservedError::Twice { node, kind });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(kind, amount)| ((*kind).to_owned(), Quantity::parse(amount).unwrap())).collect()
    }

    fn topology() -> Topology {
        let node =
            MemoryNode { memory_bytes: 8 << 30, huge_pages: [(2 << 20, 512)].into(), distances: BTreeMap::new() };
        Topology { processors: BTreeMap::new(), nodes: [(0, node.clone()), (1, node)].into() }
    }

    #[test]
    fn what_is_kept_is_not_for_pods() {
        let configured = [
            MemoryReservation { numa_node: 0, limits: list(&[("memory", "1Gi"), ("hugepages-2Mi", "4Mi")]) },
            MemoryReservation { numa_node: 1, limits: list(&[("memory", "512Mi")]) },
        ];
        let expected = list(&[("memory", "1536Mi"), ("hugepages-2Mi", "4Mi"), ("cpu", "1")]);
        let machine = Reserved::new(&topology(), &configured, &expected).unwrap().machine();
        let mib = |node: u32, kind: &str| machine.0[&node].tables[kind].allocatable >> 20;
        assert_eq!([mib(0, "memory"), mib(1, "memory")], [6144, 6656]);
        assert_eq!([mib(0, "hugepages-2Mi"), mib(1, "hugepages-2Mi")], [1020, 1024]);
    }

    #[test]
    fn reservations_that_do_not_agree_are_refused() {
        let one = |node, pairs: &[(&str, &str)]| MemoryReservation { numa_node: node, limits: list(pairs) };
        let cases = [
            (vec![], "[memorymanager] you should specify the system reserved memory"),
            (
                vec![one(2, &[("memory", "1Gi")])],
                "the reserved memory configuration references a NUMA node 2 that does not exist on this machine",
            ),
            (
                vec![one(0, &[("memory", "2Gi")])],
                "the total amount \"2Gi\" of type \"memory\" is not equal to the value \"1Gi\" determined by Node \
                 Allocatable feature",
            ),
            (
                vec![one(0, &[("memory", "1Gi"), ("hugepages-2Mi", "2Mi")])],
                "the total amount \"2Mi\" of type \"hugepages-2Mi\" is not equal to the value \"0\" determined by Node \
                 Allocatable feature",
            ),
            (vec![one(0, &[("cpu", "1")])], "the limit type \"cpu\" for NUMA node 0 is not supported, only \"memory\""),
            (
                vec![one(0, &[("memory", "0")])],
                "reserved memory may not be zero for NUMA node 0 and resource \"memory\"",
            ),
            (
                vec![one(0, &[("memory", "512Mi")]), one(0, &[("memory", "512Mi")])],
                "the reserved memory has a duplicate value for NUMA node 0 and resource \"memory\"",
            ),
        ];
        for (configured, expected) in cases {
            let error = Reserved::new(&topology(), &configured, &list(&[("memory", "1Gi")])).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
