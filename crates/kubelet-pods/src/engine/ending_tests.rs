//! How pods end: how much time they are given, and what must not be done after something before it has failed.

use std::time::Duration;

use node_api::cri::fake::{ExecScript, Script};
use node_api::cri::{Code, CriError};
use serde_json::json;

use super::api_tests::{Bench, start};
use super::conformance_tests::main_with;

fn stubborn() -> Script {
    Script { on_stop: None, ..Script::forever() }
}

fn ends_after(seconds: u64) -> Script {
    Script { on_stop: Some((Duration::from_secs(seconds), 0)), ..Script::forever() }
}

fn takes(seconds: u64) -> ExecScript {
    ExecScript { takes: Duration::from_secs(seconds), ..Default::default() }
}

impl Bench {
    /// Deletes a pod and says after how many seconds its containers had ended.
    async fn ends_in(&self, name: &str, grace: i64) -> u64 {
        let began = tokio::time::Instant::now();
        self.delete(name, grace);
        let ended = |bench: &Bench| {
            let status = bench.status(name);
            let own = ["initContainerStatuses", "containerStatuses"].map(|list| status[list].as_array().cloned());
            own.iter().flatten().flatten().all(|own| own["state"]["terminated"].is_object())
        };
        self.wait("ended", ended).await;
        began.elapsed().as_secs()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_takes_of_the_grace_period_is_taken_once() {
    for (name, grace, hook, script, expected) in [
        ("no hook", 10, 0, stubborn(), 10),
        ("a hook", 10, 4, stubborn(), 10),
        ("a hook, and it ends by itself", 10, 4, ends_after(1), 5),
        ("a hook that leaves less than the least", 10, 9, stubborn(), 11),
        ("a hook that is cut off", 10, 60, stubborn(), 12),
        ("less than the least", 1, 0, stubborn(), 2),
    ] {
        let bench = start().await;
        bench.runtime.script("main", [script]);
        bench.runtime.script_exec("bye", takes(hook));
        let stop = json!({"lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}});
        bench.put("web", json!({"containers": main_with(stop), "terminationGracePeriodSeconds": 60}));
        bench.wait("running", |bench| bench.phase("web") == "Running").await;
        assert_eq!(bench.ends_in("web", grace).await, expected, "{name}");
        bench.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_broken_off_for_a_sooner_end_has_failed() {
    let (sleeps, runs) = (json!({"sleep": {"seconds": 40}}), json!({"exec": {"command": ["bye"]}}));
    let asks = json!({"httpGet": {"host": "192.0.2.9", "port": 80}});
    // (the hook, seconds until the end is to come sooner, whether it has failed)
    for (hook, sooner, failed) in
        [(&sleeps, Some(5), true), (&runs, Some(5), true), (&asks, Some(5), false), (&sleeps, None, false)]
    {
        let bench = start().await;
        bench.runtime.script("main", [stubborn()]);
        bench.runtime.script_exec("bye", takes(40));
        bench.put("web", json!({"containers": main_with(json!({"lifecycle": {"preStop": hook}})), "terminationGracePeriodSeconds": 60}));
        bench.wait("running", |bench| bench.phase("web") == "Running").await;
        bench.delete("web", 30);
        tokio::time::sleep(Duration::from_secs(sooner.unwrap_or(31))).await;
        bench.delete("web", 2);
        tokio::time::sleep(Duration::from_secs(4)).await;
        let events = bench.node.events.lock().clone();
        let told =
            events.iter().any(|event| event == "Warning FailedPreStopHook spec.containers{main} PreStopHook failed");
        assert_eq!(told, failed, "{hook} {sooner:?}: {events:#?}");
        bench.end().await;
    }
}

/// What its worker knows of a new pod is what it started: also of a container that is being greeted when the end comes.
#[tokio::test(start_paused = true)]
async fn a_new_container_whose_start_is_broken_off_is_stopped_with_its_grace() {
    let bench = start().await;
    bench.runtime.script("main", [stubborn()]);
    let greets = json!({"postStart": {"sleep": {"seconds": 40}}});
    bench.put(
        "web",
        json!({"containers": main_with(json!({"lifecycle": greets})), "terminationGracePeriodSeconds": 60}),
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(bench.runtime.take_calls());
    bench.delete("web", 30);
    tokio::time::sleep(Duration::from_secs(40)).await;
    let calls = bench.runtime.take_calls();
    let first = calls.iter().find(|call| call.operation.starts_with("stop_")).map(|call| call.operation);
    assert_eq!(first, Some("stop_container"), "{calls:?}");
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_has_all_that_its_hook_and_its_turn_leave() {
    let bench = start().await;
    bench.runtime.script("main", [ends_after(7)]);
    bench.runtime.script("side", [stubborn()]);
    bench.runtime.script_exec("bye", takes(5));
    let stop = json!({"preStop": {"exec": {"command": ["bye"]}}});
    let side =
        json!([{"name": "side", "image": "docker.io/library/app:1", "restartPolicy": "Always", "lifecycle": stop}]);
    bench.put("web", json!({"initContainers": side, "terminationGracePeriodSeconds": 60}));
    bench.wait("running", |bench| bench.own("web", "main")["state"]["running"].is_object()).await;
    assert_eq!(bench.ends_in("web", 20).await, 20);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_stays_until_its_end_is_written() {
    let bench = start().await;
    bench.put("web", json!({}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.server.fail_next("PATCH", &[500; 10]);
    bench.delete("web", 2);
    bench.wait("deleted", |bench| bench.deleted("web")).await;
    assert_eq!(bench.phase("web"), "Failed", "the last status came first");
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_volumes_stay_keeps_its_groups_and_its_object() {
    let bench = start().await;
    bench.put("web", json!({}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    *bench.node.unmount_error.lock() = Some("device busy".into());
    bench.delete("web", 2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.node.unmounted.lock().len() > 1, "tried again");
    assert_eq!((bench.node.removed_groups.lock().len(), bench.deleted("web")), (0, false));
    *bench.node.unmount_error.lock() = None;
    bench.wait("deleted", |bench| bench.deleted("web")).await;
    assert_eq!(*bench.node.removed_groups.lock(), ["uid-web"]);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stopped_is_not_started_beside_itself() {
    let bench = start().await;
    bench.put("web", json!({"restartPolicy": "Always"}));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let busy = CriError::rpc("stop_container", Code::Unknown, "device busy");
    bench.runtime.fail_always("stop_container", Some(busy));
    // Another image has the container replaced.
    bench.change("web", |pod| pod["spec"]["containers"][0]["image"] = "docker.io/library/app:2".into());
    bench.wait("tried", |bench| bench.node.told("definition changed")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((bench.runtime.container_ids().len(), bench.restarts("web")), (1, 0));
    bench.runtime.fail_always("stop_container", None);
    bench.wait("replaced", |bench| bench.restarts("web") == 1).await;
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shorter_grace_period_counts_from_when_it_is_asked_for() {
    for (second, expected) in [(5, 15), (60, 60), (0, 12)] {
        let bench = start().await;
        bench.runtime.script("main", [stubborn()]);
        bench.put("web", json!({"terminationGracePeriodSeconds": 60}));
        bench.wait("running", |bench| bench.phase("web") == "Running").await;
        bench.delete("web", 60);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(10 + bench.ends_in("web", second).await, expected, "{second} s");
        bench.end().await;
    }
}
