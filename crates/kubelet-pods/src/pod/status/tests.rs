//! Tables of statuses: records of the runtime in, phase and container states out.

use std::collections::HashMap;

use api_machinery::time::Time;
use api_types::core_v1::{Container, ContainerStateRunning, ContainerStatus, Pod, PodCondition, PodStatus};

use super::*;
use crate::runtime::record::{ContainerRecord, RecordState, SandboxRecord};

#[derive(Default)]
struct NoProbes {
    results: HashMap<(ProbeKind, &'static str), ProbeResult>,
    workers: bool,
}

impl ProbeView for NoProbes {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult> {
        self.results.iter().find(|((of, id), _)| *of == kind && *id == container_id).map(|(_, result)| *result)
    }

    fn has_worker(&self, _container: &str, _kind: ProbeKind) -> bool {
        self.workers
    }

    fn poke(&self, _container: &str) {}
}

fn container(name: &str) -> Container {
    Container { name: name.into(), image: "image".into(), ..Container::default() }
}

fn pod(policy: &str, init: &[&str], names: &[&str]) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.generation = 4;
    pod.spec.restart_policy = policy.into();
    pod.spec.init_containers = init.iter().map(|name| container(name)).collect();
    pod.spec.containers = names.iter().map(|name| container(name)).collect();
    pod
}

fn record(name: &str, state: RecordState, exit_code: i32) -> ContainerRecord {
    ContainerRecord {
        started_at: 5_000_000_000,
        finished_at: 9_000_000_000,
        exit_code,
        reason: "Error".into(),
        image: "image:1".into(),
        image_ref: "sha256:1".into(),
        restart_count: 2,
        ..ContainerRecord::example(&format!("{name}-id"), name, state)
    }
}

fn seen(containers: Vec<ContainerRecord>) -> RuntimePod {
    let ips = vec!["10.0.0.7".into()];
    let sandbox = SandboxRecord { created_at: 1, ips, ..SandboxRecord::example("s", true) };
    RuntimePod { sandboxes: vec![sandbox], containers, ips: vec!["10.0.0.7".into()], ..RuntimePod::default() }
}

/// What statuses show by default.
const NOTHING_NEW: Shown =
    Shown { sandbox: true, former_readiness: true, stop_signals: false, image_digests: false, pod_resources: false };

struct Case<'a> {
    pod: &'a Pod,
    old: PodStatus,
    seen: RuntimePod,
    probes: NoProbes,
    failure: Option<Failure>,
    ended: bool,
    shows: Shown,
    actuated: HashMap<&'static str, ResourceRequirements>,
}

impl<'a> Case<'a> {
    fn new(pod: &'a Pod, records: Vec<ContainerRecord>) -> Self {
        Self {
            pod,
            old: PodStatus::default(),
            seen: seen(records),
            probes: NoProbes::default(),
            failure: None,
            ended: false,
            shows: NOTHING_NEW,
            actuated: HashMap::new(),
        }
    }

    fn status(&self) -> PodStatus {
        compute(&Inputs {
            pod: self.pod,
            old: &self.old,
            seen: &self.seen,
            probes: &self.probes,
            failure: &|_| self.failure.clone(),
            runtime_name: "containerd",
            host_ips: &["192.0.2.1".parse().unwrap()],
            ended: self.ended,
            is_static: false,
            forced: None,
            resize: &Resize::default(),
            resources: &|_| Vec::new(),
            actuated: &|name| self.actuated.get(name).cloned(),
            shows: self.shows,
            now: Time::from_unix_seconds(100),
        })
    }
}

fn condition(status: &PodStatus, type_: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    assert_eq!(found.observed_generation, 4);
    format!("{} {} {}", found.status, found.reason, found.message).trim_end().to_owned()
}

use RecordState::{Created, Exited, Running, Unknown};

