//! Which pods end when, and how long they get. Pure.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::kubelet_config_v1beta1::ShutdownGracePeriodByPodPriority;

/// Pods of this priority and above are critical to the system.
const CRITICAL: i32 = 2_000_000_000;

/// How long pods get from a priority on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub priority: i32,
    pub seconds: i64,
}

/// The periods of the configuration, the lowest priority first. Two that are given for all and for critical pods are a
/// short way to say the same.
#[must_use]
pub fn periods(
    by_priority: &[ShutdownGracePeriodByPodPriority],
    all_seconds: i64,
    critical_seconds: i64,
) -> Vec<Period> {
    let mut periods: Vec<Period> = by_priority
        .iter()
        .map(|one| Period { priority: one.priority, seconds: one.shutdown_grace_period_seconds })
        .collect();
    if periods.is_empty() && all_seconds > 0 {
        let usual = Period { priority: 0, seconds: all_seconds - critical_seconds };
        periods = vec![usual, Period { priority: CRITICAL, seconds: critical_seconds }];
    }
    periods.sort_by_key(|period| period.priority);
    periods
}

/// Pods that end together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) seconds: i64,
    pub(super) pods: Vec<Arc<Pod>>,
}

/// Pods by the highest period that is not above their priority; those below all are with the lowest. Who has none is left
/// out.
pub(super) fn groups(periods: &[Period], pods: Vec<Arc<Pod>>) -> Vec<Group> {
    let mut groups: Vec<Group> =
        periods.iter().map(|period| Group { seconds: period.seconds, pods: Vec::new() }).collect();
    for pod in pods {
        let priority = pod.spec.priority.unwrap_or_default();
        let above = periods.partition_point(|period| period.priority <= priority);
        if let Some(group) = groups.get_mut(above.saturating_sub(1)) {
            group.pods.push(pod);
        }
    }
    groups.retain(|group| !group.pods.is_empty());
    groups
}

/// What a pod's containers get: its own period, and no more than its group's.
pub(super) fn grace(pod: &Pod, group: &Group) -> i64 {
    pod.spec.termination_grace_period_seconds.map_or(group.seconds, |own| own.min(group.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, priority: Option<i32>) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.spec.priority = priority;
        Arc::new(pod)
    }

    #[test]
    fn pods_are_grouped_by_priority() {
        let listed = |priority, shutdown_grace_period_seconds| ShutdownGracePeriodByPodPriority {
            priority,
            shutdown_grace_period_seconds,
        };
        let three = periods(&[listed(1000, 5), listed(10, 20), listed(100, 10)], 0, 0);
        let pods = [("a", None), ("b", Some(10)), ("c", Some(99)), ("d", Some(100)), ("e", Some(2_000_001_000))];
        let grouped = |periods: &[Period]| -> Vec<(i64, String)> {
            let pods = pods.iter().map(|(name, priority)| pod(name, *priority)).collect();
            let name = |pods: Vec<Arc<Pod>>| pods.iter().map(|pod| pod.metadata.name.clone()).collect();
            groups(periods, pods).into_iter().map(|group| (group.seconds, name(group.pods))).collect()
        };
        assert_eq!(grouped(&three), [(20, "abc".into()), (10, "d".into()), (5, "e".into())]);
        let two = periods(&[], 30, 10);
        assert_eq!(two.iter().map(|period| period.seconds).sum::<i64>(), 30);
        assert_eq!(grouped(&two), [(20, "abcd".into()), (10, "e".into())]);
        assert!(grouped(&periods(&[], 0, 0)).is_empty());
    }

    #[test]
    fn the_shorter_period_counts() {
        let group = Group { seconds: 10, pods: Vec::new() };
        let mut one = Pod::default();
        assert_eq!(grace(&one, &group), 10);
        for (own, expected) in [(3, 3), (60, 10), (0, 0)] {
            one.spec.termination_grace_period_seconds = Some(own);
            assert_eq!(grace(&one, &group), expected);
        }
    }
}
