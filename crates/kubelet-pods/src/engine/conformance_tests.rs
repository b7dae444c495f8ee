//! What the conformance suite holds true of a node, on the runtime in memory: pods bound by the API server, their
//! phases, restarts, hooks and probes.

use std::time::Duration;

use node_api::cri::fake::{ExecScript, Script};
use serde_json::{Value, json};

use super::api_tests::{Bench, pod, start};

impl Bench {
    pub(super) fn put(&self, name: &str, spec: Value) {
        self.put_as(name, &format!("uid-{name}"), spec);
    }

    pub(super) fn put_as(&self, name: &str, uid: &str, spec: Value) {
        let mut object = pod(name, "node1");
        object["metadata"]["uid"] = uid.into();
        for (field, value) in spec.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        self.server.put("v1/pods", object);
    }

    /// Changes the object, as a client would.
    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.object(name).unwrap();
        change(&mut object);
        self.server.put("v1/pods", object);
    }

    pub(super) fn delete(&self, name: &str, grace: i64) {
        self.change(name, |pod| {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        });
    }

    pub(super) fn deleted(&self, name: &str) -> bool {
        let place = format!("/pods/{name}");
        self.server.requests().iter().any(|it| it.starts_with("DELETE") && it.contains(&place))
    }

    pub(super) fn status(&self, name: &str) -> Value {
        self.object(name).map(|pod| pod["status"].clone()).unwrap_or_default()
    }

    /// The status of a container, of whatever list.
    pub(super) fn own(&self, pod: &str, container: &str) -> Value {
        let status = self.status(pod);
        ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
            .iter()
            .flat_map(|list| status[*list].as_array().cloned().unwrap_or_default())
            .find(|own| own["name"] == container)
            .unwrap_or_default()
    }

    pub(super) fn restarts(&self, pod: &str) -> i64 {
        self.own(pod, "main")["restartCount"].as_i64().unwrap_or(0)
    }

    pub(super) fn is_on(&self, pod: &str, type_: &str) -> String {
        let conditions = self.status(pod)["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|it| it["type"] == type_).cloned().unwrap_or_default();
        found["status"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) async fn end(self) {
        self.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

pub(super) fn main_with(extra: Value) -> Value {
    let mut container = json!({"name": "main", "image": "docker.io/library/app:1"});
    for (field, value) in extra.as_object().unwrap() {
        container[field] = value.clone();
    }
    json!([container])
}

#[tokio::test(start_paused = true)]
async fn restart_policies_give_phases_and_counts() {
    let seconds = Duration::from_secs;
    // Fails once, then succeeds.
    let script = || [Script::exits(seconds(1), 1), Script::exits(seconds(1), 0)];
    for (policy, phase, restarts, scripts) in [
        ("Always", "Running", 2, vec![Script::exits(seconds(1), 1), Script::exits(seconds(1), 0), Script::forever()]),
        ("OnFailure", "Succeeded", 1, script().to_vec()),
        ("Never", "Failed", 0, script().to_vec()),
    ] {
        let bench = start().await;
        bench.runtime.script("main", scripts);
        bench.put("web", json!({"restartPolicy": policy}));
        bench.wait(policy, |bench| bench.phase("web") == phase && bench.restarts("web") == restarts).await;
        let ready = if policy == "Always" { "True" } else { "False" };
        bench.wait("ready", |bench| bench.is_on("web", "Ready") == ready).await;
        let state = bench.own("web", "main")["state"].clone();
        let expected = if policy == "Always" { "running" } else { "terminated" };
        assert!(state[expected].is_object(), "{policy}: {state}");
        bench.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn init_containers_hold_the_others_back() {
    let seconds = Duration::from_secs;
    let init = json!([
        {"name": "one", "image": "docker.io/library/app:1"},
        {"name": "two", "image": "docker.io/library/app:1"}
    ]);
    for (policy, code, phase) in
        [("Always", 0, "Running"), ("Never", 0, "Succeeded"), ("Never", 1, "Failed"), ("Always", 1, "Pending")]
    {
        let bench = start().await;
        bench.runtime.script("one", [Script::exits(seconds(1), 0)]);
        bench.runtime.script("two", [Script::exits(seconds(1), code)]);
        bench
            .runtime
            .script("main", [if policy == "Never" { Script::exits(seconds(1), 0) } else { Script::forever() }]);
        bench.put("web", json!({"restartPolicy": policy, "initContainers": init}));
        let twice = |bench: &Bench| bench.own("web", "two")["restartCount"].as_i64() >= Some(2);
        bench.wait("settled", |bench| bench.phase("web") == phase && (phase != "Pending" || twice(bench))).await;
        let started = bench
            .runtime
            .take_calls()
            .into_iter()
            .any(|call| call.operation == "create_container" && call.subject == "main");
        assert_eq!(started, code == 0, "{policy} {code}");
        let initialized = if code == 0 { "True" } else { "False" };
        assert_eq!(bench.is_on("web", "Initialized"), initialized, "{policy} {code}");
        if code != 0 {
            assert!(bench.own("web", "main")["state"]["waiting"]["reason"] == "PodInitializing");
        }
        bench.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_always_fails_has_a_reason_and_can_be_deleted() {
    let bench = start().await;
    bench.runtime.script("main", [Script::exits(Duration::from_secs(1), 1)]);
    bench.put("bad", json!({"restartPolicy": "Always"}));
    let ended = |bench: &Bench| {
        let own = bench.own("bad", "main");
        [&own["state"], &own["lastState"]].iter().any(|state| state["terminated"]["reason"] == "Error")
    };
    bench.wait("ended", ended).await;
    bench.delete("bad", 2);
    bench.wait("deleted", |bench| bench.deleted("bad")).await;
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_come_one_after_the_other_and_only_once() {
    let bench = start().await;
    bench.put("web", json!({"restartPolicy": "Always"}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.runtime.script("second", [Script::exits(Duration::from_secs(1), 0)]);
    let mut all = Vec::new();
    for name in ["first", "second"] {
        all.push(json!({"name": name, "image": "docker.io/library/app:1", "stdin": true}));
        bench.change("web", |pod| pod["spec"]["ephemeralContainers"] = all.clone().into());
        let there = |bench: &Bench| bench.own("web", name)["containerID"].is_string();
        bench.wait(name, there).await;
    }
    bench.wait("ended", |bench| bench.own("web", "second")["state"]["terminated"].is_object()).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(bench.own("web", "first")["state"]["running"].is_object());
    assert!(bench.own("web", "second")["state"]["terminated"].is_object(), "never started again");
    assert_eq!(
        bench.own("web", "second").get("ready"),
        Some(&false.into()),
        "ephemeral containers are not ready or not"
    );
    assert_eq!(bench.restarts("web"), 0);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_can_be_lowered_while_the_pod_runs() {
    let bench = start().await;
    bench.put("web", json!({"restartPolicy": "Always"}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    bench.change("web", |pod| pod["spec"]["activeDeadlineSeconds"] = 5.into());
    bench.wait("ended", |bench| bench.phase("web") == "Failed").await;
    assert_eq!(bench.status("web")["reason"], "DeadlineExceeded");
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_starts_soon_after_its_mistake_is_mended() {
    let bench = start().await;
    *bench.node.config_error.lock() = Some("missing value for ANNOTATION".into());
    bench.put("web", json!({"restartPolicy": "Always"}));
    let waits = |bench: &Bench| bench.own("web", "main")["state"]["waiting"]["reason"] == "CreateContainerConfigError";
    bench.wait("refused", waits).await;
    *bench.node.config_error.lock() = None;
    let began = tokio::time::Instant::now();
    bench.change("web", |pod| pod["metadata"]["annotations"] = json!({"mysubpath": "mypath"}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn missing_volumes_are_tried_again_soon_and_then_less_often() {
    let bench = start().await;
    *bench.node.mount_error.lock() =
        Some("MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found".into());
    bench.put("web", json!({"restartPolicy": "Always"}));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let told = bench
        .node
        .events
        .lock()
        .iter()
        .filter(|event| event.contains("Warning FailedMount  MountVolume.SetUp failed"))
        .count();
    assert!((5..=7).contains(&told), "{told}");
    *bench.node.mount_error.lock() = None;
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn startup_probes_hold_the_others_back() {
    let bench = start().await;
    bench.runtime.script_exec("started", ExecScript { exit_code: 1, ..Default::default() });
    let exec = |command: &str, failures: i64| json!({"exec": {"command": [command]}, "periodSeconds": 1, "failureThreshold": failures, "successThreshold": 1, "timeoutSeconds": 1});
    let probes = json!({"startupProbe": exec("started", 60), "livenessProbe": exec("alive", 1), "readinessProbe": exec("ready", 1)});
    bench.put("web", json!({"restartPolicy": "Always", "containers": main_with(probes)}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(
        (bench.own("web", "main")["started"].clone(), bench.is_on("web", "Ready")),
        (false.into(), "False".into())
    );
    bench.runtime.script_exec("started", ExecScript::default());
    bench.wait("ready", |bench| bench.is_on("web", "Ready") == "True").await;
    assert_eq!(bench.own("web", "main")["started"], true);
    bench.runtime.script_exec("alive", ExecScript { exit_code: 1, ..Default::default() });
    bench.wait("restarted", |bench| bench.restarts("web") == 1).await;
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn failing_readiness_never_restarts() {
    let bench = start().await;
    bench.runtime.script_exec("ready", ExecScript { exit_code: 1, ..Default::default() });
    let probe = json!({"readinessProbe": {"exec": {"command": ["ready"]}, "initialDelaySeconds": 5, "periodSeconds": 5, "failureThreshold": 1, "successThreshold": 1, "timeoutSeconds": 1}});
    bench.put("web", json!({"restartPolicy": "Always", "containers": main_with(probe)}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((bench.is_on("web", "Ready"), bench.restarts("web")), ("False".into(), 0));
    bench.runtime.script_exec("ready", ExecScript::default());
    bench.wait("ready", |bench| bench.is_on("web", "Ready") == "True").await;
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn restart_counts_only_go_up() {
    let bench = start().await;
    bench.runtime.script_exec("alive", ExecScript { exit_code: 1, ..Default::default() });
    let probe = json!({"livenessProbe": {"exec": {"command": ["alive"]}, "initialDelaySeconds": 5, "periodSeconds": 5, "failureThreshold": 1, "successThreshold": 1, "timeoutSeconds": 1, "terminationGracePeriodSeconds": 1}});
    bench.put(
        "web",
        json!({"restartPolicy": "Always", "terminationGracePeriodSeconds": 60, "containers": main_with(probe)}),
    );
    let mut last = 0;
    while last < 5 {
        let now = bench.restarts("web");
        assert!(now >= last, "{now} after {last}");
        last = now;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_run_and_their_failure_ends_the_container() {
    let bench = start().await;
    let hooks = json!({"lifecycle": {"postStart": {"exec": {"command": ["hello"]}}, "preStop": {"exec": {"command": ["bye"]}}}});
    bench.put("web", json!({"restartPolicy": "Always", "containers": main_with(hooks)}));
    bench.wait("running", |bench| bench.is_on("web", "Ready") == "True").await;
    let mut calls = bench.runtime.take_calls();
    assert!(calls.iter().any(|call| call.operation == "exec_sync"), "postStart ran");
    bench.delete("web", 30);
    bench.wait("deleted", |bench| bench.deleted("web")).await;
    calls = bench.runtime.take_calls();
    let hook = calls.iter().position(|call| call.operation == "exec_sync").expect("preStop ran");
    let stop = calls.iter().position(|call| call.operation == "stop_container").expect("stopped");
    assert!(hook < stop);

    bench.runtime.script_exec("hello", ExecScript { exit_code: 3, stderr: b"no".to_vec(), ..Default::default() });
    let hooks = json!({"lifecycle": {"postStart": {"exec": {"command": ["hello"]}}}});
    bench.put("bad", json!({"restartPolicy": "Always", "containers": main_with(hooks)}));
    let waits = |bench: &Bench| bench.own("bad", "main")["state"]["waiting"]["reason"] == "PostStartHookError";
    bench.wait("refused", waits).await;
    assert!(bench.node.told("Warning FailedPostStartHook spec.containers{main} PostStartHook failed"));
    assert!(bench.node.told("Normal Killing spec.containers{main} FailedPostStartHook"));
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn critical_pods_have_others_make_way() {
    let bench = start().await;
    for (name, cpu) in [("small", "200m"), ("large", "1500m")] {
        let resources = json!({"resources": {"requests": {"cpu": cpu}}});
        bench.put(name, json!({"restartPolicy": "Always", "containers": main_with(resources)}));
        bench.wait("running", |bench| bench.phase(name) == "Running").await;
    }
    let resources = json!({"resources": {"requests": {"cpu": "1"}}});
    bench.put(
        "vital",
        json!({"restartPolicy": "Always", "priority": 2_000_001_000, "containers": main_with(resources)}),
    );
    bench.wait("running", |bench| bench.phase("vital") == "Running").await;
    bench.wait("gone", |bench| bench.phase("large") == "Failed").await;
    let status = bench.status("large");
    assert_eq!(
        (&status["reason"], &status["message"]),
        (&"Preempting".into(), &"Preempted in order to admit critical pod".into())
    );
    assert_eq!(bench.is_on("large", "DisruptionTarget"), "True");
    assert_eq!(bench.phase("small"), "Running");
    assert!(bench.node.told("Warning Preempting  Preempted in order to admit critical pod"));

    let resources = json!({"resources": {"requests": {"cpu": "5"}}});
    bench
        .put("huge", json!({"restartPolicy": "Always", "priority": 2_000_001_000, "containers": main_with(resources)}));
    bench.wait("refused", |bench| bench.phase("huge") == "Failed").await;
    let message = bench.status("huge")["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(bench.status("huge")["reason"], "UnexpectedAdmissionError");
    assert!(message.contains("no set of running pods found to reclaim resources: [(res: cpu, q: 4"), "{message}");
    assert_eq!(bench.phase("small"), "Running", "nobody goes for nothing");
    bench.end().await;
}
