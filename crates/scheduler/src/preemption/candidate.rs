//! Nodes to evict pods from, and which of them is best.

use std::cmp::Reverse;
use std::sync::Arc;

use api_machinery::time::Time;

use crate::pod_info::PodInfo;

/// A node that could run the pod without some of its pods.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The node.
    pub node: Arc<str>,
    /// The pods to evict, the most important first.
    pub victims: Vec<Arc<PodInfo>>,
    /// How many of them a disruption budget protects.
    pub violations: usize,
}

/// When a pod started; one that has not started yet starts now.
pub(super) fn start_of(pod: &PodInfo, now: Time) -> Time {
    pod.pod.status.start_time.unwrap_or(now)
}

/// The most important first: by priority, then by age.
pub(super) fn by_importance(pods: &mut [Arc<PodInfo>], now: Time) {
    pods.sort_by_key(|pod| (Reverse(pod.priority), start_of(pod, now)));
}

impl Candidate {
    /// Smaller is better: protected pods, the highest priority, all priorities, how many, and last the youngest.
    fn cost(&self, now: Time) -> (usize, i32, i64, usize, Reverse<Time>) {
        /// Makes every priority positive, so that more pods always cost more.
        const SHIFT: i64 = 1 << 31;
        let highest = self.victims.first().map_or(i32::MIN, |pod| pod.priority);
        let sum = self.victims.iter().map(|pod| i64::from(pod.priority) + SHIFT).sum();
        let top = self.victims.iter().filter(|pod| pod.priority == highest);
        let earliest = top.map(|pod| start_of(pod, now)).min().unwrap_or(now);
        (self.violations, highest, sum, self.victims.len(), Reverse(earliest))
    }
}

/// The best candidate first; of equals the one that was found first.
pub(super) fn best_first(mut candidates: Vec<Candidate>, now: Time) -> Vec<Candidate> {
    candidates.sort_by_cached_key(|candidate| candidate.cost(now));
    candidates
}
