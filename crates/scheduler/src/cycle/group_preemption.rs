//! `WorkloadAwarePreemption`: where a group of pods does not fit, others that are less important are evicted for all of it, or
//! for nobody. Who that is is found out beside the scheduling loop, on copies of the cluster as the decision saw it; what
//! follows from it is looked at again in the present. Places that plugins keep elsewhere, such as devices, are taken and
//! given back as when the group is tried for good: nobody is decided about during one such try, but between any two.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::scheduling_v1alpha2::PodGroup;

use super::group::GivenUp;
use super::group_placement::wanted;
use super::{Pass, ScheduleResult, Scheduler, Searching};
use crate::cache::Snapshot;
use crate::framework::{Candidate, GroupKey, PreemptorKey, Status};
use crate::pod_info::{NominatedPods, PodInfo};
use crate::preemption::execute::Preemptor;
use crate::preemption::victims::Budgets;
use crate::preemption::{self, NEVER, never_preempts, units};

const CONSTRAINED: &str = "workload aware preemption is not supported for pod groups with scheduling constraints";
const NO_VICTIMS: &str = "No preemption victims found for incoming preemptor";

/// A group that does not fit, and all that a search for others that can go for it goes by.
pub(crate) struct GroupSearch {
    scheduler: Arc<Scheduler>,
    given_up: GivenUp,
    group: Arc<PodGroup>,
    /// Its pods, the most important first.
    members: Vec<Arc<PodInfo>>,
    /// So many of them must fit.
    wanted: usize,
    budgets: Budgets,
    snapshot: Arc<Snapshot>,
    nominated: Arc<NominatedPods>,
}

impl GroupSearch {
    /// Searches; the pods are back in the queue when this returns.
    pub(super) async fn run(self) -> Vec<ScheduleResult> {
        let scheduler = Arc::clone(&self.scheduler);
        let found = self.find().await;
        if scheduler.evicts_beside {
            scheduler.settle(self, found)
        } else {
            scheduler.settle_at_once(self, found).await
        }
    }

    /// Who can go, as the decision saw the cluster.
    async fn find(&self) -> Result<Candidate, Status> {
        let scheduler = &self.scheduler;
        let now = Time::from(scheduler.clock.wall());
        let lower = units::lower_units(&self.snapshot, &self.group, |key| scheduler.group(key), now);
        if lower.is_empty() {
            return Err(Status::unschedulable(NO_VICTIMS));
        }
        let fits = |cluster: &Snapshot| {
            let _pass = scheduler.pass.lock();
            scheduler.fits(self, cluster, &self.nominated)
        };
        let found = units::select(&self.snapshot, &lower, &self.budgets, now, fits).await?;
        found.ok_or_else(|| Status::unschedulable(NO_VICTIMS))
    }
}

impl Scheduler {
    /// Begins to look for pods that can go for a group whose pods have no places; puts these back where groups do not do so, or
    /// nobody can go.
    pub(super) fn make_room(
        self: &Arc<Self>,
        pass: &mut Pass,
        given_up: GivenUp,
        group: Option<Arc<PodGroup>>,
        placed_before: usize,
    ) -> Vec<ScheduleResult> {
        let evicts = given_up.profile.post_filter.iter().any(|at| at.name == preemption::NAME);
        let (Some(budgets), Some(group), true) = (&self.budgets, group, evicts) else {
            return self.put_all_back(given_up, None);
        };
        self.metrics.preemption();
        let mut members = given_up.members();
        let ineligible = if group.spec.scheduling_constraints.is_some() {
            Some(CONSTRAINED)
        } else {
            members.iter().any(|pod| never_preempts(pod)).then_some(NEVER)
        };
        if let Some(reason) = ineligible {
            return self.put_all_back(given_up, Some(Err(Status::unschedulable(reason))));
        }
        members.sort_by_key(|pod| Reverse(pod.priority));
        self.refresh(pass);
        let search = GroupSearch {
            scheduler: Arc::clone(self),
            wanted: wanted(&group, placed_before),
            budgets: Budgets::parse(&budgets.list()),
            snapshot: Arc::clone(&pass.snapshot),
            nominated: self.queue.nominator().pods(),
            given_up,
            group,
            members,
        };
        vec![ScheduleResult { search: Some(Searching::Group(Box::new(search))), ..ScheduleResult::default() }]
    }

    /// Puts the pods back and starts what was found, if that still holds.
    fn settle(self: &Arc<Self>, search: GroupSearch, found: Result<Candidate, Status>) -> Vec<ScheduleResult> {
        let mut pass = self.pass.lock();
        let confirmed = found.and_then(|candidate| self.confirm_for_group(&mut pass, &search, candidate));
        let GroupSearch { given_up, group, members, .. } = search;
        let evicting = match confirmed {
            Ok(Some(candidate)) => Some(Ok(self.preempt(Preemptor::Group(group, members), candidate))),
            Ok(None) => None,
            Err(status) => Some(Err(status)),
        };
        // Before the pods are back in the queue, where they are held as long as others are evicted for them.
        self.put_all_back(given_up, evicting)
    }

    /// Evicts those who were found, if that still holds, before the pods are put back.
    async fn settle_at_once(
        self: &Arc<Self>,
        search: GroupSearch,
        found: Result<Candidate, Status>,
    ) -> Vec<ScheduleResult> {
        let confirmed = found.and_then(|candidate| self.confirm_for_group(&mut self.pass.lock(), &search, candidate));
        let GroupSearch { given_up, group, members, .. } = search;
        let evicting = match confirmed {
            Ok(Some(candidate)) => {
                Some(self.preempt_now(Preemptor::Group(group, members), candidate).await.map(|()| None))
            }
            Ok(None) => None,
            Err(status) => Some(Err(status)),
        };
        let _pass = self.pass.lock();
        self.put_all_back(given_up, evicting)
    }

    /// What was found, if it would make room in the present, and nothing else has; the pods are tried again soon otherwise.
    fn confirm_for_group(
        &self,
        pass: &mut Pass,
        search: &GroupSearch,
        mut candidate: Candidate,
    ) -> Result<Option<Candidate>, Status> {
        if self.gate.is_closed(&PreemptorKey::Group(GroupKey::named(&search.group)))
            || !search.members.iter().all(|member| self.is_waiting(member))
        {
            return Ok(None);
        }
        self.refresh(pass);
        let nominated = self.queue.nominator().pods();
        if Arc::ptr_eq(&pass.snapshot, &search.snapshot) && Arc::ptr_eq(&nominated, &search.nominated) {
            return Ok(Some(candidate));
        }
        if self.fits(search, &pass.snapshot, &nominated)? {
            // There is room now: nobody has to go.
            return Ok(None);
        }
        let uids: HashSet<&str> = candidate.victims.iter().map(|victim| victim.uid()).collect();
        let there = pass.snapshot.views().flat_map(|view| &view.info.pods);
        candidate.victims = there.filter(|pod| uids.contains(pod.uid())).cloned().collect();
        let cluster = units::without(&pass.snapshot, &candidate.victims);
        Ok(self.fits(search, &cluster, &nominated)?.then_some(candidate))
    }

    /// Whether enough of a group's pods fit into a cluster at the same time. Nobody may be decided about meanwhile.
    fn fits(&self, search: &GroupSearch, cluster: &Snapshot, nominated: &NominatedPods) -> Result<bool, Status> {
        let GroupSearch { members, wanted, given_up, .. } = search;
        let (_, placed) = self.place_all(&given_up.profile, members, cluster.clone(), nominated)?;
        Ok(placed.len() >= *wanted)
    }
}
