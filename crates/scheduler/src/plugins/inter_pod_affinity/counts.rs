//! Numbers by domain of a topology.

use std::sync::Arc;

use crate::cache::Topology;

/// A number for each domain.
#[derive(Debug, Clone)]
pub(super) struct DomainSums {
    pub(super) topology: Arc<Topology>,
    sums: Vec<i64>,
    /// How many domains are not zero.
    nonzero: usize,
}

impl DomainSums {
    pub(super) fn new(topology: Arc<Topology>) -> Self {
        let sums = vec![0; topology.len()];
        Self { topology, sums, nonzero: 0 }
    }

    /// Adds to the domain of the node at a place; nodes without the label are in none.
    pub(super) fn add(&mut self, index: usize, more: i64) {
        let Some(slot) = self.topology.domain(index).and_then(|domain| self.sums.get_mut(domain)) else { return };
        let before = *slot;
        *slot += more;
        match (before == 0, *slot == 0) {
            (true, false) => self.nonzero += 1,
            (false, true) => self.nonzero -= 1,
            _ => {}
        }
    }

    /// The number of the node's domain; none where the node has no such label.
    pub(super) fn at(&self, index: usize) -> Option<i64> {
        self.sums.get(self.topology.domain(index)?).copied()
    }

    /// Whether every domain is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.nonzero == 0
    }
}
