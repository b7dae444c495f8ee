//! The versions of one key.

use crate::{KeyValue, Revision};

/// One version of a key: a value, or `None` where the key was deleted.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) revision: Revision,
    /// The position among the changes of that revision.
    pub(crate) position: u32,
    pub(crate) kv: Option<KeyValue>,
}

impl Version {
    /// Roughly what the version keeps in memory beyond a fixed overhead.
    pub(crate) fn weight(&self) -> u64 {
        const OVERHEAD_BYTES: u64 = 256;
        OVERHEAD_BYTES + self.kv.as_ref().map_or(0, |kv| kv.value.len() as u64)
    }
}

/// Up to so many versions take no more memory than they need.
const FEW: usize = 4;

/// All retained versions of a key, oldest first; never empty while it is in the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(Vec<Version>);

impl History {
    pub(crate) fn push(&mut self, version: Version) {
        // Most keys have one or two, and there are very many keys.
        if self.0.len() == self.0.capacity() && self.0.len() < FEW {
            self.0.reserve_exact(1);
        }
        self.0.push(version);
    }

    pub(crate) fn newest(&self) -> Option<&Version> {
        self.0.last()
    }

    pub(crate) fn current(&self) -> Option<&KeyValue> {
        self.0.last().and_then(|version| version.kv.as_ref())
    }

    /// The value as it was at a revision.
    pub(crate) fn at(&self, revision: Revision) -> Option<&KeyValue> {
        let newer = self.0.partition_point(|version| version.revision <= revision);
        newer.checked_sub(1).and_then(|index| self.0.get(index)).and_then(|version| version.kv.as_ref())
    }

    /// Whether nothing is left to forget at any revision.
    pub(crate) fn is_settled(&self) -> bool {
        self.0.len() == 1 && self.current().is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops what no read at `compacted` or later needs and returns it.
    pub(crate) fn compact(&mut self, compacted: Revision) -> Vec<Version> {
        let not_newer = self.0.partition_point(|version| version.revision <= compacted);
        let Some(last) = not_newer.checked_sub(1) else { return Vec::new() };
        let is_tombstone = self.0.get(last).is_some_and(|version| version.kv.is_none());
        let dropped = self.0.drain(..if is_tombstone { not_newer } else { last }).collect();
        if self.0.len() * 2 <= self.0.capacity() {
            self.0.shrink_to_fit();
        }
        dropped
    }
}
