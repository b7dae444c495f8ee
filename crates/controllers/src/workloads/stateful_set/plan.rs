//! What to do next, in order: make or mend replicas from the lowest ordinal up, remove surplus ones from the highest
//! down, then replace those of an older revision.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::intstr::Rounding;
use api_machinery::time::Time;
use api_types::apps_v1::StatefulSet;
use api_types::apps_v1::constants::pod_management_policy_type::PARALLEL;
use api_types::apps_v1::constants::stateful_set_update_strategy_type::ON_DELETE;
use api_types::core_v1::Pod;
use component_helpers::pod_state;

use super::identity::{is_in_range, ordinal_of, revision_of, start, wanted};

/// Most pods that are created at a time; a set may be told to have billions.
const BURST: usize = 500;

/// The pods of a set by ordinal. Takes memory for the pods that are there, however many there should be.
pub(super) struct Slots {
    /// The ordinals that should be there.
    pub ordinals: Range<i32>,
    /// Those of them that are.
    pub replicas: BTreeMap<i32, Arc<Pod>>,
    /// Those that should not, highest first.
    pub condemned: Vec<Arc<Pod>>,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Create the pod of an ordinal, and its claims before.
    Create(i32),
    /// Create the claims that a waiting pod lacks.
    Provide(Arc<Pod>),
    /// Put labels, volumes and owners of claims right.
    Mend(Arc<Pod>),
    /// Make a surplus pod the owner of its claims, where they are to go with it.
    Bequeath(Arc<Pod>),
    /// Delete the pod.
    Delete(Arc<Pod>),
}

/// Things to do, one group after the other.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// About replicas.
    pub replicas: Vec<Action>,
    /// Whether the replicas are independent of each other.
    pub parallel: bool,
    /// About surplus pods and updates, one after the other.
    pub then: Vec<Action>,
    /// Whether more replicas are missing than are created at a time.
    pub cut: bool,
}

impl Slots {
    /// Sorts the pods.
    pub(super) fn new(set: &StatefulSet, pods: &[Arc<Pod>]) -> Self {
        let mut replicas = BTreeMap::new();
        let mut condemned = Vec::new();
        for pod in pods {
            match ordinal_of(pod) {
                Some(ordinal) if is_in_range(set, ordinal) => drop(replicas.insert(ordinal, Arc::clone(pod))),
                Some(_) => condemned.push(Arc::clone(pod)),
                None => {}
            }
        }
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal_of(pod)));
        Self { ordinals: start(set)..start(set).saturating_add(wanted(set)), replicas, condemned }
    }

    /// All pods.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.replicas.values().chain(&self.condemned)
    }

    /// The pods that are there, upwards, each after the ordinals below it that are missing; at the end those above all.
    fn upwards(&self) -> impl Iterator<Item = (Range<i32>, Option<&Arc<Pod>>)> {
        let mut next = self.ordinals.start;
        let end = (self.ordinals.end, None);
        let present = self.replicas.iter().map(|(ordinal, pod)| (*ordinal, Some(pod)));
        present.chain([end]).map(move |(ordinal, pod)| {
            let missing = next..ordinal;
            next = ordinal.saturating_add(1);
            (missing, pod)
        })
    }
}

pub(super) fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod runs and is ready.
pub(super) fn is_healthy(pod: &Pod) -> bool {
    pod.status.phase == "Running" && pod_state::is_ready(pod)
}

/// Whether the pod has been ready for long enough.
pub(super) fn is_available(set: &StatefulSet, pod: &Pod, now: Time) -> bool {
    let seconds = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
    is_healthy(pod) && pod_state::is_available(pod, Duration::from_secs(seconds), now)
}

/// How many pods may be unavailable while they are updated, and how many of those that should be there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unavailable {
    pub most: i32,
    pub now: i32,
}

impl Unavailable {
    /// A share of the replicas is rounded down, and one pod may always be.
    pub(super) fn of(set: &StatefulSet, slots: &Slots, now: Time) -> Self {
        let value = set.spec.update_strategy.rolling_update.as_ref().and_then(|own| own.max_unavailable.as_ref());
        let most = value.and_then(|value| value.scaled(wanted(set), Rounding::Down).ok()).unwrap_or(1).max(1);
        let available = slots.replicas.values().filter(|pod| !is_going(pod) && is_available(set, pod, now));
        let available = i32::try_from(available.count()).unwrap_or(i32::MAX);
        Self { most, now: wanted(set).saturating_sub(available) }
    }
}

