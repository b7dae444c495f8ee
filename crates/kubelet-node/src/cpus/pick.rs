//! Which processors a container gets of those that are free: packed together, or spread over nodes of memory. Pure.
//!
//! Upstream: the CPU accumulator of the CPU manager; KEP-693, KEP-2902, KEP-4176, KEP-4800.

use std::collections::{BTreeMap, BTreeSet};

use sys::cpu_set::CpuSet;

use super::machine::{Processors, Unit};

/// Nodes of which all combinations are tried to spread processors over them; with more they are packed.
const MOST_SPREAD_NODES: usize = 8;

/// There are too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not enough cpus available to satisfy request: requested={requested}, available={available}")]
pub struct TooFew {
    pub requested: usize,
    pub available: usize,
}

/// How processors are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Manner {
    /// Over as few nodes as suffice, and evenly; so many at a time.
    pub(super) over_nodes: Option<usize>,
    /// Over all cores of a socket.
    pub(super) over_cores: bool,
    /// Whole caches first.
    pub(super) by_cache: bool,
}

/// `wanted` of the free processors.
pub(super) fn pick(machine: &Processors, free: &CpuSet, wanted: usize, manner: Manner) -> Result<CpuSet, TooFew> {
    if wanted > free.len() {
        return Err(TooFew { requested: wanted, available: free.len() });
    }
    let spread = manner.over_nodes.and_then(|group| evenly(machine, free, wanted, group.max(1), manner));
    Ok(spread.unwrap_or_else(|| packed(machine, free, wanted, manner)))
}

/// Processors that are being chosen.
struct Choice<'a> {
    machine: &'a Processors,
    free: CpuSet,
    taken: CpuSet,
    missing: usize,
    /// The larger of sockets and nodes of memory, and the other.
    large: [Unit; 2],
}

/// As close together as can be: the largest units that are wanted whole, the rest where most is taken already.
fn packed(machine: &Processors, free: &CpuSet, wanted: usize, manner: Manner) -> CpuSet {
    let large = match machine.number_of(Unit::Socket) >= machine.number_of(Unit::Node) {
        true => [Unit::Node, Unit::Socket],
        false => [Unit::Socket, Unit::Node],
    };
    let mut choice = Choice { machine, free: free.clone(), taken: CpuSet::default(), missing: wanted, large };
    large.into_iter().for_each(|unit| choice.take_whole(unit));
    if manner.by_cache {
        choice.take_by_cache();
    }
    if !manner.over_cores {
        choice.take_whole(Unit::Core);
    }
    choice.take_single(manner.over_cores);
    choice.taken
}

impl Choice<'_> {
    fn take(&mut self, cpus: &CpuSet) {
        self.free = self.free.minus(cpus);
        self.taken = self.taken.union(cpus);
        self.missing = self.missing.saturating_sub(cpus.len());
    }

    /// The units that have free processors: those with the fewest first, within the larger units in the same order.
    fn ordered(&self, unit: Unit) -> Vec<u32> {
        let above: &[Unit] = match self.large {
            [first, _] if unit == first => &[],
            [_, second] if unit == second => &self.large[..1],
            _ => &self.large,
        };
        let counts: Vec<(Unit, BTreeMap<u32, usize>)> =
            above.iter().chain([&unit]).map(|unit| (*unit, self.machine.counts(*unit, &self.free))).collect();
        let key = |number: &u32| {
            let first = self.free.iter().find(|cpu| self.machine.unit_of(*cpu, unit) == *number).unwrap_or_default();
            let place = |(unit, counts): &(Unit, BTreeMap<u32, usize>)| {
                let number = self.machine.unit_of(first, *unit);
                (counts.get(&number).copied().unwrap_or_default(), number)
            };
            counts.iter().map(place).collect::<Vec<_>>()
        };
        let mut numbers: Vec<u32> = self.machine.units(unit, &self.free).into_iter().collect();
        numbers.sort_by_cached_key(key);
        numbers
    }

    /// Units of which nobody has anything, as long as a whole one is wanted.
    fn take_whole(&mut self, unit: Unit) {
        for number in self.ordered(unit) {
            let all = self.machine.of(unit, number);
            if self.missing >= all.len() && all.is_subset(&self.free) {
                self.take(&all);
            }
        }
    }

    /// Whole caches, and the rest in one that can hold all of it on whole cores.
    fn take_by_cache(&mut self) {
        for number in self.ordered(Unit::Cache) {
            let all = self.machine.of(Unit::Cache, number);
            if self.missing >= all.len() && all.is_subset(&self.free) {
                self.take(&all);
                continue;
            }
            let whole = self.machine.whole_cores(&all.minus(&self.taken).and(&self.free));
            if self.missing > 0 && whole.len() >= self.missing {
                let rest = self.on_cores(&whole);
                self.take(&rest);
            }
        }
    }

    /// What is missing, of these cores.
    fn on_cores(&self, cpus: &CpuSet) -> CpuSet {
        let cores = self.machine.units(Unit::Core, cpus);
        let in_order = cores.into_iter().flat_map(|core| self.machine.of(Unit::Core, core).iter().collect::<Vec<_>>());
        in_order.take(self.missing).collect()
    }

    fn take_single(&mut self, over_cores: bool) {
        let unit = if over_cores { Unit::Socket } else { Unit::Core };
        for number in self.ordered(unit) {
            let free = self.machine.of(unit, number).and(&self.free);
            let some: CpuSet = free.iter().take(self.missing).collect();
            self.take(&some);
        }
    }
}

