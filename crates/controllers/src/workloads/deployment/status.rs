//! What a deployment reports: the sums over its replica sets, availability, progress and failures.

use api_types::apps_v1::constants::deployment_condition_type::{AVAILABLE, REPLICA_FAILURE};
use api_types::apps_v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetCondition};
use component_helpers::conditions;

use super::arithmetic::{max_unavailable, wanted};
use super::plan::{Draft, Step};
use super::progress;

/// Whether every wanted pod is there, new and available, and the controller has seen the newest wish.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = wanted(deployment);
    status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
        && status.observed_generation >= deployment.metadata.generation
}

impl Draft<'_> {
    /// The status by the replica sets; conditions other than `Available` are carried over.
    fn status(&self) -> DeploymentStatus {
        let sum = |of: fn(&ReplicaSet) -> i32| self.sets.iter().map(of).fold(0, i32::saturating_add);
        let available = sum(|set| set.status.available_replicas);
        let mut conditions = self.deployment.status.conditions.clone();
        let enough = available >= wanted(&self.deployment) - max_unavailable(&self.deployment);
        let (status, reason, message) = if enough {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        progress::set(&mut conditions, progress::condition(AVAILABLE, status, reason, message.to_owned(), self.now));
        DeploymentStatus {
            observed_generation: self.deployment.metadata.generation,
            replicas: sum(|set| set.status.replicas),
            updated_replicas: self.new_set().map_or(0, |set| set.status.replicas),
            ready_replicas: sum(|set| set.status.ready_replicas),
            available_replicas: available,
            unavailable_replicas: (self.total_size() - available).max(0),
            terminating_replicas: self.terminating(),
            collision_count: self.deployment.status.collision_count,
            conditions,
        }
    }

    /// The sum; nothing when an observed replica set does not say, or nobody is to know.
    fn terminating(&self) -> Option<i32> {
        let silent =
            |set: &&ReplicaSet| set.status.observed_generation > 0 && set.status.terminating_replicas.is_none();
        if !self.observed.tells_terminating || self.sets.iter().any(|set| silent(&set)) {
            return None;
        }
        Some(self.sets.iter().filter_map(|set| set.status.terminating_replicas).fold(0, i32::saturating_add))
    }

    /// The plan of a step that is not part of a rollout.
    pub(super) fn finish_without_progress(mut self) -> Step {
        self.deployment.status = self.status();
        self.finish(None)
    }

    /// The plan of a rollout's step, with `Progressing` and `ReplicaFailure`.
    pub(super) fn finish_rollout(mut self) -> Step {
        let mut status = self.status();
        progress::judge(&self.deployment, &mut status, self.new_set(), self.now);
        match self.failure() {
            Some(failure) => progress::set(&mut status.conditions, deployment_condition(failure)),
            None => {
                conditions::remove(&mut status.conditions, REPLICA_FAILURE);
            }
        }
        let unchanged = status == self.observed.stored.status;
        let next = progress::look_again(&self.deployment, &status, self.now).filter(|_| unchanged);
        self.deployment.status = status;
        self.finish(next)
    }

    /// Why pods of the new replica set, or else of any, are not made.
    fn failure(&self) -> Option<&ReplicaSetCondition> {
        let of = |set: &'_ ReplicaSet| conditions::find(&set.status.conditions, REPLICA_FAILURE).is_some();
        let set = self.new_set().filter(|set| of(set)).or_else(|| self.sets.iter().find(|set| of(set)))?;
        conditions::find(&set.status.conditions, REPLICA_FAILURE)
    }
}

fn deployment_condition(failure: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        last_update_time: failure.last_transition_time,
        last_transition_time: failure.last_transition_time,
        reason: failure.reason.clone(),
        message: failure.message.clone(),
    }
}
