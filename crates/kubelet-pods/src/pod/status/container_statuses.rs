//! The statuses of single containers: the runtime's records, and what to say where there is none.

use api_machinery::time::Time;
use api_types::core_v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    ContainerUser, ImageVolumeStatus, LinuxContainerUser, Pod, PodStatus, ResourceRequirements, VolumeMountStatus,
    VolumeStatus,
};

use super::Inputs;
use crate::pod::containers::{Member, Role, members};
use crate::pod::restart;
use crate::probe::{ProbeKind, ProbeResult};
use crate::runtime::failure::WaitingReason;
use crate::runtime::record::{ContainerRecord, RecordState};
use crate::runtime::{plan, stop_signal};

const LOST: &str = "ContainerStatusUnknown";
const LOST_AT_END: &str = "The container could not be located when the pod was terminated";
const LOST_RUNNING: &str =
    "The container could not be located when the pod was deleted.  The container used to be Running";
const LOST_INIT: &str = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";
const REMOVED: &str = "The container is removed because RestartAllContainers in place";
const KILLED: i32 = 137;
/// Characters of termination messages in one pod, all containers together.
const MESSAGES_BYTES: usize = 12 * 1024;

/// A status with nothing but its container statuses.
pub(super) fn compute(inputs: &Inputs<'_>) -> PodStatus {
    let mut out = PodStatus::default();
    let limit = MESSAGES_BYTES / members(inputs.pod).count().max(1);
    for member in members(inputs.pod) {
        let mut status = one(inputs, &member);
        cut_messages(&mut status, limit);
        match member.role {
            Role::Init | Role::Sidecar => out.init_container_statuses.push(status),
            Role::Regular => out.container_statuses.push(status),
            Role::Ephemeral => out.ephemeral_container_statuses.push(status),
        }
    }
    out.container_statuses.sort_by(|a, b| a.name.cmp(&b.name));
    out.ephemeral_container_statuses.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

fn one(inputs: &Inputs<'_>, member: &Member<'_>) -> ContainerStatus {
    let container = member.container.as_ref();
    let old = find(inputs.old, &container.name);
    let mut records = inputs.seen.records(&container.name);
    let newest = records.next();
    let mut status = match newest {
        Some(record) => {
            let mut status = from_record(inputs, container, record, old);
            if let Some(before) = records.next() {
                status.last_state = state_of(inputs, before);
            }
            status
        }
        None => without_record(inputs, member, old),
    };
    show_failure(inputs, member, newest, &mut status);
    let given = newest.filter(|record| record.is_running()).and_then(|record| (inputs.actuated)(&record.name));
    static_parts(container, given.as_ref().unwrap_or(&container.resources), &mut status);
    if inputs.shows.image_digests {
        show_images(newest, &mut status.volume_mounts);
    }
    readiness(inputs, member, &mut status);
    status.allocated_resources_status = (inputs.resources)(container);
    status
}

/// The status of a container by name, in whatever list.
pub(super) fn find<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let lists = [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
    lists.into_iter().flatten().find(|own| own.name == name)
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: reason.to_owned(), message: message.to_owned() };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(exit_code: i32, reason: &str, message: &str) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

fn time(nanos: i64) -> Time {
    if nanos <= 0 { Time::default() } else { Time::from_unix_seconds(nanos / 1_000_000_000) }
}

fn full_id(inputs: &Inputs<'_>, id: &str) -> String {
    format!("{}://{id}", inputs.runtime_name)
}

fn state_of(inputs: &Inputs<'_>, record: &ContainerRecord) -> ContainerState {
    match record.state {
        RecordState::Running => ContainerState {
            running: Some(ContainerStateRunning { started_at: time(record.started_at) }),
            ..ContainerState::default()
        },
        RecordState::Exited => ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: record.exit_code,
                signal: 0,
                reason: record.reason.clone(),
                message: record.message.clone(),
                started_at: time(record.started_at),
                finished_at: time(record.finished_at),
                container_id: full_id(inputs, &record.id),
            }),
            ..ContainerState::default()
        },
        RecordState::Created | RecordState::Unknown => waiting("", ""),
    }
}