/// Decides. `in_order` says whether a pod has all of its identity, storage included; `unavailable` is known where several
/// pods may be updated at a time.
pub(super) fn plan(
    set: &StatefulSet,
    slots: &Slots,
    update: &str,
    now: Time,
    unavailable: Option<Unavailable>,
    in_order: impl Fn(&Pod) -> bool,
) -> Plan {
    let parallel = set.spec.pod_management_policy == PARALLEL;
    let planner = Planner { set, slots, update, now, parallel };
    let mut plan = Plan { parallel, ..Plan::default() };
    let passed = planner.replicas(&mut plan, in_order);
    if passed && planner.condemned(&mut plan.then) && set.spec.update_strategy.type_ != ON_DELETE {
        match unavailable {
            None => plan.then.extend(planner.outdated().map(Action::Delete)),
            Some(unavailable) => plan.then.extend(planner.outdated_within(unavailable).map(Action::Delete)),
        }
    }
    plan
}

struct Planner<'a> {
    set: &'a StatefulSet,
    slots: &'a Slots,
    update: &'a str,
    now: Time,
    parallel: bool,
}

impl Planner<'_> {
    fn is_unavailable(&self, pod: &Pod) -> bool {
        is_going(pod) || !is_available(self.set, pod, self.now)
    }

    /// Walks the replicas upwards; says whether all are as they should be, or none waits for another.
    fn replicas(&self, plan: &mut Plan, in_order: impl Fn(&Pod) -> bool) -> bool {
        let mut left = if self.parallel { BURST } else { 1 };
        for (missing, pod) in self.slots.upwards() {
            let before = plan.replicas.len();
            plan.replicas.extend(missing.clone().take(left).map(Action::Create));
            let made = plan.replicas.len() - before;
            left -= made;
            plan.cut |= self.parallel && made < missing.len();
            let waits = made > 0 || pod.is_some_and(|pod| self.replica(pod, &mut plan.replicas, &in_order));
            if waits && !self.parallel {
                return false;
            }
        }
        true
    }

    /// What one replica needs; says whether the next must wait for it.
    fn replica(&self, pod: &Arc<Pod>, actions: &mut Vec<Action>, in_order: impl Fn(&Pod) -> bool) -> bool {
        if pod_state::is_terminal(pod) {
            if !is_going(pod) {
                actions.push(Action::Delete(Arc::clone(pod)));
            }
            return true;
        }
        if pod.status.phase == "Pending" {
            actions.push(Action::Provide(Arc::clone(pod)));
        }
        if !self.parallel && self.is_unavailable(pod) {
            return true;
        }
        if !is_going(pod) && !in_order(pod) {
            actions.push(Action::Mend(Arc::clone(pod)));
        }
        false
    }

    /// Removes surplus pods; says whether there is nothing left to wait for.
    fn condemned(&self, actions: &mut Vec<Action>) -> bool {
        actions.extend(self.slots.condemned.iter().filter(|pod| !is_going(pod)).cloned().map(Action::Bequeath));
        let upwards = self.slots.replicas.values().chain(self.slots.condemned.iter().rev());
        let first_unavailable = upwards.into_iter().find(|pod| self.is_unavailable(pod)).map(|pod| &pod.metadata.name);
        for pod in &self.slots.condemned {
            if is_going(pod) {
                if self.parallel {
                    continue;
                }
                return false;
            }
            let stuck = self.is_unavailable(pod) && first_unavailable != Some(&pod.metadata.name);
            if !self.parallel && stuck {
                return false;
            }
            actions.push(Action::Delete(Arc::clone(pod)));
            if !self.parallel {
                return false;
            }
        }
        true
    }

    /// The lowest ordinal that is updated.
    fn lowest(&self) -> i32 {
        let strategy = self.set.spec.update_strategy.rolling_update.as_ref();
        let partition = strategy.and_then(|rolling| rolling.partition).unwrap_or(0);
        self.slots.ordinals.start.saturating_add(partition.max(0))
    }

    fn is_outdated(&self, pod: &Pod) -> bool {
        revision_of(pod) != self.update && !is_going(pod)
    }

    /// The highest pods of an older revision, as many as may be unavailable besides those that are.
    fn outdated_within(&self, unavailable: Unavailable) -> impl Iterator<Item = Arc<Pod>> {
        let lowest = self.lowest();
        let room = usize::try_from(unavailable.most.saturating_sub(unavailable.now)).unwrap_or(0);
        let downwards = self.slots.replicas.iter().rev().filter(move |(ordinal, _)| **ordinal >= lowest);
        downwards.map(|(_, pod)| pod).filter(|pod| self.is_outdated(pod)).take(room).cloned()
    }

    /// The highest pod of an older revision, when all above it are available.
    fn outdated(&self) -> Option<Arc<Pod>> {
        for ordinal in (self.lowest()..self.slots.ordinals.end).rev() {
            let pod = self.slots.replicas.get(&ordinal)?;
            if self.is_outdated(pod) {
                return Some(Arc::clone(pod));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }
}
