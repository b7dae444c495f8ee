//! Takes back the announcement that a pod will be disrupted when nothing has come of it.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use client::{Change, Informer, ObjectKey};
use component_helpers::{conditions, pod_state};
use controller::{Build, Controller, Cx, Next, ReconcileError};

const CONDITION: &str = "DisruptionTarget";
/// The kubelet has ended the pod itself: that is no announcement.
const BY_KUBELET: &str = "TerminationByKubelet";
/// How long an announcement stands.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// Adds the queue of pods with announcements.
pub(super) fn build(build: &mut Build<'_>, pods: Informer<Pod>) {
    let queue = build.queue("stale_pod_disruption");
    let clock = Arc::clone(build.clock());
    let announced = move |change: &Change<Pod>| {
        let left = due(change.object())?.since(Time::from(clock.wall()));
        (!change.is_deleted()).then(|| (change.key(), left))
    };
    drop(build.watch::<Pod>().enqueue_after(&queue, announced));
    build.run(&queue, 1, Arc::new(Stale { pods }));
}

/// When the announcement is to be taken back; nothing where there is none, or the pod is going.
pub(super) fn due(pod: &Pod) -> Option<Time> {
    if pod.metadata.deletion_timestamp.is_some() || pod_state::is_terminal(pod) {
        return None;
    }
    let condition = conditions::find(&pod.status.conditions, CONDITION)?;
    let stands = condition.status == "True" && condition.reason != BY_KUBELET;
    stands.then(|| condition.last_transition_time + LIMIT)
}

/// The pod without the announcement.
pub(super) fn taken_back(pod: &Pod, now: Time) -> Pod {
    let mut next = pod.clone();
    let condition = PodCondition {
        type_: CONDITION.to_owned(),
        status: "False".to_owned(),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    conditions::set(&mut next.status.conditions, condition, now);
    next
}

struct Stale {
    pods: Informer<Pod>,
}

#[async_trait::async_trait]
impl Controller for Stale {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(pod) = self.pods.get(key) else { return Ok(Next::Done) };
        let Some(due) = due(&pod) else { return Ok(Next::Done) };
        let now = Time::from(cx.clock.wall());
        if due > now {
            return Ok(Next::After(due.since(now)));
        }
        let next = taken_back(&pod, now);
        match cx.client.namespaced::<Pod>(&key.namespace).update_status(&next).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Done),
        }
    }
}
