//! What a daemon set reports. Of several pods on a node the first one counts.

use api_machinery::time::Time;
use api_types::apps_v1::{DaemonSet, DaemonSetStatus};
use component_helpers::pod_state;

use super::manage::min_ready;
use super::placement::Placement;
use super::pod_content::is_updated;

/// The status by the pods that are there.
pub(super) fn status_of(
    set: &DaemonSet,
    placement: &Placement,
    hash: &str,
    observed_generation: i64,
    now: Time,
) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation,
        collision_count: set.status.collision_count,
        conditions: set.status.conditions.clone(),
        ..DaemonSetStatus::default()
    };
    for (node, verdict) in &placement.nodes {
        let first = placement.on(node).first();
        if !verdict.run {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = first else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pod_state::is_ready(pod));
        status.number_available += i32::from(pod_state::is_available(pod, min_ready(set), now));
        status.updated_number_scheduled += i32::from(is_updated(set, pod, hash));
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}
