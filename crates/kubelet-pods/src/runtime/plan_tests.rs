//! Tables of plans: a pod, what the runtime has of it, and what must be done.

use std::collections::HashMap;

use api_types::core_v1::{Container, Pod};

use super::labels;
use super::plan::{Plan, ProbeResults, plan};
use super::record::{ContainerRecord, RecordState, RuntimePod, SandboxRecord};
use crate::probe::{ProbeKind, ProbeResult};

/// Results by container id.
#[derive(Default)]
struct Said(HashMap<(ProbeKind, &'static str), ProbeResult>);

impl ProbeResults for Said {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult> {
        self.0.iter().find(|((of, id), _)| *of == kind && *id == container_id).map(|(_, result)| *result)
    }
}

fn container(name: &str) -> Container {
    Container { name: name.into(), image: "image".into(), ..Container::default() }
}

fn sidecar(name: &str) -> Container {
    Container { restart_policy: Some("Always".into()), ..container(name) }
}

fn pod(policy: &str, init: Vec<Container>, names: &[&str]) -> Pod {
    let mut pod = Pod::default();
    pod.spec.restart_policy = policy.into();
    pod.spec.init_containers = init;
    pod.spec.containers = names.iter().map(|name| container(name)).collect();
    pod
}

fn sandbox(id: &str, ready: bool) -> SandboxRecord {
    let ips = vec!["10.0.0.1".into()];
    SandboxRecord { attempt: 2, created_at: 1, ips, ..SandboxRecord::example(id, ready) }
}

fn record(name: &str, state: RecordState, exit_code: i32) -> ContainerRecord {
    let hash = labels::definition_hash(&container(name));
    ContainerRecord {
        started_at: 1,
        finished_at: 2,
        exit_code,
        image: "image".into(),
        annotations: HashMap::from([(labels::HASH.to_owned(), hash)]),
        ..ContainerRecord::example(&format!("{name}-id"), name, state)
    }
}

fn seen(records: Vec<ContainerRecord>) -> RuntimePod {
    RuntimePod { sandboxes: vec![sandbox("s", true)], containers: records, ..RuntimePod::default() }
}

/// A plan in short: what is killed, made and started.
fn short(plan: &Plan) -> String {
    let mut out = Vec::new();
    if plan.kill_pod {
        out.push("kill pod".to_owned());
    }
    if plan.create_sandbox {
        out.push(format!("sandbox {}", plan.attempt));
    }
    out.extend(plan.kill.iter().map(|kill| format!("kill {}: {}", kill.name, kill.message)));
    out.extend(plan.start_init.iter().map(|name| format!("init {name}")));
    out.extend(plan.start.iter().map(|name| format!("start {name}")));
    out.join("; ")
}

fn planned(pod: &Pod, seen: &RuntimePod) -> String {
    short(&plan(pod, seen, &Said::default()))
}

use RecordState::{Created, Exited, Running, Unknown};

#[test]
fn sandboxes_are_made_and_remade() {
    let two = pod("Always", vec![], &["a", "b"]);
    assert_eq!(planned(&two, &RuntimePod::default()), "kill pod; sandbox 0; start a; start b");
    let mut old = seen(vec![record("a", Exited, 0), record("b", Exited, 1)]);
    old.sandboxes = vec![sandbox("s", false)];
    assert_eq!(planned(&two, &old), "kill pod; sandbox 3; start a; start b");
    assert_eq!(planned(&pod("OnFailure", vec![], &["a", "b"]), &old), "kill pod; sandbox 3; start b");
    assert_eq!(planned(&pod("Never", vec![], &["a", "b"]), &old), "kill pod", "nothing to come back for");
    assert_eq!(planned(&pod("Always", vec![container("i")], &["a"]), &old), "kill pod; sandbox 3; init i");
    let mut done = seen(vec![record("a", Exited, 0)]);
    done.sandboxes = vec![sandbox("s", false)];
    assert_eq!(planned(&pod("OnFailure", vec![], &["a"]), &done), "kill pod");
    let mut host = two.clone();
    host.spec.host_network = true;
    let mut other = seen(vec![record("a", Running, 0)]);
    other.sandboxes[0].host_network = Some(false);
    assert!(planned(&host, &other).starts_with("kill pod; sandbox 3"), "another network");
    let mut twice = seen(vec![]);
    twice.sandboxes.push(sandbox("t", true));
    assert!(planned(&two, &twice).starts_with("kill pod; sandbox 3"), "two ready ones");
}

#[test]
fn all_begin_anew_where_a_rule_says_so() {
    use api_types::core_v1::{ContainerRestartRule, ContainerRestartRuleOnExitCodes};
    let mut two = pod("Never", vec![container("i"), sidecar("s")], &["a", "b"]);
    let exit_codes = Some(ContainerRestartRuleOnExitCodes { operator: "In".into(), values: vec![42] });
    let rule = ContainerRestartRule { action: "RestartAllContainers".into(), exit_codes };
    let first = &mut two.spec.containers[0];
    (first.restart_policy, first.restart_policy_rules) = (Some("Never".into()), vec![rule]);
    let hash = labels::definition_hash(first);
    let of_first = |state, code| {
        let mut record = record("a", state, code);
        record.annotations.insert(labels::HASH.to_owned(), hash.clone());
        record
    };
    let all = |code| {
        let rest = [record("b", Running, 0), record("i", Exited, 0), record("s", Running, 0)];
        seen([of_first(Exited, code)].into_iter().chain(rest).collect())
    };
    let removed = |pod: &Pod, seen: &RuntimePod| plan(pod, seen, &Said::default()).remove.join(" ");
    assert_eq!(removed(&two, &all(42)), "b-id i-id s-id a-id", "who asks for it is the last");
    assert_eq!((removed(&two, &all(1)), planned(&two, &all(1))), (String::new(), String::new()));
    let last = seen(vec![of_first(Exited, 42)]);
    assert_eq!(removed(&two, &last), "a-id", "it goes on where it was broken off");
    assert_eq!(planned(&two, &seen(vec![])), "init i", "and begins anew");
    two.metadata.deletion_timestamp = Some(api_machinery::time::Time::from_unix_seconds(1));
    assert_eq!(removed(&two, &all(42)), "", "not while it is deleted");
}

#[test]
fn regular_containers_follow_their_policy() {
    for (policy, state, code, expected) in [
        ("Always", Running, 0, ""),
        ("Always", Exited, 0, "start a"),
        ("OnFailure", Exited, 0, "kill pod"),
        ("OnFailure", Exited, 1, "start a"),
        ("Never", Exited, 1, "kill pod"),
        ("Never", Created, 0, "start a"),
        ("Always", Unknown, 0, "kill a: Container is in \"unknown\" state, try killing it before restart; start a"),
    ] {
        let found = planned(&pod(policy, vec![], &["a"]), &seen(vec![record("a", state, code)]));
        assert_eq!(found, expected, "{policy} {state:?} {code}");
    }
    let one_left = seen(vec![record("a", Exited, 0), record("b", Running, 0)]);
    assert_eq!(planned(&pod("Never", vec![], &["a", "b"]), &one_left), "");
}

#[test]
fn probes_and_changes_restart() {
    let running = seen(vec![record("a", Running, 0)]);
    let said = |kind| Said(HashMap::from([((kind, "a-id"), ProbeResult::Failure)]));
    for (policy, kind, expected) in [
        ("Always", ProbeKind::Liveness, "kill a: Container a failed liveness probe, will be restarted; start a"),
        ("OnFailure", ProbeKind::Startup, "kill a: Container a failed startup probe, will be restarted; start a"),
        ("Always", ProbeKind::Readiness, ""),
        ("Never", ProbeKind::Liveness, "kill pod; kill a: Container a failed liveness probe"),
    ] {
        assert_eq!(short(&plan(&pod(policy, vec![], &["a"]), &running, &said(kind))), expected);
    }
    let mut changed = pod("Never", vec![], &["a"]);
    changed.spec.containers[0].image = "other".into();
    assert_eq!(planned(&changed, &running), "kill a: Container a definition changed, will be restarted; start a");
}

#[test]
fn init_containers_go_one_by_one() {
    let two = |policy: &str| pod(policy, vec![container("i"), container("j")], &["a"]);
    for (policy, records, expected) in [
        ("Always", vec![], "init i"),
        ("Always", vec![record("i", Running, 0)], ""),
        ("Always", vec![record("i", Exited, 0)], "init j"),
        ("Always", vec![record("i", Exited, 1)], "init i"),
        ("Never", vec![record("i", Exited, 1)], "kill pod"),
        ("Always", vec![record("i", Exited, 0), record("j", Exited, 0)], "start a"),
        ("Always", vec![record("j", Exited, 0)], "start a"),
        ("Always", vec![record("a", Exited, 1)], "start a"),
        ("Never", vec![record("i", Exited, 0), record("a", Running, 0)], ""),
    ] {
        let names: Vec<_> = records.iter().map(|record| (record.name.clone(), record.state)).collect();
        assert_eq!(planned(&two(policy), &seen(records)), expected, "{policy} {names:?}");
    }
}

#[test]
fn sidecars_start_in_turn_and_come_back() {
    let three = |policy: &str| pod(policy, vec![sidecar("s"), container("i")], &["a"]);
    for (policy, records, expected) in [
        ("Always", vec![], "init s"),
        ("Always", vec![record("s", Running, 0)], "init i"),
        ("Always", vec![record("s", Running, 0), record("i", Running, 0)], ""),
        ("Always", vec![record("s", Running, 0), record("i", Exited, 0)], "start a"),
        ("Never", vec![record("s", Exited, 1), record("i", Exited, 0), record("a", Running, 0)], "init s"),
        ("Never", vec![record("s", Running, 0), record("a", Exited, 0)], "kill pod"),
    ] {
        let names: Vec<_> = records.iter().map(|record| (record.name.clone(), record.state)).collect();
        assert_eq!(planned(&three(policy), &seen(records)), expected, "{policy} {names:?}");
    }
}

#[test]
fn a_sidecar_holds_the_next_up_until_it_is_started() {
    let mut waits = pod("Always", vec![sidecar("s")], &["a"]);
    waits.spec.init_containers[0].startup_probe = Some(Box::default());
    let running = seen(vec![record("s", Running, 0)]);
    assert_eq!(planned(&waits, &running), "");
    let started = Said(HashMap::from([((ProbeKind::Startup, "s-id"), ProbeResult::Success)]));
    assert_eq!(short(&plan(&waits, &running, &started)), "start a");
    let failed = Said(HashMap::from([((ProbeKind::Startup, "s-id"), ProbeResult::Failure)]));
    assert_eq!(short(&plan(&waits, &running, &failed)), "kill s: Init container s failed startup probe; init s");
}

#[test]
fn a_pod_that_goes_starts_nothing() {
    let mut going = pod("Always", vec![], &["a", "b"]);
    going.metadata.deletion_timestamp = Some(api_machinery::time::Time::from_unix_seconds(1));
    assert_eq!(planned(&going, &seen(vec![record("a", Exited, 1), record("b", Running, 0)])), "");
}
