//! What a stateful set reports.

use api_machinery::time::Time;
use api_types::apps_v1::constants::stateful_set_update_strategy_type::ROLLING_UPDATE;
use api_types::apps_v1::{StatefulSet, StatefulSetStatus};
use api_types::core_v1::Pod;

use super::history::History;
use super::identity::{revision_of, wanted};
use super::plan::{Slots, is_available, is_going, is_healthy};

/// The status by the pods that are there.
pub(super) fn status_of(set: &StatefulSet, slots: &Slots, history: &History, now: Time) -> StatefulSetStatus {
    let count = |test: &dyn Fn(&Pod) -> bool| {
        let pods = slots.pods().filter(|pod| !pod.status.phase.is_empty() && test(pod));
        i32::try_from(pods.count()).unwrap_or(i32::MAX)
    };
    let (current, update) = (&history.current.metadata.name, &history.update.metadata.name);
    let of = |revision: &str| count(&|pod| !is_going(pod) && revision_of(pod) == revision);
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: count(&|_| true),
        ready_replicas: count(&is_healthy),
        available_replicas: count(&|pod| is_available(set, pod, now)),
        current_replicas: of(current),
        updated_replicas: of(update),
        current_revision: current.clone(),
        update_revision: update.clone(),
        collision_count: Some(history.collisions),
        ..StatefulSetStatus::default()
    };
    let wanted = wanted(set);
    let rolled = status.updated_replicas == wanted && status.ready_replicas == wanted && status.replicas == wanted;
    if set.spec.update_strategy.type_ == ROLLING_UPDATE && rolled {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}

/// Whether a status is worth writing. The count of collisions alone is not.
pub(super) fn is_news(old: &StatefulSetStatus, new: &StatefulSetStatus) -> bool {
    let mut same = new.clone();
    (same.collision_count, same.conditions) = (old.collision_count, old.conditions.clone());
    same.observed_generation = old.observed_generation;
    new.observed_generation > old.observed_generation || same != *old
}
