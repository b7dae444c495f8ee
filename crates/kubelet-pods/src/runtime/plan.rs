//! What to do to a pod so that the runtime comes closer to its spec. Pure: records and probe results in, actions out.

use api_types::core_v1::{Container, Pod};
use component_helpers::pod_state::is_sidecar;

use super::labels;
use super::record::{ContainerRecord, RecordState, RuntimePod};
use crate::pod::restart;
use crate::probe::{ProbeKind, ProbeResult};

/// What probes say of a running container, by id.
pub trait ProbeResults {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult>;
}

/// A container that must be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    pub id: String,
    pub name: String,
    /// The event's text.
    pub message: String,
    /// The failed probe whose own grace period counts.
    pub probe: Option<ProbeKind>,
}

/// The actions on one pod, in the order in which they are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Stop all containers and the sandbox first.
    pub kill_pod: bool,
    /// Make a sandbox with this attempt number.
    pub create_sandbox: bool,
    pub attempt: u32,
    /// The sandbox that is there, good or not.
    pub sandbox_id: Option<String>,
    pub kill: Vec<Kill>,
    /// Instances that are removed in this order, running or not, so that all containers begin anew; by id.
    pub remove: Vec<String>,
    pub start_ephemeral: Vec<String>,
    pub start_init: Vec<String>,
    pub start: Vec<String>,
}

impl Plan {
    /// The names of the containers to start, in order.
    pub fn starts(&self) -> impl Iterator<Item = &String> {
        self.start_ephemeral.iter().chain(&self.start_init).chain(&self.start)
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        let stops = self.kill.len() + self.remove.len();
        !self.kill_pod && !self.create_sandbox && stops == 0 && self.starts().next().is_none()
    }
}

/// The actions for a pod that shall run.
pub fn plan(pod: &Pod, seen: &RuntimePod, results: &dyn ProbeResults) -> Plan {
    let (create_sandbox, attempt, sandbox_id) = sandbox_changed(pod, seen);
    let mut plan = Plan { kill_pod: create_sandbox, create_sandbox, attempt, sandbox_id, ..Plan::default() };
    if create_sandbox {
        plan_from_scratch(&mut plan, pod, seen);
        return plan;
    }
    plan.remove = removals(pod, seen);
    if !plan.remove.is_empty() {
        return plan;
    }
    let ephemeral = pod.spec.ephemeral_containers.iter().map(|container| &container.ephemeral_container_common.name);
    plan.start_ephemeral = ephemeral.filter(|name| seen.container(name).is_none()).cloned().collect();
    let initialized = plan_init(&mut plan, pod, seen, results);
    if plan.kill_pod || !initialized {
        return plan;
    }
    let mut kept = 0;
    for container in &pod.spec.containers {
        kept += usize::from(plan_regular(&mut plan, pod, container, seen, results));
    }
    if kept == 0 && plan.start.is_empty() {
        plan.kill_pod = true;
        plan.start_init.clear();
    }
    plan
}

/// Whether all containers are being removed to begin anew.
pub fn restarts_all(pod: &Pod, seen: &RuntimePod) -> bool {
    pod.spec.containers.iter().chain(&pod.spec.init_containers).any(|container| asks_for_all(pod, container, seen))
}

/// Whether the last end of a container has all begin anew.
fn asks_for_all(pod: &Pod, container: &Container, seen: &RuntimePod) -> bool {
    let ended = seen.container(&container.name).filter(|record| record.state == RecordState::Exited);
    ended.is_some_and(|record| restart::restarts_all(pod, container, record.exit_code))
}

/// The instances that are removed where all containers are to begin anew. Those whose end asks for it are the last: as long
/// as one of them is there, so is the reason to go on, also after the kubelet itself has begun anew.
fn removals(pod: &Pod, seen: &RuntimePod) -> Vec<String> {
    if !restarts_all(pod, seen) {
        return Vec::new();
    }
    let all = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let (askers, others): (Vec<&Container>, Vec<&Container>) =
        all().partition(|container| asks_for_all(pod, container, seen));
    // Older instances of those go before the newest one.
    let older = askers.iter().flat_map(|container| seen.records(&container.name).skip(1));
    let newest = askers.iter().filter_map(|container| seen.container(&container.name));
    let records = others.iter().flat_map(|container| seen.records(&container.name)).chain(older).chain(newest);
    records.map(|record| record.id.clone()).collect()
}

