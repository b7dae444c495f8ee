//! Pods by domain, with the smallest count always at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::Topology;

/// How many matching pods each domain of a topology has. Domains that no node brought in do not count.
#[derive(Debug, Clone)]
pub(super) struct DomainCounts {
    pub(super) topology: Arc<Topology>,
    counts: Vec<Option<i64>>,
    /// How many domains have a count.
    by_count: BTreeMap<i64, usize>,
    domains: usize,
}

impl DomainCounts {
    pub(super) fn new(topology: Arc<Topology>) -> Self {
        let counts = vec![None; topology.len()];
        Self { topology, counts, by_count: BTreeMap::new(), domains: 0 }
    }

    /// The count of a domain, if any node brought it in.
    pub(super) fn get(&self, domain: usize) -> Option<i64> {
        self.counts.get(domain).copied().flatten()
    }

    /// Adds to a domain, which counts from now on.
    pub(super) fn add(&mut self, domain: usize, more: i64) {
        let Some(slot) = self.counts.get_mut(domain) else { return };
        let before = *slot;
        let after = before.unwrap_or(0) + more;
        *slot = Some(after);
        match before {
            None => self.domains += 1,
            Some(before) if before == after => return,
            Some(before) => self.leave(before),
        }
        *self.by_count.entry(after).or_default() += 1;
    }

    fn leave(&mut self, count: i64) {
        if let Some(domains) = self.by_count.get_mut(&count) {
            *domains -= 1;
            if *domains == 0 {
                self.by_count.remove(&count);
            }
        }
    }

    /// The smallest count; 0 where there are fewer domains than wanted, or none.
    pub(super) fn minimum(&self, min_domains: usize) -> i64 {
        if self.domains < min_domains {
            return 0;
        }
        self.by_count.first_key_value().map_or(0, |(count, _)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Snapshot;
    use crate::test_objects::node;

    #[test]
    fn the_minimum_follows() {
        let nodes = ["a", "b"].map(|name| node(name).label("zone", name).info());
        let snapshot = Snapshot::of(nodes.into());
        let mut counts = DomainCounts::new(snapshot.topology("zone"));
        counts.add(0, 2);
        counts.add(1, 3);
        assert_eq!((counts.minimum(1), counts.minimum(2), counts.minimum(3)), (2, 2, 0));
        counts.add(0, 2);
        counts.add(1, 0);
        assert_eq!(counts.minimum(1), 3);
        counts.add(0, -4);
        assert_eq!((counts.minimum(1), counts.get(1)), (0, Some(3)));
    }
}
