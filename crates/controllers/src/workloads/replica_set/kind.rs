//! What ReplicaSets and ReplicationControllers have in common.

use api_types::apps_v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use api_types::core_v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};

use component_base::Feature;
use component_base::metrics::Desc;

use super::super::owners::Owner;
use super::super::written::{OF_REPLICA_SETS, skips};

const SKIPS: Desc = skips("replicaset_controller_stale_sync_skips_total");

/// A kind whose objects keep a number of equal pods. The status is that of a replica set.
pub(super) trait Replicated: Owner {
    /// The resource with its group, as logs and errors name it.
    const RESOURCE: &'static str;
    /// The gate of the guard against stale caches, and where looks that it puts off are counted; none for a guard that is
    /// always there and counts nothing.
    const GUARD: Option<(Feature, &'static Desc)>;
    /// How many pods are wanted; nothing below zero.
    fn wanted(&self) -> usize;
    /// The template of the pods.
    fn template(&self) -> Option<&PodTemplateSpec>;
    /// What was reported last.
    fn status(&self) -> ReplicaSetStatus;
    /// Reports.
    fn set_status(&mut self, status: &ReplicaSetStatus);
    /// What the kind's own status can say of this one.
    fn kept(status: &ReplicaSetStatus) -> ReplicaSetStatus;
}

fn count(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

impl Replicated for ReplicaSet {
    const RESOURCE: &'static str = "replicasets.apps";
    const GUARD: Option<(Feature, &'static Desc)> = Some((OF_REPLICA_SETS, &SKIPS));

    fn wanted(&self) -> usize {
        count(self.spec.replicas)
    }
    fn template(&self) -> Option<&PodTemplateSpec> {
        Some(&self.spec.template)
    }
    fn status(&self) -> ReplicaSetStatus {
        self.status.clone()
    }
    fn set_status(&mut self, status: &ReplicaSetStatus) {
        self.status.clone_from(status);
    }
    fn kept(status: &ReplicaSetStatus) -> ReplicaSetStatus {
        status.clone()
    }
}

impl Replicated for ReplicationController {
    const RESOURCE: &'static str = "replicationcontrollers";
    const GUARD: Option<(Feature, &'static Desc)> = None;

    fn wanted(&self) -> usize {
        count(self.spec.replicas)
    }
    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.template.as_ref()
    }
    fn status(&self) -> ReplicaSetStatus {
        let own = &self.status;
        let condition = |own: &ReplicationControllerCondition| ReplicaSetCondition {
            type_: own.type_.clone(),
            status: own.status.clone(),
            last_transition_time: own.last_transition_time,
            reason: own.reason.clone(),
            message: own.message.clone(),
        };
        ReplicaSetStatus {
            replicas: own.replicas,
            fully_labeled_replicas: own.fully_labeled_replicas,
            ready_replicas: own.ready_replicas,
            available_replicas: own.available_replicas,
            terminating_replicas: None,
            observed_generation: own.observed_generation,
            conditions: own.conditions.iter().map(condition).collect(),
        }
    }
    fn set_status(&mut self, status: &ReplicaSetStatus) {
        let condition = |own: &ReplicaSetCondition| ReplicationControllerCondition {
            type_: own.type_.clone(),
            status: own.status.clone(),
            last_transition_time: own.last_transition_time,
            reason: own.reason.clone(),
            message: own.message.clone(),
        };
        self.status = ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.iter().map(condition).collect(),
        };
    }
    fn kept(status: &ReplicaSetStatus) -> ReplicaSetStatus {
        ReplicaSetStatus { terminating_replicas: None, ..status.clone() }
    }
}
