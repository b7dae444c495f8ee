//! Where a whole group of pods may go (KEP-5732, topology-aware scheduling of workloads): the points at which plugins name
//! sets of nodes, each of which is tried for the group, and say which of those that have room for it is the best.

use std::sync::Arc;

use api_types::scheduling_v1alpha2::PodGroup;

use super::profile::Profile;
use super::status::Status;
use crate::cache::Snapshot;
use crate::pod_info::PodInfo;

/// A set of nodes that a group may go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// What it is called.
    pub name: String,
    /// Its nodes; none for all that there are.
    pub nodes: Option<Vec<Arc<str>>>,
}

/// A pod of the group that has a node, or is about to get one.
#[derive(Debug, Clone)]
pub struct PlacedMember {
    /// Namespace and name with a slash between.
    pub pod: String,
    /// Its node.
    pub node: Arc<str>,
}

/// What is known where placements of a group are made up.
#[derive(Clone, Copy)]
pub struct GroupCx<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The group.
    pub group: &'a PodGroup,
    /// Its pods that are placed.
    pub placed: &'a [PlacedMember],
}

/// Makes up the placements that come into question. A profile has at most one such plugin.
pub trait PlacementGenerate: Send + Sync {
    /// The placements.
    ///
    /// # Errors
    /// When something is wrong with the group or where its pods are.
    fn placements(&self, cx: GroupCx<'_>) -> Result<Vec<Placement>, Status>;
}

/// How a group would be placed.
pub struct Proposal {
    /// The nodes of the placement as they would be.
    pub cluster: Snapshot,
    /// The pods that would get a node.
    pub pods: Vec<Arc<PodInfo>>,
    /// How many of the group had one before.
    pub placed_before: usize,
}

/// Says which placement is the best.
pub trait PlacementScore: Send + Sync {
    /// The score of one, not normalized yet.
    fn score(&self, proposal: &Proposal) -> i64;

    /// Brings the scores of all into 0..=100.
    fn normalize(&self, _: &mut [i64]) {}
}

impl Profile {
    /// The placements of a group, and who made them up. Where no plugin does, the group may go anywhere.
    ///
    /// # Errors
    /// When the plugin fails.
    pub(crate) fn run_placement_generate(
        &self,
        cx: GroupCx<'_>,
    ) -> Result<(Vec<Placement>, Option<&'static str>), Status> {
        let Some(at) = self.placement_generate.first() else { return Ok((vec![Placement::default()], None)) };
        let placements = at.plugin.placements(cx).map_err(|status| status.by(at.name))?;
        Ok((placements, Some(at.name)))
    }

    /// The totals of the scores, one for each proposal.
    #[must_use]
    pub(crate) fn run_placement_score(&self, proposals: &[Proposal]) -> Vec<i64> {
        let mut totals = vec![0; proposals.len()];
        for at in &self.placement_score {
            let mut scores: Vec<i64> = proposals.iter().map(|proposal| at.plugin.score(proposal)).collect();
            at.plugin.normalize(&mut scores);
            for (total, score) in totals.iter_mut().zip(scores) {
                *total += score * at.weight;
            }
        }
        totals
    }
}