#[test]
fn containers_that_are_removed_to_begin_anew_have_not_failed() {
    use api_types::core_v1::{ContainerRestartRule, ContainerRestartRuleOnExitCodes};
    let mut pod = pod("Never", &["i"], &["a", "b"]);
    let exit_codes = Some(ContainerRestartRuleOnExitCodes { operator: "In".into(), values: vec![42] });
    pod.spec.containers[0].restart_policy = Some("Never".into());
    pod.spec.containers[0].restart_policy_rules =
        vec![ContainerRestartRule { action: "RestartAllContainers".into(), exit_codes }];
    let running = Case::new(&pod, vec![record("i", Exited, 0), record("a", Running, 0), record("b", Running, 0)]);
    let mut before = running.status();
    assert_eq!((before.phase.as_str(), condition(&before, "AllContainersRestarting").as_str()), ("Running", "False"));
    let steps = [vec![record("a", Exited, 42), record("i", Exited, 0)], vec![record("a", Exited, 42)]];
    for records in steps {
        let case = Case { old: before, ..Case::new(&pod, records) };
        before = case.status();
        assert_eq!(before.phase, "Running");
        let expected = "True RestartAllContainersStarted container exited with restart policy rule";
        assert_eq!(condition(&before, "AllContainersRestarting"), expected);
        assert_eq!(condition(&before, "Initialized"), "True");
        let other = container_statuses::find(&before, "b").unwrap();
        let (waiting, last) = (other.state.waiting.as_ref().unwrap(), other.last_state.terminated.as_ref().unwrap());
        assert_eq!((waiting.reason.as_str(), last.exit_code, other.restart_count), ("RestartingAllContainers", 137, 3));
    }
    let case = Case { old: before, ..Case::new(&pod, vec![]) };
    let after = case.status();
    assert_eq!((after.phase.as_str(), condition(&after, "AllContainersRestarting").as_str()), ("Running", "False"));
    assert_eq!(container_statuses::find(&after, "b").unwrap().restart_count, 3, "counted once");
}

#[test]
fn phases() {
    for (policy, init, records, ended, expected) in [
        ("Always", &[][..], vec![], false, "Pending"),
        ("Always", &[], vec![record("a", Running, 0)], false, "Pending"),
        ("Always", &[], vec![record("a", Running, 0), record("b", Running, 0)], false, "Running"),
        ("Always", &[], vec![record("a", Running, 0), record("b", Exited, 1)], false, "Running"),
        ("Always", &[], vec![record("a", Exited, 0), record("b", Exited, 1)], false, "Running"),
        ("OnFailure", &[], vec![record("a", Exited, 0), record("b", Exited, 1)], false, "Running"),
        ("OnFailure", &[], vec![record("a", Exited, 0), record("b", Exited, 0)], false, "Succeeded"),
        ("Never", &[], vec![record("a", Exited, 0), record("b", Exited, 1)], false, "Failed"),
        ("Never", &["i"], vec![record("i", Exited, 1)], false, "Failed"),
        ("Always", &["i"], vec![record("i", Exited, 1)], false, "Pending"),
        ("Always", &["i"], vec![record("i", Running, 0)], false, "Pending"),
        (
            "Always",
            &["i"],
            vec![record("i", Exited, 1), record("a", Exited, 0), record("b", Exited, 0)],
            false,
            "Running",
        ),
        (
            "Always",
            &["i"],
            vec![record("i", Running, 0), record("a", Exited, 0), record("b", Exited, 0)],
            false,
            "Pending",
        ),
        ("Always", &[], vec![record("a", Exited, 0), record("b", Exited, 0)], true, "Succeeded"),
        ("Always", &[], vec![record("a", Exited, 0), record("b", Exited, 143)], true, "Failed"),
        ("Always", &[], vec![], true, "Failed"),
    ] {
        let pod = pod(policy, init, &["a", "b"]);
        let names: Vec<_> = records.iter().map(|record| (record.name.clone(), record.exit_code)).collect();
        let case = Case { ended, ..Case::new(&pod, records) };
        assert_eq!(case.status().phase, expected, "{policy} {names:?} ended {ended}");
    }
}

#[test]
fn an_end_is_never_left() {
    let pod = pod("Always", &[], &["a"]);
    let mut case = Case::new(&pod, vec![record("a", Running, 0)]);
    case.old.phase = "Failed".into();
    case.old.reason = "Evicted".into();
    let status = case.status();
    assert_eq!((status.phase.as_str(), status.reason.as_str()), ("Failed", "Evicted"));
    assert_eq!(condition(&status, "Ready"), "False PodFailed");
}

#[test]
fn records_become_states() {
    let pod = pod("Always", &[], &["a"]);
    let mut ended = record("a", Exited, 3);
    ended.id = "old".into();
    let status = Case::new(&pod, vec![record("a", Running, 0), ended]).status();
    let own = &status.container_statuses[0];
    assert_eq!(own.state.running, Some(ContainerStateRunning { started_at: Time::from_unix_seconds(5) }));
    let last = own.last_state.terminated.as_ref().unwrap();
    assert_eq!((last.exit_code, last.container_id.as_str()), (3, "containerd://old"));
    assert_eq!((own.container_id.as_str(), own.restart_count), ("containerd://a-id", 2));
    assert_eq!((own.ready, own.started), (true, Some(true)));
    assert_eq!((status.pod_ip.as_str(), status.host_ip.as_str()), ("10.0.0.7", "192.0.2.1"));
    assert_eq!(status.start_time, Some(Time::from_unix_seconds(100)));
    for type_ in ["PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStartContainers"] {
        assert_eq!(condition(&status, type_), "True");
    }
}