/// How `wanted` processors are dealt out to nodes.
struct Deal {
    /// What each of these nodes gives.
    nodes: Vec<u32>,
    each: usize,
    /// Who gives a group more, again and again, until all are dealt.
    more: Vec<u32>,
}

/// Evenly over as few nodes as can be, `group` at a time; none where that cannot be.
fn evenly(machine: &Processors, free: &CpuSet, wanted: usize, group: usize, manner: Manner) -> Option<CpuSet> {
    if wanted == 0 || !wanted.is_multiple_of(group) {
        return None;
    }
    let has = machine.counts(Unit::Node, free);
    if has.len() > MOST_SPREAD_NODES {
        return None;
    }
    let deal = deal(&has, least_nodes(machine, wanted, group), wanted, group)?;
    let manner = Manner { over_nodes: None, by_cache: false, ..manner };
    let mut taken = CpuSet::default();
    let of_node = |node: u32, taken: &CpuSet| machine.of(Unit::Node, node).and(free).minus(taken);
    for node in &deal.nodes {
        taken = taken.union(&packed(machine, &of_node(*node, &taken), deal.each, manner));
    }
    while taken.len() < wanted {
        let before = taken.len();
        for node in &deal.more {
            let left = of_node(*node, &taken);
            if taken.len() < wanted && left.len() >= group {
                taken = taken.union(&packed(machine, &left, group, manner));
            }
        }
        if taken.len() == before {
            return None;
        }
    }
    Some(taken)
}

/// The fewest nodes that would suffice on the empty machine.
fn least_nodes(machine: &Processors, wanted: usize, group: usize) -> usize {
    let nodes = machine.number_of(Unit::Node).max(1);
    let of_node = machine.all().len().div_ceil(group).div_ceil(nodes).max(1);
    wanted.div_ceil(group).div_ceil(of_node)
}

/// The fewest nodes, at least so many, that can give equal parts; of those the ones after which the machine is in the
/// best balance.
fn deal(has: &BTreeMap<u32, usize>, least: usize, wanted: usize, group: usize) -> Option<Deal> {
    let most = (wanted / group).min(has.len());
    for count in least..=most {
        let each = wanted / count / group * group;
        let able = |nodes: &Vec<u32>| {
            let groups: usize = nodes.iter().filter_map(|node| has.get(node)).map(|free| free / group).sum();
            groups * group >= wanted && nodes.iter().all(|node| has.get(node).is_some_and(|free| *free >= each))
        };
        let all: Vec<u32> = has.keys().copied().collect();
        let mut best: Option<(u64, Deal)> = None;
        for nodes in combinations(&all, count).filter(able) {
            let mut left = has.clone();
            nodes.iter().for_each(|node| take_from(&mut left, *node, each));
            let (imbalance, more) = balance_rest(&left, &nodes, wanted - each * count, group);
            if best.as_ref().is_none_or(|(least, _)| imbalance < *least) {
                best = Some((imbalance, Deal { nodes, each, more }));
            }
        }
        if let Some((_, deal)) = best {
            return Some(deal);
        }
    }
    None
}

