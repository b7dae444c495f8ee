//! Nodes to evict pods from, and which of them is best.

use std::cmp::Reverse;
use std::sync::Arc;

use api_machinery::time::Time;

use crate::framework::Candidate;
use crate::pod_info::PodInfo;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_class::ClassTable;
    use crate::test_objects::pod;

    /// Victims by priority and the second that they started, the most important first.
    fn candidate(node: &str, violations: usize, victims: &[(i32, i64)]) -> Candidate {
        let classes = ClassTable::default();
        let victims =
            victims.iter().map(|(priority, start)| pod("v").priority(*priority).started(*start).info(&classes));
        Candidate { node: node.into(), victims: victims.collect(), violations }
    }

    #[test]
    fn the_cheapest_node_comes_first() {
        for (name, better, worse) in [
            ("fewer budgets are violated", (1, &[(9, 1), (9, 1)][..]), (2, &[(1, 1)][..])),
            ("the most important victim matters less", (0, &[(5, 1), (5, 1)]), (0, &[(6, 1), (1, 1)])),
            ("less in sum", (0, &[(5, 1), (1, 1)]), (0, &[(5, 1), (4, 1)])),
            ("fewer victims", (0, &[(5, 1)]), (0, &[(5, 1), (i32::MIN, 1)])),
            ("it started later", (0, &[(5, 9)]), (0, &[(5, 8)])),
        ] {
            let both = vec![candidate("worse", worse.0, worse.1), candidate("better", better.0, better.1)];
            let best = best_first(both, Time::from_unix_seconds(100));
            assert_eq!(&*best[0].node, "better", "{name}");
        }
    }

    #[test]
    fn who_runs_for_longer_is_more_important() {
        let mut pods = candidate("n", 0, &[(1, 3), (5, 9), (5, 2), (1, 1)]).victims;
        by_importance(&mut pods, Time::from_unix_seconds(100));
        let order: Vec<_> = pods.iter().map(|pod| (pod.priority, start_of(pod, Time::from_unix_seconds(0)))).collect();
        assert_eq!(
            order,
            [(5, 2), (5, 9), (1, 1), (1, 3)].map(|(priority, at)| (priority, Time::from_unix_seconds(at)))
        );
    }
}
