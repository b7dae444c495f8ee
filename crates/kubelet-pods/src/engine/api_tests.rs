//! An engine with an API server: bound pods, statuses, deletions, mirrors.

use std::sync::Arc;
use std::time::Duration;

use base::{TaskGroup, TokioClock};
use client::fake::FakeServer;
use node_api::cri::fake::{FakeRuntime, Script};
use node_api::cri::v1::ImageSpec;
use node_api::cri::{Code, CriError, Images as _};
use serde_json::{Value, json};

use super::PodEngine;
use super::test_node::{TestNode, engine_with, settings};
use crate::interfaces::PodSettings;

pub(super) struct Bench {
    pub(super) server: FakeServer,
    pub(super) engine: PodEngine,
    pub(super) runtime: FakeRuntime,
    pub(super) node: Arc<TestNode>,
    pub(super) root: tempfile::TempDir,
    pub(super) tasks: TaskGroup,
}

pub(super) async fn start() -> Bench {
    start_with(tempfile::tempdir().unwrap(), FakeServer::new(), Arc::default()).await
}

/// The same with a node of the test's own, whose directory is below `root`.
pub(super) async fn start_with(root: tempfile::TempDir, server: FakeServer, node: Arc<TestNode>) -> Bench {
    let settings = settings(root.path());
    start_as(settings, root, server, node).await
}

/// The same with settings of the test's own.
pub(super) async fn start_as(
    settings: PodSettings,
    root: tempfile::TempDir,
    server: FakeServer,
    node: Arc<TestNode>,
) -> Bench {
    std::fs::create_dir_all(root.path().join("manifests")).unwrap();
    let tasks = TaskGroup::new("kubelet");
    let clock = TokioClock::shared();
    let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
    let spec = ImageSpec { image: "docker.io/library/app:1".into(), ..Default::default() };
    runtime.pull_image(spec, None, None).await.unwrap();
    let shared = Arc::new(runtime.clone());
    let client = Some(server.client());
    let engine = engine_with(settings, &node, client, (shared.clone(), shared), clock, &tasks);
    Bench { server, engine, runtime, node, root, tasks }
}

pub(super) fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 3, "finalizers": ["test/held"]},
        "spec": {"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "main", "image": "docker.io/library/app:1"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "example.com/gate", "status": "True"}]}
    })
}

impl Bench {
    pub(super) fn object(&self, name: &str) -> Option<Value> {
        self.server.objects("v1/pods").into_iter().find(|pod| pod["metadata"]["name"] == name)
    }

