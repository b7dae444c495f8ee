//! Whether a pod has ended, is being deleted, is ready or available.

use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::constants::pod_phase;
use api_types::core_v1::{Container, Pod};

use crate::conditions;

/// Whether the pod has run to its end, well or not.
#[must_use]
pub fn is_terminal(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), pod_phase::SUCCEEDED | pod_phase::FAILED)
}

/// Whether the pod has not ended and is not being deleted.
#[must_use]
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether nothing of the pod runs any more: it has ended, or is being deleted and no container of it runs. A container
/// of which nothing is told counts as running.
#[must_use]
pub fn is_terminated(pod: &Pod) -> bool {
    let status = &pod.status;
    let lists = [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
    let mut states = lists.into_iter().flatten().map(|container| &container.state);
    is_terminal(pod)
        || (pod.metadata.deletion_timestamp.is_some()
            && states.all(|state| state.terminated.is_some() || state.waiting.is_some()))
}

/// Whether the pod's `Ready` condition is true.
#[must_use]
pub fn is_ready(pod: &Pod) -> bool {
    conditions::is_true(&pod.status.conditions, "Ready")
}

/// Whether the pod has been ready for at least `min_ready`.
#[must_use]
pub fn is_available(pod: &Pod, min_ready: Duration, now: Time) -> bool {
    if !is_ready(pod) {
        return false;
    }
    let since = conditions::find(&pod.status.conditions, "Ready").map(|ready| ready.last_transition_time);
    min_ready.is_zero() || since.is_some_and(|since| !since.is_zero() && since + min_ready <= now)
}

/// Whether an init container keeps running beside the main ones (a sidecar).
#[must_use]
pub fn is_sidecar(init_container: &Container) -> bool {
    init_container.restart_policy.as_deref() == Some("Always")
}

/// `namespace/name` of the pod, as logs and keys have it.
#[must_use]
pub fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.namespace, pod.metadata.name)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus};

    use super::*;

    #[test]
    fn a_pod_has_terminated_once_nothing_of_it_runs() {
        let none = ContainerState::default();
        let over = ContainerState { terminated: Some(ContainerStateTerminated::default()), ..none.clone() };
        let waiting = ContainerState { waiting: Some(ContainerStateWaiting::default()), ..none.clone() };
        for (phase, is_deleted, states, expected) in [
            ("Running", false, vec![&over], false),
            ("Succeeded", false, vec![], true),
            ("Failed", false, vec![&none], true),
            ("Running", true, vec![], true),
            ("Running", true, vec![&over, &waiting], true),
            ("Running", true, vec![&over, &none], false),
        ] {
            let mut pod = Pod::default();
            pod.status.phase = phase.into();
            pod.metadata.deletion_timestamp = is_deleted.then(|| Time::from_unix_seconds(1));
            let status = |state: &ContainerState| ContainerStatus { state: state.clone(), ..Default::default() };
            pod.status.container_statuses = states.into_iter().map(status).collect();
            assert_eq!(is_terminated(&pod), expected, "{phase} {is_deleted} {:?}", pod.status.container_statuses);
        }
    }
}
