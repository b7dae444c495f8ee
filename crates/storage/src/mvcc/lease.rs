//! Leases: which keys die together, and when.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::{Key, LeaseId};

#[derive(Debug)]
struct Lease {
    deadline: Instant,
    keys: BTreeSet<Key>,
}

/// Every lease with its keys, and the order in which they end.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    by_id: HashMap<LeaseId, Lease>,
    by_deadline: BTreeSet<(Instant, LeaseId)>,
}

impl Leases {
    pub(crate) fn grant(&mut self, id: LeaseId, ttl: Duration, now: Instant) {
        let deadline = now + ttl;
        self.by_deadline.insert((deadline, id));
        self.by_id.insert(id, Lease { deadline, keys: BTreeSet::new() });
    }

    pub(crate) fn drop_lease(&mut self, id: LeaseId) {
        if let Some(lease) = self.by_id.remove(&id) {
            self.by_deadline.remove(&(lease.deadline, id));
        }
    }

    pub(crate) fn contains(&self, id: LeaseId) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn keys(&self, id: LeaseId) -> impl Iterator<Item = &Key> {
        self.by_id.get(&id).into_iter().flat_map(|lease| lease.keys.iter())
    }

    pub(crate) fn attach(&mut self, id: LeaseId, key: &Key) {
        if let Some(lease) = self.by_id.get_mut(&id) {
            lease.keys.insert(key.clone());
        }
    }

    pub(crate) fn detach(&mut self, id: LeaseId, key: &Key) {
        if let Some(lease) = self.by_id.get_mut(&id) {
            lease.keys.remove(key);
        }
    }

    /// When the next lease ends.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// The leases whose time is over, at most `limit` of them.
    pub(crate) fn expired(&self, now: Instant, limit: usize) -> Vec<LeaseId> {
        let due = self.by_deadline.iter().take_while(|(deadline, _)| *deadline <= now);
        due.take(limit).map(|(_, id)| *id).collect()
    }
}
