//! The conditions of a pod that the kubelet owns.

use api_machinery::time::Time;
use api_types::core_v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use component_helpers::conditions::find;
use component_helpers::pod_state::is_sidecar;

use super::{Inputs, container_statuses};
use crate::pod::containers::long_running;
use crate::pod::restart;
use crate::runtime::plan::{needs_sandbox, restarts_all};
use crate::runtime::text;

const SCHEDULED: &str = "PodScheduled";
const READY: &str = "Ready";
const INITIALIZED: &str = "Initialized";
const CONTAINERS_READY: &str = "ContainersReady";
const SANDBOX: &str = "PodReadyToStartContainers";
const DISRUPTION: &str = "DisruptionTarget";
const RESIZE_PENDING: &str = "PodResizePending";
const RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
const ALL_RESTARTING: &str = "AllContainersRestarting";

/// Types that the kubelet writes; all others are passed on as they are.
pub(crate) const OWNED: &[&str] =
    &[SCHEDULED, READY, INITIALIZED, CONTAINERS_READY, SANDBOX, RESIZE_PENDING, RESIZE_IN_PROGRESS, ALL_RESTARTING];

/// All conditions in upstream's order, those of others first.
pub(super) fn compute(inputs: &Inputs<'_>, status: &PodStatus) -> Vec<PodCondition> {
    let pod = inputs.pod;
    let mut out: Vec<PodCondition> = foreign(&pod.status);
    if let Some(disrupted) = find(&inputs.old.conditions, DISRUPTION) {
        upsert(&mut out, disrupted.clone());
    }
    if let Some(text) = inputs.forced.and_then(|forced| forced.disruption.as_ref()) {
        upsert(&mut out, disruption_target(text, pod.metadata.generation));
    }
    let containers_ready = containers_ready(pod, status);
    if !super::is_terminal(&status.phase) {
        let pending = inputs.resize.pending.as_ref();
        let pending = pending.map(|why| condition(RESIZE_PENDING, true, why.outlook.name(), &why.message));
        let error = inputs.resize.error.as_deref();
        let reason = error.map_or("", |_| "Error");
        let going = inputs.resize.in_progress.then(|| condition(RESIZE_IN_PROGRESS, true, reason, error.unwrap_or("")));
        let generation = pod.metadata.generation;
        let resize = pending.into_iter().chain(going);
        out.extend(resize.map(|condition| PodCondition { observed_generation: generation, ..condition }));
    }
    let sandbox = inputs.shows.sandbox.then(|| condition(SANDBOX, sandbox_ready(inputs), "", ""));
    if sandbox.is_none() {
        // What an earlier kubelet has said stays, and is nobody's.
        out.extend(find(&pod.status.conditions, SANDBOX).cloned());
    }
    let own = [
        initialized(inputs, status),
        ready(pod, &containers_ready),
        containers_ready,
        condition(SCHEDULED, true, "", ""),
    ];
    let own =
        sandbox.into_iter().chain(own).chain(restart::may_restart_all(pod).then(|| all_restarting(inputs, status)));
    out.extend(own.map(|condition| PodCondition { observed_generation: pod.metadata.generation, ..condition }));
    for condition in &mut out {
        if condition.last_transition_time.is_zero() {
            condition.last_transition_time = transition(inputs, condition);
        }
    }
    out
}

/// Whether all containers are being removed so that they begin anew.
fn all_restarting(inputs: &Inputs<'_>, status: &PodStatus) -> PodCondition {
    match status.phase.as_str() {
        "Succeeded" => condition(ALL_RESTARTING, false, "PodCompleted", ""),
        "Failed" => condition(ALL_RESTARTING, false, "PodFailed", ""),
        _ if restarts_all(inputs.pod, inputs.seen) => {
            let text = "container exited with restart policy rule";
            condition(ALL_RESTARTING, true, "RestartAllContainersStarted", text)
        }
        _ => condition(ALL_RESTARTING, false, "", ""),
    }
}

/// A condition keeps the time of its last change as long as its status stays.
fn transition(inputs: &Inputs<'_>, condition: &PodCondition) -> Time {
    let lists = [&inputs.old.conditions, &inputs.pod.status.conditions];
    let before = lists.into_iter().find_map(|list| find(list, &condition.type_));
    before.filter(|before| before.status == condition.status).map_or(inputs.now, |before| before.last_transition_time)
}

/// Conditions that others own.
fn foreign(status: &PodStatus) -> Vec<PodCondition> {
    status.conditions.iter().filter(|condition| !OWNED.contains(&condition.type_.as_str())).cloned().collect()
}

/// The condition of a pod that makes way for something else.
fn disruption_target(message: &str, generation: i64) -> PodCondition {
    let condition = condition(DISRUPTION, true, "TerminationByKubelet", message);
    PodCondition { observed_generation: generation, ..condition }
}