/// Whether a new sandbox is needed, its attempt, and the newest one there is.
fn sandbox_changed(pod: &Pod, seen: &RuntimePod) -> (bool, u32, Option<String>) {
    let Some(newest) = seen.sandboxes.first() else { return (true, 0, None) };
    let id = Some(newest.id.clone());
    let again = (true, newest.attempt + 1, id.clone());
    if seen.sandboxes.iter().filter(|sandbox| sandbox.ready).count() > 1 || !newest.ready {
        return again;
    }
    if newest.host_network.is_some_and(|host| host != pod.spec.host_network) {
        return again;
    }
    if !pod.spec.host_network && newest.has_network && newest.ips.is_empty() {
        return again;
    }
    (false, newest.attempt, id)
}

/// Whether a new sandbox is needed, for those who only report it.
pub fn needs_sandbox(pod: &Pod, seen: &RuntimePod) -> bool {
    sandbox_changed(pod, seen).0
}

fn plan_from_scratch(plan: &mut Plan, pod: &Pod, seen: &RuntimePod) {
    if pod.spec.restart_policy == "Never" && plan.attempt != 0 && !seen.containers.is_empty() {
        plan.create_sandbox = false;
        return;
    }
    let done = |container: &&Container| {
        let record = seen.container(&container.name);
        record.is_some_and(|record| record.succeeded() && on_failure(pod, container))
    };
    let wanted: Vec<String> = pod
        .spec
        .containers
        .iter()
        .filter(|container| !done(container))
        .map(|container| container.name.clone())
        .collect();
    if wanted.is_empty() && any_regular_seen(pod, seen) {
        plan.create_sandbox = false;
        return;
    }
    match pod.spec.init_containers.first() {
        Some(first) => plan.start_init = vec![first.name.clone()],
        None => plan.start = wanted,
    }
}

fn on_failure(pod: &Pod, container: &Container) -> bool {
    let own = container.restart_policy.as_deref().filter(|own| !own.is_empty());
    own.unwrap_or(&pod.spec.restart_policy) == "OnFailure"
}

/// Whether some regular container was created, in whatever sandbox.
pub fn any_regular_seen(pod: &Pod, seen: &RuntimePod) -> bool {
    pod.spec.containers.iter().any(|container| seen.container(&container.name).is_some())
}

/// Goes through the init containers from the last to the first; the last one with a record decides how far the pod has
/// come. Returns whether regular containers may run.
fn plan_init(plan: &mut Plan, pod: &Pod, seen: &RuntimePod, results: &dyn ProbeResults) -> bool {
    let containers = &pod.spec.init_containers;
    if containers.is_empty() {
        return true;
    }
    let mut initialized = any_regular_seen(pod, seen);
    // From the first record on, everything before it in the list has had its turn.
    let mut passed = initialized;
    let mut starts = Vec::new();
    for (index, container) in containers.iter().enumerate().rev() {
        let sidecar = is_sidecar(container);
        let Some(record) = seen.container(&container.name) else {
            if passed && sidecar {
                starts.push(container.name.clone());
            }
            continue;
        };
        if passed && !sidecar {
            continue;
        }
        match judge_init(plan, pod, container, record, results) {
            InitStep::Wait => {}
            InitStep::StartAgain => starts.push(container.name.clone()),
            InitStep::GiveUp => {
                plan.kill_pod = true;
                plan.start_init.clear();
                return false;
            }
            InitStep::Done { again } => {
                if again {
                    starts.push(container.name.clone());
                }
                if !passed {
                    match containers.get(index + 1) {
                        Some(next) => starts.push(next.name.clone()),
                        None => initialized = true,
                    }
                }
            }
        }
        passed = true;
    }
    if !passed {
        starts.extend(containers.first().map(|first| first.name.clone()));
    }
    let order = |name: &String| containers.iter().position(|container| container.name == *name);
    starts.sort_by_key(order);
    starts.dedup();
    plan.start_init = starts;
    initialized
}

/// What follows from the record of an init container whose turn it is.
enum InitStep {
    Wait,
    StartAgain,
    /// It has done what the next one waits for; `again` where it must be started anew all the same.
    Done {
        again: bool,
    },
    /// It failed for good.
    GiveUp,
}