#[test]
fn what_vanished_is_told() {
    let pod = pod("Always", &[], &["a"]);
    let mut was = ContainerStatus { name: "a".into(), restart_count: 1, ..ContainerStatus::default() };
    was.state.running = Some(ContainerStateRunning::default());
    let mut case = Case::new(&pod, vec![]);
    case.old.container_statuses = vec![was];
    let own = case.status().container_statuses.remove(0);
    let last = own.last_state.terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_str(), own.restart_count), (137, "ContainerStatusUnknown", 2));
    assert_eq!(own.state.waiting.unwrap().reason, "ContainerCreating");
    case.seen.containers = vec![record("a", Unknown, 0)];
    let own = case.status().container_statuses.remove(0);
    assert_eq!(own.state.terminated.unwrap().message, "The container could not be located when the pod was terminated");
}

#[test]
fn failures_show_while_waiting() {
    let pod = pod("Always", &[], &["a"]);
    let failure = Some(Failure::new(crate::runtime::failure::WaitingReason::CrashLoopBackOff, "back-off"));
    let case = Case { failure: failure.clone(), ..Case::new(&pod, vec![record("a", Exited, 1)]) };
    let own = case.status().container_statuses.remove(0);
    assert_eq!(own.state.waiting.unwrap().reason, "CrashLoopBackOff");
    assert_eq!(own.last_state.terminated.unwrap().exit_code, 1);
    let case = Case { failure, ..Case::new(&pod, vec![record("a", Running, 0)]) };
    assert!(case.status().container_statuses[0].state.running.is_some(), "it runs after all");
    let own = Case::new(&pod, vec![record("a", Created, 0)]).status().container_statuses.remove(0);
    assert_eq!(own.state.waiting.unwrap().reason, "");
}

#[test]
fn probes_decide_readiness() {
    let mut pod = pod("Always", &[], &["a"]);
    pod.spec.containers[0].readiness_probe = Some(Box::default());
    pod.spec.containers[0].startup_probe = Some(Box::default());
    for (startup, readiness, expected) in [
        (None, None, (false, false)),
        (Some(ProbeResult::Unknown), None, (false, false)),
        (Some(ProbeResult::Success), Some(ProbeResult::Failure), (true, false)),
        (Some(ProbeResult::Success), Some(ProbeResult::Success), (true, true)),
        (Some(ProbeResult::Failure), Some(ProbeResult::Success), (false, false)),
    ] {
        let mut case = Case::new(&pod, vec![record("a", Running, 0)]);
        case.probes.workers = true;
        case.probes.results.extend(startup.map(|result| ((ProbeKind::Startup, "a-id"), result)));
        case.probes.results.extend(readiness.map(|result| ((ProbeKind::Readiness, "a-id"), result)));
        let status = case.status();
        let own = &status.container_statuses[0];
        assert_eq!((own.started == Some(true), own.ready), expected, "{startup:?} {readiness:?}");
        let text = if expected.1 { "True" } else { "False ContainersNotReady containers with unready status: [a]" };
        assert_eq!(condition(&status, "Ready"), text);
    }
}