fn from_record(
    inputs: &Inputs<'_>,
    container: &Container,
    record: &ContainerRecord,
    old: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: container.name.clone(),
        state: state_of(inputs, record),
        restart_count: record.restart_count,
        image: record.image.clone(),
        image_id: record.image_ref.clone(),
        container_id: full_id(inputs, &record.id),
        user: record.user.as_ref().map(|user| ContainerUser {
            linux: Some(LinuxContainerUser {
                uid: user.uid,
                gid: user.gid,
                supplemental_groups: user.supplemental_groups.clone(),
            }),
        }),
        stop_signal: inputs.shows.stop_signals.then(|| stop_signal::shown(record.stop_signal)).flatten(),
        ..ContainerStatus::default()
    };
    let was_running = old.is_some_and(|old| old.state.running.is_some());
    if record.state == RecordState::Unknown && was_running {
        status.state = terminated(KILLED, LOST, LOST_AT_END);
        status.restart_count = old.map_or(0, |old| old.restart_count) + 1;
    }
    status
}

/// A container that the runtime does not know (yet, or any more).
fn without_record(inputs: &Inputs<'_>, member: &Member<'_>, old: Option<&ContainerStatus>) -> ContainerStatus {
    let pod = inputs.pod;
    let container = member.container.as_ref();
    let default = if pod.spec.init_containers.is_empty() {
        WaitingReason::ContainerCreating
    } else {
        WaitingReason::PodInitializing
    };
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        state: waiting(default.name(), ""),
        ..ContainerStatus::default()
    };
    if let Some(old) = old.filter(|_| member.role != Role::Ephemeral && plan::restarts_all(pod, inputs.seen)) {
        return removed(old, status);
    }
    if let Some(old) = old {
        if old.state.terminated.is_some() {
            return old.clone();
        }
        status.restart_count = old.restart_count;
        status.last_state = old.last_state.clone();
        if old.state.running.is_some() {
            status.last_state = terminated(KILLED, LOST, LOST_RUNNING);
            if pod.metadata.deletion_timestamp.is_none() {
                status.restart_count += 1;
            }
        }
    }
    if member.role == Role::Init && plan::any_regular_seen(pod, inputs.seen) {
        status.state = terminated(0, "Completed", LOST_INIT);
    }
    status
}

/// A container that was removed so that all begin anew: it has ended once more.
fn removed(old: &ContainerStatus, status: ContainerStatus) -> ContainerStatus {
    let told = old.state.waiting.as_ref().is_some_and(|waiting| waiting.reason == restart::RESTARTING_ALL);
    ContainerStatus {
        state: waiting(restart::RESTARTING_ALL, REMOVED),
        last_state: terminated(KILLED, restart::RESTARTING_ALL, REMOVED),
        restart_count: old.restart_count + i32::from(!told),
        ..status
    }
}

/// Where a container should be (re)started and could not, the failure is what it waits for.
fn show_failure(
    inputs: &Inputs<'_>,
    member: &Member<'_>,
    newest: Option<&ContainerRecord>,
    status: &mut ContainerStatus,
) {
    let container = member.container.as_ref();
    let wanted = match newest {
        None => inputs.pod.metadata.deletion_timestamp.is_none(),
        Some(record) => match record.state {
            RecordState::Running => false,
            RecordState::Exited if member.role == Role::Init && record.exit_code == 0 => false,
            RecordState::Exited if member.role == Role::Ephemeral => false,
            RecordState::Exited => restart::restarts_after(inputs.pod, container, record.exit_code),
            RecordState::Created | RecordState::Unknown => true,
        },
    };
    if !wanted || (member.role == Role::Init && status.state.terminated.as_ref().is_some_and(|it| it.exit_code == 0)) {
        return;
    }
    let Some(failure) = (inputs.failure)(&container.name) else { return };
    if status.state.terminated.is_some() {
        status.last_state = std::mem::take(&mut status.state);
    }
    status.state = waiting(failure.reason.name(), &failure.message);
}

/// What follows from the spec alone, and what the container was given.
fn static_parts(container: &Container, given: &ResourceRequirements, status: &mut ContainerStatus) {
    status.allocated_resources = container.resources.requests.clone();
    status.resources = Some(ResourceRequirements {
        limits: given.limits.clone(),
        requests: given.requests.clone(),
        claims: Vec::new(),
    });
    status.volume_mounts = container
        .volume_mounts
        .iter()
        .map(|mount| VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only,
            recursive_read_only: mount.read_only.then(|| {
                let wanted = mount.recursive_read_only.as_deref();
                if wanted == Some("Enabled") { "Enabled".to_owned() } else { "Disabled".to_owned() }
            }),
            volume_status: None,
        })
        .collect();
}

