//! What passes through a cache, counted from the process's start on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bounds of how long reads wait, in seconds, as upstream.
pub const READ_WAIT_SECONDS: [f64; 13] = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0];

/// How long reads waited.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Those up to each bound and beyond the one before it.
    within: [Count; READ_WAIT_SECONDS.len()],
    all: Count,
    micros: Count,
}

impl Waits {
    pub(crate) fn add(&self, waited: Duration) {
        let seconds = waited.as_secs_f64();
        let within = READ_WAIT_SECONDS.iter().position(|bound| seconds <= *bound).and_then(|at| self.within.get(at));
        within.into_iter().for_each(|count| count.add(1));
        self.all.add(1);
        self.micros.add(usize::try_from(waited.as_micros()).unwrap_or(0));
    }

    fn now(&self) -> ReadWaits {
        let below = self.within.iter().scan(0, |sum, count| {
            *sum += count.get();
            Some(*sum)
        });
        ReadWaits {
            below: READ_WAIT_SECONDS.into_iter().zip(below).collect(),
            all: self.all.get(),
            sum: Duration::from_micros(self.micros.get()),
        }
    }
}

/// How long reads waited for the cache to get to a revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadWaits {
    /// Upper bounds in seconds, and how many waits were no longer than each.
    pub below: Vec<(f64, u64)>,
    /// How many there were.
    pub all: u64,
    /// How long all of them were together.
    pub sum: Duration,
}

/// What a cache and its watchers count.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read_waits: Waits,
    pub(crate) events_received: Count,
    pub(crate) events_dispatched: Count,
    pub(crate) initial_events: Count,
    pub(crate) initializations: Count,
    pub(crate) terminated_watchers: Count,
    pub(crate) bookmarks: Count,
}

/// The counts as they are at some moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheCounts {
    /// Changes that the store told of.
    pub events_received: u64,
    /// Those of them that were shown to watchers.
    pub events_dispatched: u64,
    /// Objects that watchers were told of as what was there already.
    pub initial_events: u64,
    /// How often the cache was filled.
    pub initializations: u64,
    /// Watchers that ended as they were too slow.
    pub terminated_watchers: u64,
    /// How often the store told how far it is.
    pub bookmarks: u64,
    /// How long reads waited.
    pub read_waits: ReadWaits,
}

impl Counts {
    pub(crate) fn now(&self) -> CacheCounts {
        CacheCounts {
            events_received: self.events_received.get(),
            events_dispatched: self.events_dispatched.get(),
            initial_events: self.initial_events.get(),
            initializations: self.initializations.get(),
            terminated_watchers: self.terminated_watchers.get(),
            bookmarks: self.bookmarks.get(),
            read_waits: self.read_waits.now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_up_to_each_bound() {
        let waits = Waits::default();
        for millis in [0, 5, 6, 3_000, 3_001] {
            waits.add(Duration::from_millis(millis));
        }
        let now = waits.now();
        let below: Vec<u64> = now.below.iter().map(|(_, count)| *count).collect();
        assert_eq!(below, [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]);
        assert_eq!((now.all, now.sum), (5, Duration::from_millis(6_012)));
    }
}
