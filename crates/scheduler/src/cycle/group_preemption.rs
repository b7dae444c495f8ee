//! `WorkloadAwarePreemption`: where a group of pods does not fit, others that are less important are evicted for all of it, or
//! for nobody. The cluster is looked at as it would be, on a copy; places that plugins keep elsewhere, such as devices, are
//! taken and given back as when the group is tried for good.

use std::cmp::Reverse;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::scheduling_v1alpha2::PodGroup;

use super::algorithm::{Decision, Look, NoFit, Search};
use super::{Pass, Scheduler};
use crate::cache::Snapshot;
use crate::framework::{Code, CycleCx, CycleState, GroupKey, Profile, Status};
use crate::known_answers::ShapeAnswers;
use crate::plugins::gang_min_count;
use crate::pod_info::{NominatedPods, PodInfo};
use crate::preemption::execute::{Execution, Preemptor};
use crate::preemption::{self, NEVER, never_preempts, units};

const CONSTRAINED: &str = "workload aware preemption is not supported for pod groups with scheduling constraints";
const NO_VICTIMS: &str = "No preemption victims found for incoming preemptor";

/// A pod that has a place on the copy, with what plugins took note of.
type Placed = (CycleState, Arc<PodInfo>, Arc<str>);

impl Scheduler {
    /// Looks for pods that can go for a group whose pods, which have no places, do not fit; none where groups do not do so.
    /// There is nothing to be carried out where all victims are going already.
    ///
    /// # Errors
    /// Why nobody can go.
    pub(super) fn preempt_for_group(
        &self,
        pass: &mut Pass,
        group: Arc<PodGroup>,
        mut members: Vec<Arc<PodInfo>>,
        placed_before: usize,
        profile: &Profile,
    ) -> Option<Result<Option<Execution>, Status>> {
        let budgets = self.budgets.as_ref()?;
        profile.post_filter.iter().find(|at| at.name == preemption::NAME)?;
        self.metrics.preemption();
        if group.spec.scheduling_constraints.is_some() {
            return Some(Err(Status::unschedulable(CONSTRAINED)));
        }
        if members.iter().any(|pod| never_preempts(pod)) {
            return Some(Err(Status::unschedulable(NEVER)));
        }
        self.refresh(pass);
        members.sort_by_key(|pod| Reverse(pod.priority));
        let now = Time::from(self.clock.wall());
        let find = |key: &GroupKey| self.group(key);
        let lower = units::lower_units(&pass.snapshot, &group, find, now);
        if lower.is_empty() {
            return Some(Err(Status::unschedulable(NO_VICTIMS)));
        }
        let budgets = preemption::victims::Budgets::parse(&budgets.list());
        let wanted = gang_min_count(&group).unwrap_or(1).saturating_sub(placed_before).max(1);
        let nominated = self.queue.nominator().pods();
        let fits = |cluster: &Snapshot| self.fits(profile, &members, cluster.clone(), &nominated, wanted);
        let found = units::select(&pass.snapshot, &lower, &budgets, now, fits);
        Some(match found {
            Ok(Some(candidate)) => Ok(self.preempt(Preemptor::Group(group, members), candidate)),
            Ok(None) => Err(Status::unschedulable(NO_VICTIMS)),
            Err(status) => Err(status),
        })
    }

    /// Whether so many of a group's pods fit into a cluster at the same time.
    fn fits(
        &self,
        profile: &Profile,
        members: &[Arc<PodInfo>],
        mut cluster: Snapshot,
        nominated: &NominatedPods,
        wanted: usize,
    ) -> Result<bool, Status> {
        let (mut placed, mut start): (Vec<Placed>, _) = (Vec::new(), 0);
        let mut outcome = Ok(());
        for member in members {
            match self.place(profile, member, &cluster, nominated, &mut start) {
                Ok(Decision { node, mut state }) => {
                    let is_reserved = profile.run_reserve(&mut state, member, &node).is_ok();
                    if is_reserved {
                        put(&mut cluster, &node, member);
                        placed.push((state, Arc::clone(member), node));
                    } else {
                        profile.run_unreserve(&state, member, &node);
                    }
                }
                Err(NoFit::Failed(status)) if status.code == Code::Error => {
                    outcome = Err(status);
                    break;
                }
                Err(_) => {}
            }
        }
        for (state, member, node) in placed.iter().rev() {
            profile.run_unreserve(state, member, node);
        }
        outcome.map(|()| placed.len() >= wanted)
    }

    /// The node for a pod in a cluster as it would be: nothing that is known of the real one counts.
    fn place(
        &self,
        profile: &Profile,
        pod: &PodInfo,
        cluster: &Snapshot,
        nominated: &NominatedPods,
        start: &mut usize,
    ) -> Result<Decision, NoFit> {
        let search = Search {
            profile,
            cx: CycleCx { snapshot: cluster },
            nominated,
            percentage: profile.percentage_of_nodes_to_score.unwrap_or(self.percentage),
            parallelism: self.parallelism,
            rng: &self.rng,
            metrics: &self.metrics,
        };
        let mut known = ShapeAnswers::default();
        let found = search.feasible(pod, Look::Everywhere, start, &mut known, &mut |_| None)?;
        search.choose(pod, found, &mut known, false).map(|(decision, _)| decision)
    }
}

/// Puts a pod on a node of a copy.
fn put(cluster: &mut Snapshot, node: &str, pod: &Arc<PodInfo>) {
    let Some(mut info) =
        cluster.index_of(node).and_then(|index| cluster.nodes().get(index)).map(|info| (**info).clone())
    else {
        return;
    };
    info.add_pod(Arc::clone(pod));
    cluster.replace(&Arc::new(info));
}
