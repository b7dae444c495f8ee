//! A pod in the queue with the history of its attempts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::pod_info::PodInfo;

/// A pod that waits, and what its attempts came to.
#[derive(Debug, Clone)]
pub struct QueuedPod {
    /// The pod.
    pub info: Arc<PodInfo>,
    /// When it entered the queue, or came back after its last attempt.
    pub timestamp: SystemTime,
    /// How often it was taken.
    pub attempts: u32,
    /// How often it was rejected.
    pub unschedulable_count: u32,
    /// How often in a row something went wrong.
    pub error_count: u32,
    /// When its back-off is over, once computed.
    pub backoff_expiry: Option<SystemTime>,
    /// When it first entered the active queue.
    pub first_attempt: Option<SystemTime>,
    /// Plugins that rejected it.
    pub unschedulable_plugins: BTreeSet<&'static str>,
    /// Plugins that rejected it for now.
    pub pending_plugins: BTreeSet<&'static str>,
    /// The plugin that keeps it out of the active queue.
    pub gating_plugin: Option<&'static str>,
    /// Whether it was moved because it had waited too long.
    pub flushed: bool,
}

/// The order of the active queue: smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    /// The more important, the smaller.
    pub importance: i64,
    /// Nanoseconds since the epoch.
    pub since_ns: u128,
}

impl QueuedPod {
    /// A pod that has just arrived.
    #[must_use]
    pub fn new(info: Arc<PodInfo>, now: SystemTime) -> Self {
        Self {
            info,
            timestamp: now,
            attempts: 0,
            unschedulable_count: 0,
            error_count: 0,
            backoff_expiry: None,
            first_attempt: None,
            unschedulable_plugins: BTreeSet::new(),
            pending_plugins: BTreeSet::new(),
            gating_plugin: None,
            flushed: false,
        }
    }

    /// Whether any plugin rejected it.
    #[must_use]
    pub fn was_rejected(&self) -> bool {
        !self.unschedulable_plugins.is_empty() || !self.pending_plugins.is_empty()
    }

    /// When its back-off is over; none where it has none. Whole seconds, so that pods come back together.
    pub(super) fn expiry(&mut self, initial: Duration, max: Duration) -> Option<SystemTime> {
        let count = if self.error_count > 0 { self.error_count } else { self.unschedulable_count };
        if count == 0 {
            return None;
        }
        let expiry =
            *self.backoff_expiry.get_or_insert_with(|| whole_seconds(self.timestamp + backoff(count, initial, max)));
        Some(expiry)
    }
}

/// Doubles with every attempt up to the limit.
fn backoff(count: u32, initial: Duration, max: Duration) -> Duration {
    /// More doublings exceed every limit.
    const DOUBLINGS: u32 = 30;
    initial.saturating_mul(1 << (count - 1).min(DOUBLINGS)).min(max)
}

/// Without fractions of a second.
pub(super) fn whole_seconds(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        let second = Duration::from_secs(1);
        let delays: Vec<u64> = (1..7).map(|count| backoff(count, second, 10 * second).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff(u32::MAX, second, 10 * second), 10 * second);
    }
}
