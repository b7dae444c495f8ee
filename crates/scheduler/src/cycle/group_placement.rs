//! `TopologyAwareWorkloadScheduling` (KEP-5732): a group of pods is tried in each placement that comes into question, on copies of
//! the cluster, and goes to the best of those that have room for it.

use std::sync::Arc;

use api_types::scheduling_v1alpha2::PodGroup;

use super::algorithm::{Decision, Look, NoFit, Search};
use super::{Pass, Scheduler};
use crate::cache::Snapshot;
use crate::framework::{
    Code, CycleCx, CycleState, GroupCx, GroupKey, PlacedMember, Placement, Profile, Proposal, Status,
};
use crate::known_answers::ShapeAnswers;
use crate::plugins::gang_min_count;
use crate::pod_info::{NominatedPods, PodInfo};
use crate::queued_pod::QueuedPod;

/// A pod that has a place on a copy, with what plugins took note of.
type Placed = (CycleState, Arc<PodInfo>, Arc<str>);

/// Where a group is to go.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Only these nodes count; none where all do.
    pub(super) nodes: Option<Vec<Arc<str>>>,
    /// How many placements came into question; 0 where none were made up.
    pub(super) placements: usize,
}

/// How many pods must get a node so that a group may go on, beside those that have one.
pub(super) fn wanted(group: &PodGroup, placed_before: usize) -> usize {
    gang_min_count(group).unwrap_or(1).saturating_sub(placed_before).max(1)
}

impl Scheduler {
    /// Chooses where the group is tried for good; where it fits nowhere, that is the first of the placements, whose reasons are
    /// told. Refused where there is no placement at all.
    pub(super) fn choose_placement(
        &self,
        pass: &mut Pass,
        members: &[QueuedPod],
        key: &GroupKey,
        profile: &Profile,
    ) -> Result<Chosen, Status> {
        if !self.has_placements {
            return Ok(Chosen::default());
        }
        let Some(group) = self.group(key) else {
            let text = format!("podgroup.scheduling.k8s.io {:?} not found", key.name);
            return Err(Status::error(text));
        };
        self.refresh(pass);
        let (snapshot, placed) = (Arc::clone(&pass.snapshot), self.placed_members(key));
        let cx = GroupCx { snapshot: &snapshot, group: &group, placed: &placed };
        let (placements, plugin) = profile.run_placement_generate(cx)?;
        let count = placements.len();
        if count == 0 {
            return Err(Status::unschedulable("no feasible placements found").by(plugin.unwrap_or_default()));
        }
        let best = if count == 1 { 0 } else { self.best_placement(cx, &placements, members, profile)? };
        let nodes = placements.into_iter().nth(best).and_then(|placement| placement.nodes);
        Ok(Chosen { nodes, placements: count })
    }

    fn placed_members(&self, key: &GroupKey) -> Vec<PlacedMember> {
        let placed = self.groups.placed(key).into_iter().filter_map(|pod| {
            let node = self.cache.node_of(&pod.metadata.uid)?;
            Some(PlacedMember { pod: format!("{}/{}", pod.metadata.namespace, pod.metadata.name), node })
        });
        placed.collect()
    }

    /// The place of the best placement in the list; of the first where none has room.
    fn best_placement(
        &self,
        cx: GroupCx<'_>,
        placements: &[Placement],
        members: &[QueuedPod],
        profile: &Profile,
    ) -> Result<usize, Status> {
        let members: Vec<Arc<PodInfo>> = members.iter().map(|member| Arc::clone(&member.info)).collect();
        let (nominated, placed_before) = (self.queue.nominator().pods(), cx.placed.len());
        let wanted = wanted(cx.group, placed_before);
        let (mut places, mut proposals) = (Vec::new(), Vec::new());
        for (place, placement) in placements.iter().enumerate() {
            let cluster = placement.nodes.as_ref().map_or_else(|| cx.snapshot.clone(), |nodes| cx.snapshot.only(nodes));
            let (cluster, pods) = self.place_all(profile, &members, cluster, &nominated)?;
            if pods.len() >= wanted {
                places.push(place);
                proposals.push(Proposal { cluster, pods, placed_before });
            }
        }
        let totals =
            if proposals.len() > 1 { profile.run_placement_score(&proposals) } else { vec![0; proposals.len()] };
        // Which of the best it is, is left to chance.
        let ranked = places.into_iter().zip(totals).map(|(place, total)| ((total, self.rng.below(u64::MAX)), place));
        Ok(ranked.max().map_or(0, |(_, place)| place))
    }

    /// Tries to place a group's pods in a cluster as it would be, one after the other; nothing is kept of it but the cluster as
    /// it would be then, and the pods that have a place there. Nobody may be decided about meanwhile.
    pub(super) fn place_all(
        &self,
        profile: &Profile,
        members: &[Arc<PodInfo>],
        mut cluster: Snapshot,
        nominated: &NominatedPods,
    ) -> Result<(Snapshot, Vec<Arc<PodInfo>>), Status> {
        let (mut placed, mut start): (Vec<Placed>, _) = (Vec::new(), 0);
        let mut outcome = Ok(());
        for member in members {
            match self.place(profile, member, &cluster, nominated, &mut start) {
                Ok(Decision { node, mut state }) => {
                    if profile.run_reserve(&mut state, member, &node).is_ok() {
                        put(&mut cluster, &node, &self.with_claimed(member, &state, &node));
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
        outcome.map(|()| (cluster, placed.into_iter().map(|(_, member, _)| member).collect()))
    }

    /// The node for a pod in a cluster as it would be: nothing that is known of the real one counts.
    pub(super) fn place(
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