#[test]
fn what_ran_before_the_kubelet_did_stays_what_it_was() {
    let mut pod = pod("Always", &[], &["a"]);
    pod.spec.containers[0].readiness_probe = Some(Box::default());
    pod.spec.containers[0].startup_probe = Some(Box::default());
    for (id, was, pod_ready, expected) in [
        ("a-id", (true, true), "True", (true, true)),
        ("a-id", (true, false), "False", (true, false)),
        // Its node was given up meanwhile: the probe has to speak first.
        ("a-id", (true, true), "False", (true, false)),
        ("a-id", (false, false), "False", (false, false)),
        ("another", (true, true), "True", (false, false)),
    ] {
        for workers in [true, false] {
            let mut case = Case::new(&pod, vec![record("a", Running, 0)]);
            case.probes.workers = workers || id == "another";
            let mut own = ContainerStatus { name: "a".into(), ready: was.1, ..ContainerStatus::default() };
            own.container_id = format!("containerd://{id}");
            own.started = Some(was.0);
            case.old.container_statuses = vec![own];
            let ready = PodCondition { type_: "Ready".into(), status: pod_ready.into(), ..PodCondition::default() };
            case.old.conditions = vec![ready];
            let own = case.status().container_statuses.remove(0);
            assert_eq!((own.started == Some(true), own.ready), expected, "{id} {was:?} {pod_ready} {workers}");
            // With the gate that goes back to what was before, only probes count.
            case.shows = Shown { former_readiness: false, ..NOTHING_NEW };
            let own = case.status().container_statuses.remove(0);
            assert_eq!((own.started == Some(true), own.ready), (!case.probes.workers, false), "{id} {was:?}");
            case.shows = NOTHING_NEW;
            // Once a probe has spoken, its word counts.
            case.probes.results.insert((ProbeKind::Startup, "a-id"), ProbeResult::Success);
            case.probes.results.insert((ProbeKind::Readiness, "a-id"), ProbeResult::Failure);
            let own = case.status().container_statuses.remove(0);
            assert_eq!((own.started, own.ready), (Some(true), false));
        }
    }
}

#[test]
fn init_containers_hold_the_others_up() {
    let pod = pod("Always", &["i", "j"], &["b", "a"]);
    let status = Case::new(&pod, vec![record("i", Exited, 0), record("j", Running, 0)]).status();
    assert_eq!(
        condition(&status, "Initialized"),
        "False ContainersNotInitialized containers with incomplete status: [j]"
    );
    let names: Vec<&str> = status.container_statuses.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "sorted by name");
    assert_eq!(status.container_statuses[0].state.waiting.as_ref().unwrap().reason, "PodInitializing");
    let init = &status.init_container_statuses;
    assert_eq!((init[0].ready, init[0].started), (true, Some(false)), "over");
    assert_eq!((init[1].ready, init[1].started), (false, Some(true)), "at work");
    let later = Case::new(&pod, vec![record("a", Running, 0), record("b", Running, 0)]).status();
    assert_eq!(condition(&later, "Initialized"), "True");
    assert_eq!(later.init_container_statuses[0].state.terminated.as_ref().unwrap().reason, "Completed");
    assert_eq!(later.phase, "Running");
}

#[test]
fn readiness_gates_are_asked() {
    let mut pod = pod("Always", &[], &["a"]);
    let gate = api_types::core_v1::PodReadinessGate { condition_type: "example.com/up".into() };
    pod.spec.readiness_gates = vec![gate];
    let status = Case::new(&pod, vec![record("a", Running, 0)]).status();
    let text =
        "False ReadinessGatesNotReady corresponding condition of pod readiness gate \"example.com/up\" does not exist.";
    assert_eq!(condition(&status, "Ready"), text);
    assert_eq!(condition(&status, "ContainersReady"), "True");
}

#[test]
fn transitions_keep_their_time() {
    let pod = pod("Always", &[], &["a"]);
    let mut case = Case::new(&pod, vec![record("a", Running, 0)]);
    case.old = case.status();
    for condition in &mut case.old.conditions {
        condition.last_transition_time = Time::from_unix_seconds(50);
    }
    case.seen.containers = vec![record("a", Exited, 1)];
    let status = case.status();
    let time = |type_: &str| status.conditions.iter().find(|it| it.type_ == type_).unwrap().last_transition_time;
    assert_eq!(time("Ready"), Time::from_unix_seconds(100));
    assert_eq!(time("PodScheduled"), Time::from_unix_seconds(50));
}

#[test]
fn what_gates_show_of_containers_is_shown_with_them_only() {
    let mut pod = pod("Always", &[], &["a"]);
    let mount = |name: &str| api_types::core_v1::VolumeMount {
        name: name.into(),
        mount_path: format!("/{name}"),
        ..Default::default()
    };
    pod.spec.containers[0].volume_mounts = vec![mount("image"), mount("other")];
    let mut running = record("a", Running, 0);
    running.stop_signal = node_api::cri::v1::Signal::Sigusr1.into();
    let image = node_api::cri::v1::ImageSpec { image: "repo@sha256:1".into(), ..Default::default() };
    running.mounts =
        vec![node_api::cri::v1::Mount { container_path: "/image".into(), image: Some(image), ..Default::default() }];
    let shown = |shows: Shown| {
        let status = Case { shows, ..Case::new(&pod, vec![running.clone()]) }.status();
        let own = &status.container_statuses[0];
        let images = own.volume_mounts.iter().map(|mount| Some(mount.volume_status.clone()?.image?.image_ref));
        (own.stop_signal.clone(), images.collect::<Vec<_>>())
    };
    assert_eq!(shown(NOTHING_NEW), (None, vec![None, None]));
    let all = Shown { stop_signals: true, image_digests: true, ..NOTHING_NEW };
    assert_eq!(shown(all), (Some("SIGUSR1".into()), vec![Some("repo@sha256:1".into()), None]));
}

