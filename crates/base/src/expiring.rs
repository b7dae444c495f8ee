//! Answers that are remembered for a while, a bounded number of them.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

use tokio::time::Instant;

/// Values by key, each until a time of its own. Beyond the bound, what has expired makes room, and then the half that
/// would expire first.
#[derive(Debug)]
pub struct Expiring<K, V> {
    entries: HashMap<K, (V, Instant)>,
    max_entries: usize,
}

impl<K: Eq + Hash, V: Clone> Expiring<K, V> {
    /// Room for `max_entries`, at least one.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self { entries: HashMap::new(), max_entries: max_entries.max(1) }
    }

    /// What is remembered; what has expired is forgotten.
    pub fn get(&mut self, key: &K, now: Instant) -> Option<V> {
        match self.entries.get(key) {
            Some((value, until)) if now < *until => Some(value.clone()),
            Some(_) => {
                self.entries.remove(key);
                None
            }
            None => None,
        }
    }

    /// Remembers a value until a time.
    pub fn insert(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.entries.len() >= self.max_entries && !self.entries.contains_key(&key) {
            self.make_room(now);
        }
        self.entries.insert(key, (value, until));
    }

    /// How many values are kept, expired ones among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn make_room(&mut self, now: Instant) {
        self.entries.retain(|_, (_, until)| now < *until);
        if self.entries.len() < self.max_entries {
            return;
        }
        let mut ends: Vec<Instant> = self.entries.values().map(|(_, until)| *until).collect();
        let middle = ends.len() / 2;
        let (_, median, _) = ends.select_nth_unstable(middle);
        let median = *median;
        // Of those that end with the median, as many go as it takes.
        let mut equals = middle + 1 - ends.iter().filter(|end| **end < median).count();
        self.entries.retain(|_, (_, until)| match (*until).cmp(&median) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => {
                let goes = equals > 0;
                equals -= usize::from(goes);
                !goes
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_expire() {
        let (mut kept, now) = (Expiring::new(8), Instant::now());
        kept.insert("a", 1, now + Duration::from_secs(1), now);
        assert_eq!(kept.get(&"a", now), Some(1));
        assert_eq!(kept.get(&"a", now + Duration::from_secs(1)), None);
        assert!(kept.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_bound_and_the_latest_stay() {
        let (mut kept, now) = (Expiring::new(8), Instant::now());
        for key in 0..100_u64 {
            kept.insert(key, key, now + Duration::from_secs(1 + key), now);
            assert!(kept.len() <= 8, "{} at {key}", kept.len());
        }
        assert_eq!(kept.get(&99, now), Some(99));
        assert_eq!(kept.get(&0, now), None);
        let mut same = Expiring::new(8);
        for key in 0..100_u64 {
            same.insert(key, key, now + Duration::from_secs(1), now);
            assert!(same.len() <= 8 && same.get(&key, now).is_some());
        }
    }
}