pub(crate) fn upsert(conditions: &mut Vec<PodCondition>, new: PodCondition) {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) if old.status == new.status => {
            *old = PodCondition { last_transition_time: old.last_transition_time, ..new };
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

fn condition(type_: &str, status: bool, reason: &str, message: &str) -> PodCondition {
    PodCondition {
        type_: type_.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..PodCondition::default()
    }
}

fn sandbox_ready(inputs: &Inputs<'_>) -> bool {
    !inputs.ended && inputs.seen.has_ready_sandbox() && !needs_sandbox(inputs.pod, inputs.seen)
}

fn initialized(inputs: &Inputs<'_>, status: &PodStatus) -> PodCondition {
    let spec = &inputs.pod.spec;
    if status.phase == "Succeeded" {
        return condition(INITIALIZED, true, "PodCompleted", "");
    }
    // Who begins anew has been there before.
    let before = find(&inputs.old.conditions, INITIALIZED).is_some_and(|before| before.status == "True");
    if before && restart::may_restart_all(inputs.pod) {
        return condition(INITIALIZED, true, "", "");
    }
    let alive = |own: &ContainerStatus| own.state.running.is_some() || own.state.terminated.is_some();
    if spec.init_containers.is_empty() || status.container_statuses.iter().any(alive) {
        return condition(INITIALIZED, true, "", "");
    }
    let (mut unknown, mut incomplete) = (Vec::new(), Vec::new());
    for container in &spec.init_containers {
        match container_statuses::find(status, &container.name) {
            None => unknown.push(container.name.clone()),
            Some(own) if is_sidecar(container) && own.started == Some(true) => {}
            Some(own) if !is_sidecar(container) && own.ready => {}
            Some(_) => incomplete.push(container.name.clone()),
        }
    }
    let message = names_message(&unknown, &incomplete, "incomplete");
    let reason = if message.is_empty() { "" } else { "ContainersNotInitialized" };
    condition(INITIALIZED, message.is_empty(), reason, &message)
}

fn names_message(unknown: &[String], other: &[String], word: &str) -> String {
    let parts = [("unknown", unknown), (word, other)];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    parts
        .map(|(word, names)| format!("containers with {word} status: {}", text::list(names)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn containers_ready(pod: &Pod, status: &PodStatus) -> PodCondition {
    match status.phase.as_str() {
        "Succeeded" => return condition(CONTAINERS_READY, false, "PodCompleted", ""),
        "Failed" => return condition(CONTAINERS_READY, false, "PodFailed", ""),
        _ => {}
    }
    let (mut unknown, mut unready) = (Vec::new(), Vec::new());
    for container in long_running(pod) {
        match container_statuses::find(status, &container.name) {
            None => unknown.push(container.name.clone()),
            Some(own) if !own.ready => unready.push(container.name.clone()),
            Some(_) => {}
        }
    }
    let message = names_message(&unknown, &unready, "unready");
    let reason = if message.is_empty() { "" } else { "ContainersNotReady" };
    condition(CONTAINERS_READY, message.is_empty(), reason, &message)
}

/// Ready containers and fulfilled readiness gates.
fn ready(pod: &Pod, containers_ready: &PodCondition) -> PodCondition {
    if containers_ready.status != "True" {
        return PodCondition { type_: READY.to_owned(), ..containers_ready.clone() };
    }
    let mut missing = Vec::new();
    for gate in &pod.spec.readiness_gates {
        let type_ = &gate.condition_type;
        match find(&pod.status.conditions, type_) {
            None => missing.push(format!("corresponding condition of pod readiness gate {type_:?} does not exist.")),
            Some(found) if found.status != "True" => {
                missing
                    .push(format!("the status of pod readiness gate {type_:?} is not \"True\", but {}", found.status));
            }
            Some(_) => {}
        }
    }
    let reason = if missing.is_empty() { "" } else { "ReadinessGatesNotReady" };
    condition(READY, missing.is_empty(), reason, &missing.join(", "))
}

/// A pod that has ended is not ready, whatever was computed before.
pub(crate) fn refresh_terminal(status: &mut PodStatus, now: Time) {
    let reason = match status.phase.as_str() {
        "Failed" => "PodFailed",
        "Succeeded" => "PodCompleted",
        _ => return,
    };
    for condition in &mut status.conditions {
        if matches!(condition.type_.as_str(), READY | CONTAINERS_READY) && condition.status == "True" {
            condition.status = "False".to_owned();
            condition.reason = reason.to_owned();
            condition.message.clear();
            condition.last_transition_time = now;
        }
    }
}

/// Whether the kubelet's own conditions are equal, times left out.
pub(crate) fn same_conditions(one: &PodStatus, other: &PodStatus) -> bool {
    let own = |status: &PodStatus| {
        let mut own: Vec<PodCondition> = status
            .conditions
            .iter()
            .filter(|condition| OWNED.contains(&condition.type_.as_str()) || condition.type_ == DISRUPTION)
            .map(|condition| PodCondition {
                last_transition_time: Time::default(),
                last_probe_time: Time::default(),
                ..condition.clone()
            })
            .collect();
        own.sort_by(|a, b| a.type_.cmp(&b.type_));
        own
    };
    own(one) == own(other)
}
