//! How the lists of a resource were answered, and what could not be read, counted from the process's start on.

use watch_cache::{CacheCounts, CacheStats, Count, Index};

use crate::consistency::Consistency;
use crate::resource::Resource;

/// The lists that an index answered, or none.
#[derive(Debug, Default)]
pub(crate) struct IndexCounts {
    pub(crate) lists: Count,
    pub(crate) fetched: Count,
}

/// What is counted of a resource.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Of the cache without an index, and then by each.
    cached: Vec<(&'static str, IndexCounts)>,
    pub(crate) cached_returned: Count,
    pub(crate) stored: Count,
    pub(crate) stored_fetched: Count,
    pub(crate) stored_evaluated: Count,
    pub(crate) stored_returned: Count,
    pub(crate) decode_errors: Count,
    /// Reads that had to show everything: whether they did, and whether the store had to be asked for that.
    consistent: [Count; 4],
    /// Comparisons of the cache with the store, in the order of [`Consistency::ALL`].
    checks: [Count; 3],
}

impl Counts {
    pub(crate) fn new(indexes: &[Index]) -> Self {
        let names = std::iter::once("").chain(indexes.iter().map(|index| index.field));
        Self { cached: names.map(|name| (name, IndexCounts::default())).collect(), ..Self::default() }
    }

    /// The lists that the index at a position answered; nothing for none.
    pub(crate) fn cached(&self, index: Option<usize>) -> Option<&IndexCounts> {
        self.cached.get(index.map_or(0, |index| index + 1)).map(|(_, own)| own)
    }

    pub(crate) fn checked(&self, found: Consistency) {
        for (own, count) in Consistency::ALL.into_iter().zip(&self.checks) {
            count.add(usize::from(own == found));
        }
    }

    pub(crate) fn consistent(&self, success: bool, fallback: bool) {
        if let Some(count) = self.consistent.get(usize::from(success) * 2 + usize::from(fallback)) {
            count.add(1);
        }
    }
}

/// The lists of a resource that an index answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedLists {
    /// The field that it is of; empty for no index.
    pub index: &'static str,
    /// How many there were.
    pub lists: u64,
    /// How many objects were looked at for them.
    pub fetched: u64,
}

/// Reads that had to show every write before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsistentReads {
    /// Whether they did.
    pub success: bool,
    /// Whether the store had to be asked, as the cache was behind.
    pub fallback: bool,
    /// How many there were.
    pub reads: u64,
}

/// Everything that is counted of a resource, for metrics.
#[derive(Debug, Clone, Default)]
pub struct ResourceCounts {
    /// What the cache holds; nothing without one.
    pub stats: Option<CacheStats>,
    /// What passed through the cache; nothing without one.
    pub cache: Option<CacheCounts>,
    /// Lists from the cache.
    pub cached: Vec<IndexedLists>,
    /// Objects that lists from the cache gave.
    pub cached_returned: u64,
    /// Lists from the store.
    pub stored: u64,
    /// Objects that were read from the store for them.
    pub stored_fetched: u64,
    /// Those of them that selectors looked at.
    pub stored_evaluated: u64,
    /// Objects that they gave.
    pub stored_returned: u64,
    /// Values in the store that could not be read.
    pub decode_errors: u64,
    /// Reads that had to show every write before them.
    pub consistent: Vec<ConsistentReads>,
    /// Comparisons of the cache with the store, by what they found.
    pub checks: Vec<(Consistency, u64)>,
}

impl Resource {
    /// What is counted of the resource, whatever its version.
    #[must_use]
    pub fn counts(&self) -> ResourceCounts {
        let (counts, cache) = (&self.store.counts, self.store.cache.as_ref());
        let indexed = |(index, own): &(&'static str, IndexCounts)| IndexedLists {
            index,
            lists: own.lists.get(),
            fetched: own.fetched.get(),
        };
        let consistent = |(at, count): (usize, &Count)| ConsistentReads {
            success: at >= 2,
            fallback: at % 2 == 1,
            reads: count.get(),
        };
        ResourceCounts {
            stats: cache.map(|cache| cache.stats()),
            cache: cache.map(|cache| cache.counts()),
            cached: counts.cached.iter().map(indexed).collect(),
            cached_returned: counts.cached_returned.get(),
            stored: counts.stored.get(),
            stored_fetched: counts.stored_fetched.get(),
            stored_evaluated: counts.stored_evaluated.get(),
            stored_returned: counts.stored_returned.get(),
            decode_errors: counts.decode_errors.get(),
            consistent: counts.consistent.iter().enumerate().map(consistent).collect(),
            checks: Consistency::ALL.into_iter().zip(counts.checks.iter().map(Count::get)).collect(),
        }
    }
}
