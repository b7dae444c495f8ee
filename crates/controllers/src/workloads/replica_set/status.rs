//! What a replica set reports, and when it must look again because time makes pods available.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::apps_v1::constants::replica_set_condition_type::REPLICA_FAILURE;
use api_types::apps_v1::{ReplicaSetCondition, ReplicaSetStatus};
use api_types::core_v1::Pod;
use component_helpers::{conditions, pod_state};

use super::kind::Replicated;
use super::{Features, Pods};

/// How long a pod must be ready.
fn min_ready<O: Replicated>(set: &O) -> Duration {
    Duration::from_secs(u64::try_from(set.min_ready_seconds()).unwrap_or(0))
}

fn count<'a>(pods: &'a [Arc<Pod>], test: impl Fn(&'a Pod) -> bool) -> i32 {
    i32::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i32::MAX)
}

/// The status by the pods as they were before scaling; `failure` is why scaling failed.
pub(super) fn status_of<O: Replicated>(
    set: &O,
    pods: &Pods,
    failure: Option<String>,
    features: Features,
    now: Time,
) -> ReplicaSetStatus {
    let template = set.template();
    let labels = template.iter().flat_map(|template| &template.metadata.labels);
    let labelled = |pod: &Pod| labels.clone().all(|(key, value)| pod.metadata.labels.get(key) == Some(value));
    let active = &pods.active;
    let mut conditions = set.status().conditions;
    note_failure(&mut conditions, set.wanted(), active.len(), failure, now);
    ReplicaSetStatus {
        replicas: count(active, |_| true),
        fully_labeled_replicas: count(active, labelled),
        ready_replicas: count(active, pod_state::is_ready),
        available_replicas: count(active, |pod| pod_state::is_available(pod, min_ready(set), now)),
        terminating_replicas: features.terminating.then_some(pods.terminating),
        observed_generation: set.meta().generation,
        conditions,
    }
}

/// A failure is noted once and stays as it was first seen, until scaling succeeds.
fn note_failure(
    conditions: &mut Vec<ReplicaSetCondition>,
    wanted: usize,
    active: usize,
    failure: Option<String>,
    now: Time,
) {
    let Some(message) = failure else {
        conditions::remove(conditions, REPLICA_FAILURE);
        return;
    };
    if conditions::find(conditions, REPLICA_FAILURE).is_some() {
        return;
    }
    let reason = if active < wanted { "FailedCreate" } else { "FailedDelete" };
    conditions.push(ReplicaSetCondition {
        type_: REPLICA_FAILURE.to_owned(),
        status: "True".to_owned(),
        last_transition_time: now,
        reason: reason.to_owned(),
        message,
    });
}

/// After what time the next ready pod becomes available, if any is still to.
pub(super) fn look_again<O: Replicated>(
    set: &O,
    active: &[Arc<Pod>],
    status: &ReplicaSetStatus,
    now: Time,
) -> Option<Duration> {
    let wait = min_ready(set);
    if wait.is_zero() || status.ready_replicas == status.available_replicas {
        return None;
    }
    let due = |pod: &Arc<Pod>| {
        let ready = conditions::find(&pod.status.conditions, "Ready").filter(|ready| ready.status == "True")?;
        let at = ready.last_transition_time + wait;
        (!ready.last_transition_time.is_zero() && at > now).then(|| at.since(now))
    };
    Some(active.iter().filter_map(due).min().unwrap_or(wait))
}