fn judge_init(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    record: &ContainerRecord,
    results: &dyn ProbeResults,
) -> InitStep {
    let sidecar = is_sidecar(container);
    match record.state {
        RecordState::Created => InitStep::StartAgain,
        RecordState::Running if !sidecar => InitStep::Wait,
        RecordState::Running => judge_running_sidecar(plan, container, record, results),
        RecordState::Exited if sidecar => InitStep::StartAgain,
        RecordState::Exited if record.exit_code == 0 && record.reason != "OOMKilled" => InitStep::Done { again: false },
        RecordState::Exited if restart::restarts_after(pod, container, record.exit_code) => InitStep::StartAgain,
        RecordState::Exited => InitStep::GiveUp,
        RecordState::Unknown => {
            if !sidecar && restart::never(pod, container) {
                return InitStep::GiveUp;
            }
            let message = "Init container is in \"unknown\" state, try killing it before restart";
            plan.kill.push(kill(record, message, None));
            InitStep::StartAgain
        }
    }
}

fn judge_running_sidecar(
    plan: &mut Plan,
    container: &Container,
    record: &ContainerRecord,
    results: &dyn ProbeResults,
) -> InitStep {
    let name = &container.name;
    if container.startup_probe.is_some() {
        match results.result(ProbeKind::Startup, &record.id) {
            Some(ProbeResult::Success) => {}
            Some(ProbeResult::Failure) => {
                let message = format!("Init container {name} failed startup probe");
                plan.kill.push(kill(record, &message, Some(ProbeKind::Startup)));
                return InitStep::StartAgain;
            }
            _ => return InitStep::Wait,
        }
    }
    if let Some((message, probe)) = reason_to_kill(container, record, results, "Init container") {
        plan.kill.push(kill(record, &message, probe));
        return InitStep::Done { again: true };
    }
    InitStep::Done { again: false }
}

/// Plans a regular container; returns whether it runs and is left alone.
fn plan_regular(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    seen: &RuntimePod,
    results: &dyn ProbeResults,
) -> bool {
    let Some(record) = seen.container(&container.name) else {
        if pod.metadata.deletion_timestamp.is_none() {
            plan.start.push(container.name.clone());
        }
        return false;
    };
    match record.state {
        RecordState::Exited => {
            if restart::restarts_after(pod, container, record.exit_code) {
                plan.start.push(container.name.clone());
            }
            false
        }
        RecordState::Created | RecordState::Unknown => {
            if record.state == RecordState::Unknown {
                let message = "Container is in \"unknown\" state, try killing it before restart";
                plan.kill.push(kill(record, message, None));
            }
            if pod.metadata.deletion_timestamp.is_none() {
                plan.start.push(container.name.clone());
            }
            false
        }
        RecordState::Running => plan_running(plan, pod, container, record, results),
    }
}

fn plan_running(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    record: &ContainerRecord,
    results: &dyn ProbeResults,
) -> bool {
    let startup = results.result(ProbeKind::Startup, &record.id) == Some(ProbeResult::Failure);
    let found = reason_to_kill(container, record, results, "Container").or_else(|| {
        startup.then(|| (format!("Container {} failed startup probe", container.name), Some(ProbeKind::Startup)))
    });
    let Some((mut message, probe)) = found else { return true };
    // A changed definition restarts whatever the policy says.
    if probe.is_none() || !restart::never(pod, container) {
        message.push_str(", will be restarted");
        plan.start.push(container.name.clone());
    }
    plan.kill.push(kill(record, &message, probe));
    false
}

fn reason_to_kill(
    container: &Container,
    record: &ContainerRecord,
    results: &dyn ProbeResults,
    what: &str,
) -> Option<(String, Option<ProbeKind>)> {
    let name = &container.name;
    let hash = record.annotation(labels::HASH);
    if !hash.is_empty() && hash != labels::definition_hash(container) {
        return Some((format!("{what} {name} definition changed"), None));
    }
    if results.result(ProbeKind::Liveness, &record.id) == Some(ProbeResult::Failure) {
        return Some((format!("{what} {name} failed liveness probe"), Some(ProbeKind::Liveness)));
    }
    None
}

fn kill(record: &ContainerRecord, message: &str, probe: Option<ProbeKind>) -> Kill {
    Kill { id: record.id.clone(), name: record.name.clone(), message: message.to_owned(), probe }
}
