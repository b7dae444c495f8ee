//! Token buckets by key. Beyond their bound the one that was not used for longest goes: whoever comes back finds a full one.

use std::collections::{BTreeMap, HashMap};

use client::TokenBucket;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(super) struct Buckets {
    qps: f64,
    burst: u32,
    max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// With the turn of their last use.
    by_key: HashMap<String, (TokenBucket, u64)>,
    by_turn: BTreeMap<u64, String>,
    turn: u64,
}

impl Buckets {
    pub(super) fn new(qps: f64, burst: u32, max: usize) -> Self {
        Self { qps, burst, max, kept: Mutex::default() }
    }

    /// Takes a token out of a key's bucket, if one is there.
    pub(super) fn try_take(&self, key: String, now: Instant) -> bool {
        let mut kept = self.kept.lock();
        let Kept { by_key, by_turn, turn } = &mut *kept;
        *turn += 1;
        let bucket = match by_key.remove(&key) {
            Some((bucket, last)) => {
                by_turn.remove(&last);
                bucket
            }
            None => {
                if by_key.len() >= self.max
                    && let Some((_, oldest)) = by_turn.pop_first()
                {
                    by_key.remove(&oldest);
                }
                TokenBucket::new(self.qps, self.burst, now)
            }
        };
        let granted = bucket.try_take(now);
        by_turn.insert(*turn, key.clone());
        by_key.insert(key, (bucket, *turn));
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_that_was_not_used_for_longest_goes() {
        let (buckets, now) = (Buckets::new(1.0, 1, 2), Instant::now());
        let take = |key: &str| buckets.try_take(key.to_owned(), now);
        assert!(take("a") && take("b"));
        assert!(!take("a"));
        assert!(take("c"), "b has to go for it");
        assert!(!take("a") && take("b"));
        let kept = buckets.kept.lock();
        assert_eq!((kept.by_key.len(), kept.by_turn.len()), (2, 2));
    }
}
