//! Which memory of which node is whose. Pure.
//!
//! What is kept is only who has what; how full each node is follows from that. Upstream: the memory manager's state.

use std::collections::BTreeMap;

use api_types::core_v1::Pod;

use crate::topology::{NodeSet, OfPod, is_ending};

pub(super) const MEMORY: &str = "memory";

/// Memory by kind: `memory`, and `hugepages-{size}` for each size of huge pages. In bytes.
pub type Amounts = BTreeMap<String, u64>;

/// What one container has of one kind of memory, on one or several nodes together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub nodes: NodeSet,
    pub kind: String,
    /// What others have used of it since is not counted.
    pub bytes: u64,
}

/// Which container of which pod has which blocks, by uid and name.
pub type Blocks = BTreeMap<String, OfPod<Vec<Block>>>;

/// A node's memory of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) total: u64,
    /// Kept for the system.
    pub(super) system: u64,
    pub(super) allocatable: u64,
    pub(super) reserved: u64,
}

impl Table {
    pub(super) fn free(&self) -> u64 {
        self.allocatable.saturating_sub(self.reserved)
    }
}

/// One node's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) tables: BTreeMap<String, Table>,
    /// How many blocks are on it.
    pub(super) assignments: usize,
    /// The nodes that it is used together with, itself included.
    pub(super) group: NodeSet,
}

/// The memory of all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine(pub(super) BTreeMap<u32, Node>);

impl Machine {
    /// How the machine is filled when these blocks are given away.
    pub(super) fn with(&self, blocks: &Blocks) -> Self {
        let mut filled = self.clone();
        for block in blocks.values().flat_map(OfPod::taken).flatten() {
            filled.put(block);
        }
        filled
    }

    /// The nodes are filled in the order of their numbers.
    fn put(&mut self, block: &Block) {
        let mut rest = block.bytes;
        for number in block.nodes.iter() {
            let Some(node) = self.0.get_mut(&number) else { continue };
            node.assignments += 1;
            node.group = block.nodes;
            if let Some(table) = node.tables.get_mut(&block.kind) {
                let part = rest.min(table.free());
                table.reserved += part;
                rest -= part;
            }
        }
    }

    pub(super) fn nodes(&self) -> NodeSet {
        self.0.keys().copied().collect()
    }

    /// The sum over some nodes of one kind of memory.
    fn sum(&self, nodes: NodeSet, kind: &str, of: impl Fn(&Table) -> u64) -> u64 {
        let tables = nodes.iter().filter_map(|node| self.0.get(&node)?.tables.get(kind));
        tables.map(of).fold(0, u64::saturating_add)
    }

    /// Whether some nodes would have all of this if nobody had any.
    pub(super) fn could_hold(&self, nodes: NodeSet, wanted: &Amounts) -> bool {
        wanted.iter().all(|(kind, bytes)| self.sum(nodes, kind, |table| table.allocatable) >= *bytes)
    }

    /// Whether some nodes have all of this, with what is `reusable` on just these nodes.
    pub(super) fn can_hold(&self, nodes: NodeSet, wanted: &Amounts, reusable: &[(NodeSet, Amounts)]) -> bool {
        let more = |kind: &String| {
            let own = reusable.iter().filter(|(of, _)| *of == nodes);
            own.filter_map(|(_, amounts)| amounts.get(kind)).sum::<u64>()
        };
        wanted.iter().all(|(kind, bytes)| self.sum(nodes, kind, Table::free).saturating_add(more(kind)) >= *bytes)
    }

    /// Whether nodes may be used together: those in use only by whom they were used together before.
    pub(super) fn may_group(&self, nodes: NodeSet) -> bool {
        let used = nodes.iter().filter_map(|node| self.0.get(&node)).filter(|node| node.assignments > 0);
        used.into_iter().all(|node| node.group == nodes)
    }
}

/// What a pod's init containers have and do not need any more when the next ones start, by the nodes it is on.
pub(super) fn reusable(pod: &Pod, blocks: &Blocks) -> Vec<(NodeSet, Amounts)> {
    let mut found: BTreeMap<NodeSet, Amounts> = BTreeMap::new();
    let own = blocks.get(&pod.metadata.uid).into_iter().flat_map(|own| &own.containers);
    let own = own.filter(|(name, _)| is_ending(pod, name));
    for block in own.flat_map(|(_, blocks)| blocks) {
        *found.entry(block.nodes).or_default().entry(block.kind.clone()).or_default() += block.bytes;
    }
    found.into_iter().collect()
}

