//! Sets of nodes of memory (NUMA nodes).

use sys::cpu_set::CpuSet;

/// Nodes that a set can hold: those with lower numbers.
pub const MAX_NODE: u32 = 63;

/// A set of nodes of memory with numbers up to [`MAX_NODE`]. The order of sets is that of their bits as a number, which
/// breaks ties between hints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSet(u64);

impl NodeSet {
    #[must_use]
    pub fn contains(self, node: u32) -> bool {
        node <= MAX_NODE && self.0 & (1 << node) != 0
    }

    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[must_use]
    pub fn is_superset(self, other: Self) -> bool {
        self.and(other) == other
    }

    /// In ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..=MAX_NODE).filter(move |node| self.contains(*node))
    }

    /// All its subsets but the empty one.
    pub fn subsets(self) -> impl Iterator<Item = Self> {
        // The subsets of a mask in descending order, each by one step from the last.
        std::iter::successors(Some(self.0), move |last| Some(last.wrapping_sub(1) & self.0))
            .take_while(|bits| *bits != 0)
            .map(Self)
    }
}

impl FromIterator<u32> for NodeSet {
    /// Nodes beyond [`MAX_NODE`] are left out.
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        Self(nodes.into_iter().filter(|node| *node <= MAX_NODE).fold(0, |bits, node| bits | 1 << node))
    }
}

impl From<NodeSet> for CpuSet {
    fn from(set: NodeSet) -> Self {
        set.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_all_but_the_empty_one() {
        let set: NodeSet = [0, 2, 63, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 63]);
        let mut subsets: Vec<Vec<u32>> = set.subsets().map(|subset| subset.iter().collect()).collect();
        subsets.sort();
        assert_eq!(subsets, [vec![0], vec![0, 2], vec![0, 2, 63], vec![0, 63], vec![2], vec![2, 63], vec![63]]);
        assert_eq!(NodeSet::default().subsets().count(), 0);
        assert!(set.is_superset([0, 63].into_iter().collect()) && !set.is_superset([1].into_iter().collect()));
    }
}
