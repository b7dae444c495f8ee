//! A pod in the queue with the history of its attempts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::pod_info::PodInfo;

/// No back-off is longer, whatever the configuration says: a time so far off could not be written.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A pod that waits, and what its attempts came to.
#[derive(Debug, Clone)]
pub struct QueuedPod {
    /// The pod.
    pub info: Arc<PodInfo>,
    /// When it entered the queue, or came back after its last attempt.
    pub timestamp: Instant,
    /// How often it was taken.
    pub attempts: u32,
    /// How often it was rejected.
    pub unschedulable_count: u32,
    /// How often in a row something went wrong.
    pub error_count: u32,
    /// When its back-off is over, once computed.
    pub backoff_expiry: Option<Instant>,
    /// When it first entered the active queue.
    pub first_attempt: Option<Instant>,
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
    /// Since when the pod waits.
    pub since: Instant,
}

impl QueuedPod {
    /// A pod that has just arrived.
    #[must_use]
    pub fn new(info: Arc<PodInfo>, now: Instant) -> Self {
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

    /// When the back-off is over, aligned to whole seconds since `origin` if there is one; none for a pod that was never
    /// rejected.
    pub(crate) fn expiry(&mut self, initial: Duration, max: Duration, origin: Option<Instant>) -> Option<Instant> {
        let count = if self.error_count > 0 { self.error_count } else { self.unschedulable_count };
        if count == 0 {
            return None;
        }
        let ends = self.timestamp + backoff(count, initial, max);
        Some(*self.backoff_expiry.get_or_insert_with(|| whole_seconds(ends, origin)))
    }
}

/// The delay after so many failures.
fn backoff(count: u32, initial: Duration, max: Duration) -> Duration {
    const DOUBLINGS: u32 = 30;
    initial.saturating_mul(1 << (count - 1).min(DOUBLINGS)).min(max).min(LONGEST)
}

/// The last whole second since `origin`, so that pods whose back-off ends about the same time are taken by importance; the time
/// itself without one.
pub(crate) fn whole_seconds(time: Instant, origin: Option<Instant>) -> Instant {
    origin.map_or(time, |origin| origin + Duration::from_secs(time.saturating_duration_since(origin).as_secs()))
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

    #[tokio::test(start_paused = true)]
    async fn errors_count_for_themselves() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let info = crate::test_objects::pod("p").info(&crate::pod_class::ClassTable::default());
        for (unschedulable, errors, seconds) in [(0, 0, None), (3, 0, Some(4)), (3, 1, Some(1)), (1, 3, Some(4))] {
            let mut pod = QueuedPod::new(Arc::clone(&info), now);
            (pod.unschedulable_count, pod.error_count) = (unschedulable, errors);
            let ends = pod.expiry(second, 10 * second, Some(now));
            assert_eq!(ends.map(|ends| (ends - now).as_secs()), seconds, "{unschedulable} {errors}");
        }
    }
}
