//! How long a job waits before it replaces failed pods.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{ContainerStatus, Pod};
use client::ObjectKey;
use component_helpers::{conditions, pod_state};
use parking_lot::Mutex;

const FIRST_SECONDS: i64 = 10;
const LONGEST_SECONDS: i64 = 600;

/// The failures of a job since its last success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    count: u32,
    last: Option<Time>,
}

/// The failures of all jobs. Kept in memory only: after a restart a job does not wait until its next failure.
#[derive(Default)]
pub(super) struct BackOff {
    jobs: Mutex<BTreeMap<ObjectKey, Failures>>,
}

impl BackOff {
    pub(super) fn get(&self, job: &ObjectKey) -> Failures {
        self.jobs.lock().get(job).copied().unwrap_or_default()
    }

    pub(super) fn set(&self, job: &ObjectKey, failures: Failures) {
        self.jobs.lock().insert(job.clone(), failures);
    }

    pub(super) fn forget(&self, job: &ObjectKey) {
        self.jobs.lock().remove(job);
    }
}

impl Failures {
    /// The failures with what has newly finished: those after the latest success, or all of them without one.
    pub(super) fn after(self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Self {
        let success = succeeded.iter().map(|pod| finish_time(pod)).max();
        let times = failed.iter().map(|pod| finish_time(pod));
        let counted: Vec<_> = times.filter(|time| success.is_none_or(|success| *time > success)).collect();
        let before = if success.is_some() { 0 } else { self.count };
        let count = before.saturating_add(u32::try_from(counted.len()).unwrap_or(u32::MAX));
        let last = counted.into_iter().max().or(self.last.filter(|_| success.is_none()));
        Self { count, last }
    }

    /// How long to wait still.
    pub(super) fn left(self, now: Time) -> Duration {
        self.last.map_or(Duration::ZERO, |last| wait(self.count, last, now))
    }
}

/// What is left of the delay after so many failures, the last of them at `since`.
pub(super) fn wait(failures: u32, since: Time, now: Time) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let delay = FIRST_SECONDS.checked_shl(doublings.min(16)).unwrap_or(LONGEST_SECONDS).min(LONGEST_SECONDS);
    Duration::from_secs(u64::try_from(delay - now.seconds_since(since)).unwrap_or(0))
}

/// When a pod finished, as well as can be told.
pub(super) fn finish_time(pod: &Pod) -> Time {
    let by_containers = || {
        let sidecar = |status: &&ContainerStatus| {
            pod.spec.init_containers.iter().any(|init| init.name == status.name && pod_state::is_sidecar(init))
        };
        let statuses = pod.status.container_statuses.iter();
        let statuses = statuses.chain(pod.status.init_container_statuses.iter().filter(sidecar));
        let finished = |status: &ContainerStatus| status.state.terminated.as_ref().map(|end| end.finished_at);
        let times: Option<Vec<Time>> = statuses.map(finished).collect();
        times?.into_iter().max().filter(|time| !time.is_zero())
    };
    let by_readiness = || {
        let ready = conditions::find(&pod.status.conditions, "Ready").filter(|ready| ready.status == "False")?;
        Some(ready.last_transition_time).filter(|time| !time.is_zero())
    };
    let by_deletion = || {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        pod.metadata.deletion_timestamp?.unix_seconds().map(|at| Time::from_unix_seconds(at.saturating_sub(grace)))
    };
    by_containers().or_else(by_readiness).or_else(by_deletion).unwrap_or(pod.metadata.creation_timestamp)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ContainerStateTerminated, PodCondition};

    use super::super::super::fixtures::{at, pod};
    use super::*;

    fn ended(when: i64) -> Arc<Pod> {
        let mut pod = pod("p", "Failed", None);
        let mut status = ContainerStatus::default();
        status.state.terminated = Some(ContainerStateTerminated { finished_at: at(when), ..Default::default() });
        pod.status.container_statuses.push(status);
        Arc::new(pod)
    }

    #[test]
    fn delays_double_up_to_ten_minutes() {
        for (failures, elapsed, expected) in
            [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 11, 0), (2, 0, 20), (7, 0, 600), (99, 0, 600), (1, -5, 15)]
        {
            let left = wait(failures, at(100), at(100 + elapsed));
            assert_eq!(left, Duration::from_secs(expected), "{failures} {elapsed}");
        }
    }

    #[test]
    fn success_resets() {
        let twice = Failures::default().after(&[], &[ended(1), ended(5)]);
        assert_eq!(twice, Failures { count: 2, last: Some(at(5)) });
        assert_eq!(twice.after(&[], &[ended(9)]).count, 3);
        assert_eq!(twice.after(&[], &[]), twice);
        assert_eq!(twice.after(&[ended(7)], &[]), Failures::default());
        assert_eq!(twice.after(&[ended(7)], &[ended(6), ended(8)]), Failures { count: 1, last: Some(at(8)) });
    }

    #[test]
    fn the_finish_is_found_somewhere() {
        assert_eq!(finish_time(&ended(3)), at(3));
        let mut pod = pod("p", "Failed", None);
        pod.metadata.creation_timestamp = at(1);
        assert_eq!(finish_time(&pod), at(1));
        (pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds) = (Some(at(40)), Some(30));
        assert_eq!(finish_time(&pod), at(10));
        let ready = PodCondition {
            type_: "Ready".into(),
            status: "False".into(),
            last_transition_time: at(7),
            ..PodCondition::default()
        };
        pod.status.conditions.push(ready);
        assert_eq!(finish_time(&pod), at(7));
    }
}
