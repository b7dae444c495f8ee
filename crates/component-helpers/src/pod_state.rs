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