/// Which images are mounted as volumes, as the runtime has them.
fn show_images(newest: Option<&ContainerRecord>, mounts: &mut [VolumeMountStatus]) {
    for mount in newest.into_iter().flat_map(|record| &record.mounts) {
        let image_ref = mount.image.as_ref().map(|image| image.image.clone()).filter(|image| !image.is_empty());
        let at = mounts.iter_mut().find(|own| own.mount_path == mount.container_path);
        if let (Some(image_ref), Some(at)) = (image_ref, at) {
            at.volume_status = Some(VolumeStatus { image: Some(ImageVolumeStatus { image_ref }) });
        }
    }
}

fn readiness(inputs: &Inputs<'_>, member: &Member<'_>, status: &mut ContainerStatus) {
    let container = member.container.as_ref();
    match member.role {
        Role::Init => {
            status.ready = status.state.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0);
            // Init containers have no startup probe: to run is to be started.
            status.started = Some(status.state.running.is_some());
            return;
        }
        Role::Ephemeral => return,
        Role::Sidecar | Role::Regular => {}
    }
    let started = status.state.running.is_some() && is_started(inputs, container, status);
    status.started = Some(started);
    status.ready = started && is_ready(inputs, container, status);
}

/// What this very instance was said to be last, by this kubelet or by the one before it, where that counts.
fn before<'a>(inputs: &'a Inputs<'_>, status: &ContainerStatus) -> Option<&'a ContainerStatus> {
    let old = find(inputs.old, &status.name).filter(|old| old.container_id == status.container_id);
    old.filter(|_| inputs.shows.former_readiness)
}

fn bare_id(status: &ContainerStatus) -> &str {
    status.container_id.rsplit("//").next().unwrap_or_default()
}

fn is_started(inputs: &Inputs<'_>, container: &Container, status: &ContainerStatus) -> bool {
    match (&container.startup_probe, inputs.probes.result(ProbeKind::Startup, bare_id(status))) {
        (None, _) => true,
        (Some(_), Some(result)) => result == ProbeResult::Success,
        (Some(_), None) => before(inputs, status)
            .and_then(|old| old.started)
            .unwrap_or_else(|| !inputs.probes.has_worker(&container.name, ProbeKind::Startup)),
    }
}

fn is_ready(inputs: &Inputs<'_>, container: &Container, status: &ContainerStatus) -> bool {
    if container.readiness_probe.is_none() {
        return true;
    }
    let result = inputs.probes.result(ProbeKind::Readiness, bare_id(status));
    if result == Some(ProbeResult::Success) {
        return true;
    }
    let worker = inputs.probes.has_worker(&container.name, ProbeKind::Readiness);
    if worker {
        inputs.probes.poke(&container.name);
    }
    // No word of the probe yet, though the pod was ready: the kubelet is new, not the container.
    let was_ready = result.is_none()
        && before(inputs, status).is_some_and(|old| old.ready)
        && component_helpers::conditions::is_true(&inputs.old.conditions, "Ready");
    let none_yet = result.is_none() || result == Some(ProbeResult::Unknown);
    was_ready || (none_yet && !worker && inputs.ended)
}

/// At the end of a pod's life every container has ended, also where nobody saw it.
pub(super) fn finish(pod: &Pod, out: &mut PodStatus, initialized: bool) {
    let force = |status: &mut ContainerStatus| {
        if status.state.terminated.is_none() {
            status.state = terminated(KILLED, LOST, LOST_AT_END);
            status.ready = false;
            status.started = Some(false);
        }
    };
    if initialized || pod.spec.init_containers.is_empty() {
        out.container_statuses.iter_mut().for_each(force);
    }
    let last_run = out.init_container_statuses.iter().rposition(|status| {
        status.state.terminated.is_some() || status.state.running.is_some() || status.last_state.terminated.is_some()
    });
    let upto = last_run.map_or(1, |last| last + 1);
    out.init_container_statuses.iter_mut().take(upto).for_each(force);
}

fn cut_messages(status: &mut ContainerStatus, limit: usize) {
    for state in [&mut status.state, &mut status.last_state] {
        if let Some(terminated) = &mut state.terminated {
            let mut end = terminated.message.len().min(limit);
            while !terminated.message.is_char_boundary(end) {
                end -= 1;
            }
            terminated.message.truncate(end);
        }
    }
}
