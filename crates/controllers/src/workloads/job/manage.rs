//! Which pods a job lacks and which it has too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::Pod;
use component_helpers::{conditions, pod_state};

use super::back_off::{finish_time, wait};
use super::fate::is_suspended;
use super::indexes::{Indexes, index_of};
use super::metrics::Action;
use super::view::{View, completions, former_failures, is_indexed, replaces_failed_only, valid_index};

/// Most pods that are created or removed at a time.
const BURST: usize = 500;
/// Failed pods are not replaced sooner than this, however little of a delay is left.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// What to do about pods.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Pods to remove, without counting them as failures.
    pub remove: Vec<Arc<Pod>>,
    /// How many pods to create, and for indexed jobs for which indexes.
    pub create: usize,
    /// The indexes of the pods to create.
    pub indexes: Vec<i32>,
    /// When failed pods may be replaced.
    pub look_again: Option<Duration>,
    /// What metrics call this.
    pub action: Action,
}

impl View {
    /// Compares the active pods with those that are wanted.
    pub(super) fn manage(&self) -> Plan {
        if is_suspended(&self.job) {
            return Plan { remove: self.active.clone(), action: Action::PodsDeleted, ..Plan::default() };
        }
        let wanted = self.wanted();
        let excess = usize::try_from(self.active_count() - wanted).unwrap_or(0);
        let mut remove = self.surplus(excess);
        remove.truncate(BURST);
        if !remove.is_empty() {
            return Plan { remove, action: Action::PodsDeleted, ..Plan::default() };
        }
        let going = if replaces_failed_only(&self.job) { self.terminating } else { 0 };
        let missing = usize::try_from(wanted - self.active_count() - going).unwrap_or(0).min(BURST);
        if missing == 0 {
            return Plan { action: Action::Tracking, ..Plan::default() };
        }
        Plan { action: Action::PodsCreated, ..self.create(missing) }
    }

    /// How to come to so many pods more: at once, or later where the last ones have failed.
    fn create(&self, missing: usize) -> Plan {
        let left = self.failures.left(self.now);
        if self.job.spec.backoff_limit_per_index.is_none() && !left.is_zero() {
            return Plan { look_again: Some(left.max(SHORTEST_WAIT)), ..Plan::default() };
        }
        if is_indexed(&self.job) { self.create_indexes(missing) } else { Plan { create: missing, ..Plan::default() } }
    }

    /// How many pods should be active.
    fn wanted(&self) -> i32 {
        let parallelism = self.job.spec.parallelism.unwrap_or(1);
        let succeeded = self.success_count();
        match self.job.spec.completions {
            Some(completions) => completions.saturating_sub(succeeded).clamp(0, parallelism.max(0)),
            // Pods that share a queue of work: once one has found it empty, no more are started.
            None if succeeded > 0 => self.active_count(),
            None => parallelism,
        }
    }

    /// Pods with indexes they should not have, and then as many more as there are too many, the least useful first.
    fn surplus(&self, excess: usize) -> Vec<Arc<Pod>> {
        let (mut remove, mut left) =
            if is_indexed(&self.job) { self.misplaced() } else { (Vec::new(), self.active.clone()) };
        if remove.len() < excess {
            left.sort_by_cached_key(|pod| usefulness(pod));
            remove.extend(left.into_iter().take(excess - remove.len()));
        }
        remove
    }

    /// Pods without a valid index and all but the most useful of each index; and the rest.
    fn misplaced(&self) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
        let (mut remove, mut by_index) = (Vec::new(), BTreeMap::<i32, Vec<Arc<Pod>>>::new());
        for pod in &self.active {
            match valid_index(&self.job, pod) {
                Some(index) => by_index.entry(index).or_default().push(Arc::clone(pod)),
                None => remove.push(Arc::clone(pod)),
            }
        }
        let mut left = Vec::new();
        for mut pods in by_index.into_values() {
            pods.sort_by_cached_key(|pod| usefulness(pod));
            left.extend(pods.pop());
            remove.extend(pods);
        }
        (remove, left)
    }

    fn create_indexes(&self, missing: usize) -> Plan {
        let pending = self.pending_indexes(missing);
        if self.job.spec.backoff_limit_per_index.is_none() {
            return Plan { create: pending.len(), indexes: pending, ..Plan::default() };
        }
        let delay = |index: &i32| self.kept.get(index).map_or(Duration::ZERO, |pod| delay_of(pod, self.now));
        let ready: Vec<_> = pending.iter().copied().filter(|index| delay(index).is_zero()).collect();
        let soonest = pending.iter().map(delay).filter(|delay| !delay.is_zero()).min();
        Plan { create: ready.len(), indexes: ready, look_again: soonest, ..Plan::default() }
    }

    /// The lowest indexes that nothing is known of.
    fn pending_indexes(&self, missing: usize) -> Vec<i32> {
        let mut taken = self.done.clone();
        taken.extend(self.active.iter().filter_map(|pod| index_of(pod)));
        if let Some(given_up) = &self.given_up {
            taken.join(given_up);
        }
        if replaces_failed_only(&self.job) {
            let going: BTreeSet<_> =
                self.pods.iter().filter(|pod| is_going(pod)).filter_map(|pod| index_of(pod)).collect();
            taken.extend(going);
        }
        Indexes::gaps(&taken, completions(&self.job), missing)
    }
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() && !pod_state::is_terminal(pod)
}

/// How long the index of a failed pod still waits.
fn delay_of(pod: &Pod, now: Time) -> Duration {
    let (counted, ignored) = former_failures(pod);
    wait(counted.saturating_add(ignored).saturating_add(1), finish_time(pod), now)
}

/// The order in which pods are removed, least useful first.
fn usefulness(pod: &Pod) -> impl Ord + use<> {
    let phase = match pod.status.phase.as_str() {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let ready = pod_state::is_ready(pod);
    let since = conditions::find(&pod.status.conditions, "Ready").map(|ready| ready.last_transition_time);
    // No time at all comes before any; then the later goes before the earlier.
    let since = since.filter(|since| ready && !since.is_zero());
    let restarts = pod.status.container_statuses.iter().map(|status| status.restart_count).max().unwrap_or(0);
    (
        !pod.spec.node_name.is_empty(),
        phase,
        ready,
        since.map(Reverse),
        Reverse(restarts),
        Reverse(pod.metadata.creation_timestamp),
    )
}