#[test]
fn whether_the_sandbox_is_ready_is_told_where_the_gate_says_so() {
    let mut pod = Pod::default();
    pod.spec.containers = vec![Container { name: "c".into(), ..Container::default() }];
    let types = |pod: &Pod, sandbox: bool| {
        let case = Case { shows: Shown { sandbox, ..NOTHING_NEW }, ..Case::new(pod, Vec::new()) };
        let conditions = case.status().conditions;
        let of = |it: &api_types::core_v1::PodCondition| (it.type_.clone(), it.status.clone());
        conditions.iter().filter(|it| it.type_ == "PodReadyToStartContainers").map(of).collect::<Vec<_>>()
    };
    let told = |status: &str| vec![("PodReadyToStartContainers".to_owned(), status.to_owned())];
    assert_eq!((types(&pod, true), types(&pod, false)), (told("True"), vec![]));
    // What was said before stays as it is.
    pod.status.conditions = vec![api_types::core_v1::PodCondition {
        type_: "PodReadyToStartContainers".into(),
        status: "False".into(),
        ..Default::default()
    }];
    assert_eq!((types(&pod, true), types(&pod, false)), (told("True"), told("False")));
}

/// Amounts by resource.
fn amounts(list: &[(&str, &str)]) -> api_types::core_v1::ResourceList {
    list.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect()
}

#[test]
fn what_a_pod_has_as_a_whole_is_shown_where_the_gate_says_so() {
    let resources = |requests: &[(&str, &str)], limits: &[(&str, &str)]| ResourceRequirements {
        requests: amounts(requests),
        limits: amounts(limits),
        ..ResourceRequirements::default()
    };
    let mut pod = pod("Always", &[], &["a", "b"]);
    pod.spec.containers[0].resources = resources(&[("cpu", "1"), ("example.com/x", "2")], &[("cpu", "2")]);
    pod.spec.containers[1].resources = resources(&[("memory", "1Gi")], &[("cpu", "1")]);
    pod.spec.overhead = amounts(&[("cpu", "250m")]);
    let shown = |pod: &Pod, records: Vec<ContainerRecord>, actuated| {
        let shows = Shown { pod_resources: true, ..NOTHING_NEW };
        let status = Case { shows, actuated, ..Case::new(pod, records) }.status();
        (status.allocated_resources, status.resources.unwrap())
    };
    let all = amounts(&[("cpu", "1250m"), ("memory", "1Gi"), ("example.com/x", "2")]);
    let none = Case::new(&pod, Vec::new()).status();
    assert!(none.resources.is_none() && none.allocated_resources.is_empty(), "the gate is off");
    let (allocated, given) = shown(&pod, Vec::new(), HashMap::new());
    assert_eq!((&allocated, &given.requests, given.limits), (&all, &all, amounts(&[("cpu", "3250m")])));
    // What runs is held to what it was given last.
    let records = || vec![record("a", Running, 0), record("b", Running, 0)];
    let before = HashMap::from([("a", resources(&[("cpu", "500m")], &[("cpu", "2")]))]);
    let (allocated, given) = shown(&pod, records(), before);
    assert_eq!((allocated, given.requests), (all, amounts(&[("cpu", "750m"), ("memory", "1Gi")])));
    assert_eq!(given.limits, amounts(&[("cpu", "3250m")]), "memory is not limited");
    let whole = resources(&[("cpu", "3")], &[("cpu", "4"), ("memory", "2Gi")]);
    pod.spec.resources = Some(whole);
    let before = HashMap::from([("", resources(&[("cpu", "2")], &[("memory", "1Gi")]))]);
    let (allocated, given) = shown(&pod, records(), before);
    assert_eq!(allocated["cpu"], "3250m".parse().unwrap());
    assert_eq!((&given.requests["cpu"], &given.limits["memory"]), (&"2250m".parse().unwrap(), &"1Gi".parse().unwrap()));
}
