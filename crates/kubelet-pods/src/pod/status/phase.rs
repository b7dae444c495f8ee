//! The phase of a pod, from its container statuses.

use api_types::core_v1::{Container, ContainerStatus, Pod, PodStatus};
use component_helpers::pod_state::is_sidecar;

use super::container_statuses::find;
use crate::pod::restart;
use crate::runtime::record::RuntimePod;

/// How many containers are in which situation.
#[derive(Debug, Default)]
struct Counts {
    pending_init: usize,
    init_failed_for_good: usize,
    pending_sidecar: usize,
    running: usize,
    waiting: usize,
    unknown: usize,
    stopped: usize,
    stopped_for_good: usize,
    succeeded: usize,
}

/// Whether some regular container has a record in the newest sandbox.
pub(super) fn is_initialized(pod: &Pod, seen: &RuntimePod) -> bool {
    let Some(active) = seen.sandboxes.first() else { return false };
    pod.spec
        .containers
        .iter()
        .any(|container| seen.records(&container.name).any(|record| record.sandbox_id == active.id))
}

pub(crate) fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Failed" | "Succeeded")
}

/// The phase; `ended` where all containers are stopped for good and the pod is not static.
pub(super) fn compute(pod: &Pod, status: &PodStatus, ended: bool, initialized: bool) -> &'static str {
    let mut counts = Counts::default();
    for container in &pod.spec.init_containers {
        let own = find(status, &container.name);
        if is_sidecar(container) {
            count_sidecar(&mut counts, own)
        } else {
            count_init(&mut counts, pod, container, own)
        }
    }
    for container in &pod.spec.containers {
        count_regular(&mut counts, pod, container, find(status, &container.name));
    }
    phase_of(&counts, ended, initialized)
}

fn phase_of(counts: &Counts, ended: bool, initialized: bool) -> &'static str {
    let outcome = if counts.stopped == counts.succeeded { "Succeeded" } else { "Failed" };
    let stopped = counts.running == 0 && counts.stopped > 0 && counts.unknown == 0;
    match () {
        () if counts.init_failed_for_good > 0 => "Failed",
        () if counts.pending_init > 0 || (counts.pending_sidecar > 0 && !initialized) => "Pending",
        () if counts.waiting > 0 => "Pending",
        () if counts.running > 0 && counts.unknown == 0 => "Running",
        () if stopped && ended => outcome,
        () if stopped && counts.stopped_for_good < counts.stopped => "Running",
        () if stopped => outcome,
        () => "Pending",
    }
}

fn count_init(counts: &mut Counts, pod: &Pod, container: &Container, own: Option<&ContainerStatus>) {
    let Some(own) = own else {
        counts.pending_init += 1;
        return;
    };
    let ended = own.state.terminated.as_ref();
    let ended = ended.or_else(|| own.state.waiting.as_ref().and(own.last_state.terminated.as_ref()));
    match ended {
        None => counts.pending_init += 1,
        Some(ended) if ended.exit_code == 0 || restart::allowed_after(pod, container, ended) => {}
        Some(_) => counts.init_failed_for_good += 1,
    }
}

fn count_sidecar(counts: &mut Counts, own: Option<&ContainerStatus>) {
    let Some(own) = own else {
        counts.unknown += 1;
        return;
    };
    if own.state.running.is_some() {
        counts.running += 1;
        counts.pending_sidecar += usize::from(own.started != Some(true));
    } else if own.state.waiting.is_some() && own.last_state.terminated.is_none() {
        counts.pending_sidecar += 1;
        counts.waiting += 1;
    }
}

fn count_regular(counts: &mut Counts, pod: &Pod, container: &Container, own: Option<&ContainerStatus>) {
    let Some(own) = own else {
        counts.unknown += 1;
        return;
    };
    if own.state.running.is_some() {
        counts.running += 1;
    } else if let Some(ended) = &own.state.terminated {
        counts.stopped += 1;
        counts.succeeded += usize::from(ended.exit_code == 0);
        counts.stopped_for_good += usize::from(!restart::allowed_after(pod, container, ended));
    } else if let Some(ended) = &own.last_state.terminated {
        counts.stopped += 1;
        counts.stopped_for_good += usize::from(!restart::allowed_after(pod, container, ended));
    } else {
        counts.waiting += 1;
    }
}
