//! `PodGroupPodsCount`: a placement is the better the more pods of the group have a node there (KEP-5732).

use std::sync::Arc;

use crate::framework::{BuildCx, PlacementScore, Plugin, PluginError, Proposal, normalize_by_maximum};
use crate::plugin_args::PluginArgs;

pub(super) const NAME: &str = "PodGroupPodsCount";

struct PodGroupPodsCount;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    Ok(Plugin::new(NAME).placement_score(Arc::new(PodGroupPodsCount)).wakes_on(Vec::new()))
}

impl PlacementScore for PodGroupPodsCount {
    fn score(&self, proposal: &Proposal) -> i64 {
        i64::try_from(proposal.placed_before + proposal.pods.len()).unwrap_or(i64::MAX)
    }

    /// By the largest count, so that one pod more or less among many makes little difference.
    fn normalize(&self, scores: &mut [i64]) {
        normalize_by_maximum(scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Snapshot;
    use crate::pod_class::ClassTable;
    use crate::test_objects::pod;

    #[test]
    fn all_pods_of_the_group_count() {
        let proposal = |placed_before, new: usize| {
            let pods = (0..new).map(|_| pod("p").info(&ClassTable::default())).collect();
            Proposal { cluster: Snapshot::default(), pods, placed_before }
        };
        let mut scores = [proposal(2, 2), proposal(2, 6), proposal(0, 0)].map(|one| PodGroupPodsCount.score(&one));
        assert_eq!(scores, [4, 8, 0]);
        PodGroupPodsCount.normalize(&mut scores);
        assert_eq!(scores, [50, 100, 0]);
    }
}
