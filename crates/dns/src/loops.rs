//! Finds out whether what is handed on comes back: a resolver file that names this very server makes every foreign name go
//! round and round. A query that nobody else would send is handed on once at the start; if it comes in again and again,
//! nothing is handed on any more.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base::Rng;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};

/// Other servers may repeat a query, but hardly more often.
const SEEN_AT_MOST: u32 = 2;

/// Counts how often the query comes in.
pub struct LoopGuard {
    name: Name,
    watching: AtomicBool,
    seen: AtomicU32,
    found: AtomicBool,
}

impl LoopGuard {
    /// A guard with a name of its own.
    #[must_use]
    pub fn new(rng: &Rng) -> Self {
        let label = || rng.below(u64::MAX).to_string();
        let name = Name::from_ascii(format!("{}.{}.", label(), label())).unwrap_or_default();
        Self { name, watching: AtomicBool::new(true), seen: AtomicU32::new(0), found: AtomicBool::new(false) }
    }

    /// The query to hand on.
    #[must_use]
    pub fn query(&self, id: u16) -> Message {
        let mut query = Message::query();
        query.metadata.id = id;
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(self.name.clone(), RecordType::HINFO));
        query
    }

    /// A query has come in from a client.
    pub fn look(&self, query: &Message, client: SocketAddr) {
        let asked = query.queries.first();
        let own = asked.is_some_and(|one| one.query_type() == RecordType::HINFO && *one.name() == self.name);
        if !own || !self.watching.load(Ordering::Relaxed) {
            return;
        }
        if self.seen.fetch_add(1, Ordering::Relaxed) >= SEEN_AT_MOST && !self.found.swap(true, Ordering::Relaxed) {
            tracing::error!(
                client = %client,
                query = %self.name,
                "Loop detected for zone \".\", see https://coredns.io/plugins/loop#troubleshooting; names outside the \
                 cluster fail until the resolver file names other servers",
            );
        }
    }

    /// Whether queries that are handed on come back.
    #[must_use]
    pub fn has_found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// Ends the watch: from now on anybody may ask for the name.
    pub fn end(&self) {
        self.watching.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_query_counts_and_only_while_it_is_watched() {
        let rng = Rng::seeded(1);
        let (guard, other) = (LoopGuard::new(&rng), LoopGuard::new(&rng));
        let client = SocketAddr::from(([127, 0, 0, 1], 53));
        for _ in 0..9 {
            guard.look(&other.query(1), client);
        }
        guard.look(&guard.query(1), client);
        guard.look(&guard.query(2), client);
        assert!(!guard.has_found(), "a query may be repeated");
        guard.look(&guard.query(3), client);
        assert!(guard.has_found());
        other.end();
        for _ in 0..9 {
            other.look(&other.query(1), client);
        }
        assert!(!other.has_found());
    }
}
