//! Rolling update and recreate: from old replica sets to the new one.

use api_types::apps_v1::ReplicaSet;
use component_helpers::pod_state;

use super::arithmetic::{history_limit, max_unavailable, new_set_size, size, wanted};
use super::plan::{Draft, Step, age};
use super::{revisions, status};

impl Draft<'_> {
    /// One step of a rolling update: the new set grows, else the old ones shrink, else history is cleaned up.
    pub(super) fn roll(mut self) -> Step {
        self.sync_new();
        let Some(new) = self.new else { return self.make_new() };
        if self.grow_new(new) {
            return self.finish_rollout();
        }
        if self.shrink_old(new) {
            self.reports_anyway = true;
            return self.finish_rollout();
        }
        self.clean_up_if_complete();
        self.finish_rollout()
    }

    fn grow_new(&mut self, new: usize) -> bool {
        let own = size(&self.sets[new]);
        let wanted = wanted(&self.deployment);
        let to = if own > wanted { wanted } else { new_set_size(&self.deployment, self.total_size(), own) };
        own != wanted && self.set_size(new, to)
    }

    /// Takes pods from old sets, unhealthy ones first, as far as enough stay available.
    fn shrink_old(&mut self, new: usize) -> bool {
        let active = self.active_old();
        if active.is_empty() {
            return false;
        }
        let at_least = wanted(&self.deployment) - max_unavailable(&self.deployment);
        let unavailable = size(&self.sets[new]).saturating_sub(self.sets[new].status.available_replicas);
        let budget = (self.total_size() - at_least).saturating_sub(unavailable);
        if budget <= 0 {
            return false;
        }
        let unhealthy = |set: &ReplicaSet| size(set).saturating_sub(set.status.available_replicas);
        let mut shrunk = self.take(&active, budget, unhealthy);
        // A set that was just shrunk still reports the pods that are about to go.
        let available = |index: usize| self.sets[index].status.available_replicas.min(size(&self.sets[index]));
        let available = active.iter().chain([&new]).map(|index| available(*index)).fold(0, i32::saturating_add);
        if available > at_least {
            shrunk |= self.take(&active, available - at_least, size);
        }
        shrunk
    }

    /// Takes up to `budget` pods from the sets in turn, from each at most what `most` says.
    fn take(&mut self, from: &[usize], mut budget: i32, most: impl Fn(&ReplicaSet) -> i32) -> bool {
        let mut taken = false;
        for index in from {
            let set = &self.sets[*index];
            let amount = most(set).min(size(set)).min(budget);
            if amount > 0 {
                let to = size(set) - amount;
                taken |= self.set_size(*index, to);
                budget -= amount;
            }
        }
        taken
    }

    /// One step of a recreation: all old pods go before the first new one comes.
    pub(super) fn recreate(mut self) -> Step {
        self.sync_new();
        let mut shrunk = false;
        for index in self.active_old() {
            shrunk |= self.set_size(index, 0);
        }
        if shrunk || self.old_pods_remain() {
            return self.finish_rollout();
        }
        let Some(new) = self.new else { return self.make_new() };
        let to = wanted(&self.deployment);
        self.set_size(new, to);
        self.clean_up_if_complete();
        self.finish_rollout()
    }

    fn old_pods_remain(&self) -> bool {
        let new = self.new_set().map(|set| set.metadata.uid.as_str());
        let reported = self.old().iter().any(|index| self.sets[*index].status.replicas > 0);
        let others = self.observed.pods.iter().filter(|(uid, _)| Some(uid.as_str()) != new);
        reported || others.flat_map(|(_, pods)| pods).any(|pod| !pod_state::is_terminal(pod))
    }

    fn clean_up_if_complete(&mut self) {
        if status::is_complete(&self.deployment, &self.deployment.status) {
            self.clean_up();
        }
    }

    /// Marks the oldest revisions beyond the limit for deletion; one that is still in use is skipped, not replaced.
    pub(super) fn clean_up(&mut self) {
        let Some(limit) = history_limit(&self.deployment) else { return };
        let old = self.old();
        let mut sets: Vec<_> = old.iter().map(|index| &self.sets[*index]).collect();
        sets.retain(|set| set.metadata.deletion_timestamp.is_none());
        let excess = sets.len().saturating_sub(limit);
        let revision = |set: &ReplicaSet| revisions::revision(&set.metadata.annotations).unwrap_or(0);
        sets.sort_by(|one, two| revision(one).cmp(&revision(two)).then_with(|| age(one).cmp(&age(two))));
        let unused = |set: &&&ReplicaSet| {
            set.status.replicas == 0 && size(set) == 0 && set.metadata.generation <= set.status.observed_generation
        };
        self.deletes = sets.iter().take(excess).filter(unused).map(|set| set.metadata.clone()).collect();
    }
}
