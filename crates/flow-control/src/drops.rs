//! How long clients of a level are asked to stay away: longer the more of them were refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::Moment;

/// The longest time that clients are asked to stay away, in seconds.
const MAX_SECONDS: u32 = 32;

/// The refusals of a level in the last half minute.
#[derive(Debug)]
pub struct Drops {
    retry_after: AtomicU32,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Seconds in which something was refused and how often, at most [`MAX_SECONDS`] of them.
    seconds: VecDeque<(u64, u64)>,
    /// When the time was last changed.
    changed: u64,
}

impl Default for Drops {
    fn default() -> Self {
        Self { retry_after: AtomicU32::new(1), seen: Mutex::default() }
    }
}

impl Drops {
    /// For how many seconds a client is to stay away.
    #[must_use]
    pub fn retry_after(&self) -> u32 {
        self.retry_after.load(Ordering::Relaxed)
    }

    /// Something was refused.
    pub fn record(&self, now: Moment) {
        let mut seen = self.seen.lock();
        let second = now.as_secs();
        match seen.seconds.back_mut() {
            Some((last, count)) if *last >= second => *count += 1,
            _ => {
                // What it comes to is thought over once a second.
                self.adjust(second, &mut seen);
                seen.seconds.push_back((second, 1));
                while seen.seconds.len() > MAX_SECONDS as usize {
                    seen.seconds.pop_front();
                }
            }
        }
    }

    /// Doubles the time under many refusals, takes a second off under few.
    fn adjust(&self, second: u64, seen: &mut Seen) {
        let former = self.retry_after();
        let span = u64::from(former);
        if second.saturating_sub(seen.changed) < span {
            return;
        }
        let recent = seen.seconds.iter().filter(|(at, _)| second - at <= span);
        let dropped: u64 = recent.map(|(_, count)| count).sum();
        let next = if dropped >= 3 * span {
            (former * 2).min(MAX_SECONDS)
        } else if dropped < span {
            former.saturating_sub(1).max(1)
        } else {
            former
        };
        if next != former {
            seen.changed = second;
            self.retry_after.store(next, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clients_stay_away_longer_the_more_are_refused() {
        let drops = Drops::default();
        let mut shown = Vec::new();
        // Five a second for forty seconds, then one every ten.
        for second in 1..=40 {
            (0..5).for_each(|_| drops.record(Duration::from_secs(second)));
            shown.push(drops.retry_after());
        }
        assert_eq!(shown[..8], [1, 2, 2, 4, 4, 4, 4, 8]);
        assert_eq!(shown.last(), Some(&32));
        for second in 10..20 {
            drops.record(Duration::from_secs(second * 10));
        }
        assert!(drops.retry_after() < 32, "{}", drops.retry_after());
    }
}