fn take_from(left: &mut BTreeMap<u32, usize>, node: u32, count: usize) {
    if let Some(free) = left.get_mut(&node) {
        *free = free.saturating_sub(count);
    }
}

/// Which of the nodes give the rest so that the machine is in the best balance, and how far from balance it is then.
fn balance_rest(left: &BTreeMap<u32, usize>, nodes: &[u32], rest: usize, group: usize) -> (u64, Vec<u32>) {
    if rest == 0 {
        return (imbalance(left), Vec::new());
    }
    let able: Vec<u32> =
        nodes.iter().copied().filter(|node| left.get(node).is_some_and(|free| *free >= group)).collect();
    let mut best = (u64::MAX, able.clone());
    for count in 1..=able.len() {
        for some in combinations(&able, count) {
            let Some(after) = after_rest(left, &some, rest, group) else { continue };
            let imbalance = imbalance(&after);
            if imbalance < best.0 {
                best = (imbalance, some);
            }
        }
    }
    best
}

/// What is left when some nodes give the rest in turn; none where they cannot.
fn after_rest(
    left: &BTreeMap<u32, usize>,
    nodes: &[u32],
    mut rest: usize,
    group: usize,
) -> Option<BTreeMap<u32, usize>> {
    let mut left = left.clone();
    while rest > 0 {
        let before = rest;
        for node in nodes {
            if rest > 0 && left.get(node).is_some_and(|free| *free >= group) {
                take_from(&mut left, *node, group);
                rest -= group;
            }
        }
        if rest == before {
            return None;
        }
    }
    Some(left)
}

/// How unequal numbers are: their variance times the square of their count, which orders as the standard deviation does.
fn imbalance(left: &BTreeMap<u32, usize>) -> u64 {
    let count = left.len() as u64;
    let (sum, squares) = left.values().fold((0_u64, 0_u64), |(sum, squares), value| {
        let value = *value as u64;
        (sum + value, squares + value * value)
    });
    count * squares - sum * sum
}