/// Gives a container blocks. As far as they lie on what init containers of its pod had, it is those that have less from
/// then on, so that all blocks of a pod together are what it takes from the machine.
pub(super) fn give(pod: &Pod, container: &str, given: Vec<Block>, blocks: &mut Blocks) {
    let of_pod = &mut blocks.entry(pod.metadata.uid.clone()).or_default().containers;
    for block in &given {
        let mut rest = block.bytes;
        let ended = of_pod.iter_mut().filter(|(name, _)| is_ending(pod, name)).flat_map(|(_, blocks)| blocks);
        for earlier in ended.filter(|earlier| earlier.nodes == block.nodes && earlier.kind == block.kind) {
            let part = rest.min(earlier.bytes);
            earlier.bytes -= part;
            rest -= part;
        }
    }
    of_pod.insert(container.to_owned(), given);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::topology::fixtures::guaranteed;

    pub(in super::super) const GI: u64 = 1 << 30;

    /// Nodes with so many Gi of memory, one of them kept for the system.
    pub(in super::super) fn machine(sizes: &[u64]) -> Machine {
        let node = |(number, size): (usize, &u64)| {
            let table = Table { total: size * GI, system: GI, allocatable: (size - 1) * GI, reserved: 0 };
            let number = u32::try_from(number).unwrap();
            let group = [number].into_iter().collect();
            (number, Node { tables: [(MEMORY.to_owned(), table)].into(), assignments: 0, group })
        };
        Machine(sizes.iter().enumerate().map(node).collect())
    }

    pub(in super::super) fn nodes(numbers: &[u32]) -> NodeSet {
        numbers.iter().copied().collect()
    }

    pub(in super::super) fn block(numbers: &[u32], gi: u64) -> Block {
        Block { nodes: nodes(numbers), kind: MEMORY.to_owned(), bytes: gi * GI }
    }

    #[test]
    fn nodes_are_filled_in_order_and_used_together() {
        let blocks: Blocks =
            [("u".to_owned(), OfPod { whole: None, containers: [("c".to_owned(), vec![block(&[0, 1], 12)])].into() })]
                .into();
        let filled = machine(&[11, 11, 11]).with(&blocks);
        let reserved = |node: u32| filled.0[&node].tables[MEMORY].reserved / GI;
        assert_eq!([0, 1, 2].map(reserved), [10, 2, 0]);
        let wanted = |gi: u64| Amounts::from([(MEMORY.to_owned(), gi * GI)]);
        assert!(filled.could_hold(nodes(&[0]), &wanted(10)) && !filled.could_hold(nodes(&[0]), &wanted(11)));
        assert!(filled.can_hold(nodes(&[0, 1]), &wanted(8), &[]) && !filled.can_hold(nodes(&[0, 1]), &wanted(9), &[]));
        let own = [(nodes(&[0, 1]), wanted(1)), (nodes(&[1]), wanted(5))];
        assert!(
            filled.can_hold(nodes(&[0, 1]), &wanted(9), &own) && !filled.can_hold(nodes(&[0, 1]), &wanted(10), &own)
        );
        let cases: [(&[u32], bool); 5] =
            [(&[0, 1], true), (&[0], false), (&[1, 2], false), (&[2], true), (&[0, 1, 2], false)];
        for (numbers, expected) in cases {
            assert_eq!(filled.may_group(nodes(numbers)), expected, "{numbers:?}");
        }
    }

    #[test]
    fn a_pod_takes_no_more_than_its_containers_need_at_a_time() {
        let mut pod = guaranteed("u", &[("first", "1", "5Gi"), ("second", "1", "8Gi"), ("main", "1", "6Gi")]);
        pod.spec.init_containers = pod.spec.containers.drain(..2).collect();
        let mut blocks = Blocks::new();
        let mut taken = Vec::new();
        for (name, gi) in [("first", 5), ("second", 8), ("main", 6)] {
            give(&pod, name, vec![block(&[0], gi)], &mut blocks);
            taken.push(machine(&[20]).with(&blocks).0[&0].tables[MEMORY].reserved / GI);
        }
        assert_eq!(taken, [5, 8, 8]);
        assert_eq!(reusable(&pod, &blocks), [(nodes(&[0]), [(MEMORY.to_owned(), 2 * GI)].into())]);
    }
}
