//! Owners that were found to be gone, so that their many dependents need not ask for them one by one.

use std::collections::{HashSet, VecDeque};

use super::object::Identity;

/// How many are remembered, as upstream.
const MOST: usize = 500;

/// Coordinates where nothing is; the oldest are forgotten first.
#[derive(Default)]
pub(super) struct Absent {
    known: HashSet<Identity>,
    order: VecDeque<Identity>,
}

impl Absent {
    /// Remembers coordinates.
    pub(super) fn remember(&mut self, identity: Identity) {
        if !self.known.insert(identity.clone()) {
            return;
        }
        self.order.push_back(identity);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether nothing is at these coordinates, for a cluster-scoped owner or one beside its dependent.
    pub(super) fn contains(&self, owner: &Identity) -> bool {
        let cluster = Identity { namespace: String::new(), ..owner.clone() };
        self.known.contains(&cluster) || self.known.contains(owner)
    }
}