    pub(super) async fn wait(&self, what: &str, check: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if check(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: {:#?}\n{:#?}", self.server.objects("v1/pods"), self.server.requests());
    }

    pub(super) fn phase(&self, name: &str) -> String {
        self.object(name).map(|pod| pod["status"]["phase"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn bound_pods_run_and_report() {
    let bench = start().await;
    bench.runtime.script("main", [Script::exits(Duration::from_secs(60), 0)]);
    bench.server.put("v1/pods", pod("web", "node1"));
    bench.server.put("v1/pods", pod("other", "node2"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let status = bench.object("web").unwrap()["status"].clone();
    assert_eq!(status["hostIP"], "192.0.2.1");
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(status["qosClass"], "BestEffort");
    let types: Vec<&str> =
        status["conditions"].as_array().unwrap().iter().filter_map(|it| it["type"].as_str()).collect();
    assert!(types.contains(&"example.com/gate") && types.contains(&"PodReadyToStartContainers"), "{types:?}");
    assert_eq!(bench.phase("other"), "Pending");
    let patches = || bench.server.requests().iter().filter(|request| request.starts_with("PATCH")).count();
    let before = patches();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(patches(), before, "an unchanged status is not sent again");
    bench.wait("done", |bench| bench.phase("web") == "Succeeded").await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

/// What each version of a pod takes would be kept for as long as somebody holds it.
#[tokio::test(start_paused = true)]
async fn only_the_newest_version_of_a_pod_is_kept() {
    let bench = start().await;
    bench.server.put("v1/pods", pod("web", "node1"));
    let newest = |bench: &Bench| bench.engine.inner.store.get("uid-web");
    bench.wait("running", |bench| newest(bench).is_some_and(|pod| pod.status.phase == "Running")).await;
    let former = Arc::downgrade(&newest(&bench).unwrap());
    let mut object = bench.object("web").unwrap();
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "example.com/other", "status": "True"}));
    let conditions = conditions.len();
    bench.server.put("v1/pods", object);
    bench.wait("told", |bench| newest(bench).unwrap().status.conditions.len() == conditions).await;
    // No sync of the pod was due since, which would take the newest anyway.
    assert!(former.upgrade().is_none(), "{} hold a former version", former.strong_count());
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_stop_and_their_objects_go() {
    let bench = start().await;
    bench.server.put("v1/pods", pod("web", "node1"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let mut going = bench.object("web").unwrap();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 2.into();
    bench.server.put("v1/pods", going);
    let deleted =
        |bench: &Bench| bench.server.requests().iter().any(|it| it.starts_with("DELETE") && it.contains("/pods/web"));
    bench.wait("deleted", deleted).await;
    assert_eq!(bench.phase("web"), "Failed", "its end was told before its object went");
    assert!(bench.engine.running_pods().await.is_empty());
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn refused_pods_are_told_and_can_be_deleted() {
    let bench = start().await;
    let mut big = pod("big", "node1");
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "64"}});
    bench.server.put("v1/pods", big);
    bench.wait("refused", |bench| bench.phase("big") == "Failed").await;
    let mut going = bench.object("big").unwrap();
    assert_eq!(going["status"]["reason"], "OutOfcpu");
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 1.into();
    bench.server.put("v1/pods", going);
    let deleted =
        |bench: &Bench| bench.server.requests().iter().any(|it| it.starts_with("DELETE") && it.contains("/pods/big"));
    bench.wait("deleted", deleted).await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn readiness_outlives_the_kubelet() {
    let bench = start().await;
    let mut web = pod("web", "node1");
    web["spec"]["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["true"]}, "periodSeconds": 60});
    bench.server.put("v1/pods", web);
    let is_ready = |bench: &Bench| {
        let status = bench.object("web").unwrap_or_default()["status"].clone();
        let ready = json!("True");
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        status["containerStatuses"][0]["ready"] == true
            && conditions.any(|own| own["type"] == "Ready" && own["status"] == ready)
    };
    bench.wait("ready", is_ready).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
    let (tasks, shared) = (TaskGroup::new("again"), Arc::new(bench.runtime.clone()));
    let (clock, client) = (TokioClock::shared(), Some(bench.server.client()));
    let runtimes = (shared.clone() as Arc<_>, shared as Arc<_>);
    let again = engine_with(settings(bench.root.path()), &bench.node, client, runtimes, clock, &tasks);
    // Longer than it takes until the first probe of the new kubelet is through.
    for _ in 0..900 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(is_ready(&bench), "{:#?}", bench.object("web"));
    }
    assert!(again.pods()[0].status.container_statuses[0].ready);
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn static_pods_have_mirrors() {
    let bench = start().await;
    let text = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: 'docker.io/library/app:1'}]}}";
    let path = bench.root.path().join("manifests/web.yaml");
    std::fs::write(&path, text).unwrap();
    bench.wait("mirrored", |bench| bench.phase("web-node1") == "Running").await;
    let mirror = bench.object("web-node1").unwrap();
    assert_eq!(mirror["metadata"]["ownerReferences"][0]["uid"], "node-uid");
    let hash = mirror["metadata"]["annotations"]["kubernetes.io/config.hash"].clone();
    assert_eq!(mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"], hash);
    bench.server.remove("v1/pods", "default", "web-node1");
    bench.wait("made again", |bench| bench.object("web-node1").is_some()).await;
    std::fs::remove_file(path).unwrap();
    bench.wait("gone with its pod", |bench| bench.object("web-node1").is_none()).await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

/// Another kubelet on the same node, after the first one was stopped.
pub(super) async fn restarted(bench: Bench) -> Bench {
    let settings = settings(bench.root.path());
    restarted_as(settings, bench).await
}

/// The same with other settings.
pub(super) async fn restarted_as(settings: PodSettings, bench: Bench) -> Bench {
    bench.tasks.shutdown(Duration::from_secs(5)).await;
    let (tasks, shared) = (TaskGroup::new("again"), Arc::new(bench.runtime.clone()));
    let (client, clock) = (Some(bench.server.client()), TokioClock::shared());
    let engine = engine_with(settings, &bench.node, client, (shared.clone(), shared), clock, &tasks);
    Bench { engine, tasks, ..bench }
}

#[tokio::test(start_paused = true)]
async fn pods_that_had_ended_before_a_restart_keep_their_logs_and_leave_nothing() {
    let bench = start().await;
    bench.runtime.script("main", [Script::exits(Duration::from_secs(1), 0)]);
    bench.server.put("v1/pods", pod("job", "node1"));
    bench.wait("done", |bench| bench.phase("job") == "Succeeded").await;
    let bench = restarted(bench).await;
    bench.wait("known", |bench| bench.engine.pod("default", "job").is_some()).await;
    // Several rounds of housekeeping and two of the collection of dead containers.
    tokio::time::sleep(Duration::from_secs(150)).await;
    let seen = bench.engine.pod("default", "job").unwrap();
    let source = bench.engine.log_source(&seen, "main", false).unwrap();
    assert!(bench.runtime.container_ids().contains(&source.container_id), "its log can be read");
    let mut gone = bench.object("job").unwrap();
    gone["metadata"]["finalizers"] = json!([]);
    bench.server.put("v1/pods", gone);
    bench.server.remove("v1/pods", "default", "job");
    bench
        .wait("collected", |bench| bench.runtime.container_ids().is_empty() && bench.runtime.sandbox_ids().is_empty())
        .await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_removed_with_its_pod_is_removed_later() {
    let bench = start().await;
    bench.server.put("v1/pods", pod("web", "node1"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let operations = ["remove_container", "remove_podsandbox"];
    for operation in operations {
        bench.runtime.fail_always(operation, Some(CriError::rpc(operation, Code::Unknown, "device busy")));
    }
    bench.server.remove("v1/pods", "default", "web");
    bench.wait("forgotten", |bench| bench.engine.pod("default", "web").is_none()).await;
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!((bench.runtime.container_ids().len(), bench.runtime.sandbox_ids().len()), (1, 1));
    operations.iter().for_each(|operation| bench.runtime.fail_always(operation, None));
    bench
        .wait("collected", |bench| bench.runtime.container_ids().is_empty() && bench.runtime.sandbox_ids().is_empty())
        .await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}