/// All choices of `count` of these, in order.
fn combinations(of: &[u32], count: usize) -> impl Iterator<Item = Vec<u32>> {
    let masks: BTreeSet<Vec<u32>> = (0_u32..1 << of.len().min(MOST_SPREAD_NODES))
        .filter(|mask| mask.count_ones() as usize == count)
        .map(|mask| {
            of.iter().enumerate().filter(|(index, _)| mask & (1 << index) != 0).map(|(_, node)| *node).collect()
        })
        .collect();
    masks.into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::machine::fixtures::{CACHES, CACHES_SMT, DUAL, FOUR_NODES, SINGLE, Shape};
    use super::*;

    const PACKED: Manner = Manner { over_nodes: None, over_cores: false, by_cache: false };

    fn picked(shape: &Shape, free: &str, wanted: usize, manner: Manner) -> String {
        let picked = pick(&shape.processors(), &free.parse().unwrap(), wanted, manner);
        picked.map_or_else(|error| error.to_string(), |cpus| cpus.to_string())
    }

    #[test]
    fn packed_as_close_as_can_be() {
        let few = "not enough cpus available to satisfy request: requested=3, available=2";
        let cases = [
            ("more than there is", &SINGLE, "0,4", 3, few),
            ("nothing", &SINGLE, "0-7", 0, ""),
            ("all", &SINGLE, "0-7", 8, "0-7"),
            ("one thread", &SINGLE, "0-7", 1, "0"),
            ("the other thread of a core that is in use", &SINGLE, "1-7", 1, "4"),
            ("a core", &SINGLE, "0-7", 2, "0,4"),
            ("a whole core rather than two halves", &SINGLE, "1,3-4,7", 2, "3,7"),
            ("a core and the half that is left over", &SINGLE, "0,2-3,5-7", 3, "0,2,6"),
            ("halves where there are no cores", &SINGLE, "0-3", 2, "0-1"),
            ("a socket", &DUAL, "0-11", 6, "0-2,6-8"),
            ("the socket that is free", &DUAL, "1-11", 6, "3-5,9-11"),
            ("cores of the socket that is in use", &DUAL, "1-11", 4, "1-2,7-8"),
            ("more than a socket", &DUAL, "0-11", 8, "0-3,6-9"),
            ("a node of four", &FOUR_NODES, "1-79", 20, "10-19,50-59"),
            ("a socket of two nodes", &FOUR_NODES, "0-79", 40, "0-19,40-59"),
            ("a socket of two nodes that is free", &FOUR_NODES, "1-79", 40, "20-39,60-79"),
        ];
        for (what, shape, free, wanted, expected) in cases {
            assert_eq!(picked(shape, free, wanted, PACKED), expected, "{what}");
        }
    }

    #[test]
    fn whole_caches_first() {
        let by_cache = Manner { by_cache: true, ..PACKED };
        let cases = [
            ("one cache", &CACHES, "0-15", 4, "0-3"),
            ("a cache that is free rather than the rest of two", &CACHES, "1-3,5-15", 4, "8-11"),
            ("the fullest that can hold it", &CACHES, "1-3,6-15", 3, "1-3"),
            ("one and the rest in one", &CACHES, "0-3,5-15", 6, "0-3,8-9"),
            ("nowhere together", &CACHES, "0-1,4-5,8-9", 3, "0-1,4"),
            ("an odd number on whole cores", &CACHES_SMT, "0-15", 3, "0-1,8"),
            ("a cache of two threads a core", &CACHES_SMT, "1-15", 8, "4-7,12-15"),
        ];
        for (what, shape, free, wanted, expected) in cases {
            assert_eq!(picked(shape, free, wanted, by_cache), expected, "{what}");
        }
        assert_eq!(picked(&CACHES, "1-3,5-15", 4, PACKED), "1-3,5", "without the option");
    }

    #[test]
    fn over_cores_of_a_socket() {
        let over_cores = Manner { over_cores: true, ..PACKED };
        assert_eq!(picked(&SINGLE, "0-7", 2, over_cores), "0-1");
        assert_eq!(picked(&SINGLE, "1-7", 4, over_cores), "1-4");
        assert_eq!(picked(&DUAL, "0,2-11", 4, over_cores), "0,2,6-7", "the socket that is in use");
    }

    #[test]
    fn over_nodes_evenly() {
        let over = |group| Manner { over_nodes: Some(group), ..PACKED };
        let cases = [
            ("one node is enough", &DUAL, "0-11", 6, 1, "0-2,6-8"),
            ("half of each", &DUAL, "0-11", 8, 1, "0-1,3-4,6-7,9-10"),
            ("the node that is free", &DUAL, "1-5,7-11", 6, 1, "3-5,9-11"),
            ("both where none is", &DUAL, "1-4,6-10", 6, 1, "1,3-4,6-7,9"),
            ("by cores", &DUAL, "0-11", 10, 2, "0-4,6-10"),
            ("a part of a core: packed", &DUAL, "0-11", 7, 2, "0-3,6-8"),
            ("four nodes", &FOUR_NODES, "0-79", 80, 1, "0-79"),
            ("two of four nodes", &FOUR_NODES, "0-79", 30, 1, "0-7,10-17,40-46,50-56"),
            ("the fuller nodes are spared", &FOUR_NODES, "0-4,10-79", 24, 2, "10-15,20-25,50-55,60-65"),
        ];
        for (what, shape, free, wanted, group, expected) in cases {
            assert_eq!(picked(shape, free, wanted, over(group)), expected, "{what}");
        }
    }

    #[test]
    fn balance_is_measured() {
        let of = |values: &[usize]| imbalance(&(0..).zip(values.iter().copied()).collect());
        assert_eq!((of(&[]), of(&[5, 5, 5])), (0, 0));
        assert!(of(&[4, 6]) < of(&[3, 7]));
        assert_eq!(combinations(&[1, 2, 3], 2).collect::<Vec<_>>(), [vec![1, 2], vec![1, 3], vec![2, 3]]);
    }
}
