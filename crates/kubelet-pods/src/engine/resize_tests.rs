//! Changing what running pods may use, over the whole engine, also across a restart of the kubelet.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{TaskGroup, TokioClock};
use client::fake::FakeServer;
use kubelet_node::cpus::{CpuOptions, CpuPolicy, CpuSettings, Cpus, Processors};
use kubelet_node::devices::{Devices, DevicesDeps};
use kubelet_node::memory::{MemoryNodes, MemorySettings};
use kubelet_node::topology::{TopologyManager, TopologyParts, TopologySettings};
use node_api::cri::{Code, CriError};
use serde_json::{Value, json};
use sys::topology::{MemoryNode, Processor, Topology};

use super::api_tests::{Bench, pod, start, start_as};
use super::test_node::{TestNode, engine_with, settings};
use crate::interfaces::{ExclusiveResizes, PodSettings};
use crate::metrics::KubeletMetrics;

fn with(memory: &str) -> Value {
    let mut pod = pod("web", "node1");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": memory}, "requests": {"memory": memory}});
    pod
}

impl Bench {
    fn resize(&self, memory: &str) {
        let mut pod = self.object("web").unwrap();
        pod["spec"] = with(memory)["spec"].clone();
        self.server.put("v1/pods", pod);
    }

    fn container(&self) -> Value {
        self.object("web").unwrap()["status"]["containerStatuses"][0].clone()
    }

    fn limit(&self) -> String {
        self.container()["resources"]["limits"]["memory"].as_str().unwrap_or_default().to_owned()
    }

    /// Reason and message of a condition.
    fn condition(&self, type_: &str) -> Option<(String, String)> {
        let pod = self.object("web")?;
        let found = pod["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == type_)?.clone();
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        Some((text("reason"), text("message")))
    }
}

async fn running() -> Bench {
    let bench = start().await;
    bench.server.put("v1/pods", with("1Gi"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench
}

#[tokio::test(start_paused = true)]
async fn resources_change_in_place_where_they_fit() {
    let bench = running().await;
    let id = bench.container()["containerID"].clone();
    bench.resize("2Gi");
    bench.wait("resized", |bench| bench.limit() == "2Gi" && bench.condition("PodResizeInProgress").is_none()).await;
    let updates = bench.runtime.take_calls().iter().filter(|call| call.operation == "update_container").count();
    assert_eq!(updates, 1);
    let metrics = &bench.engine.inner.metrics;
    for requirement in ["limits", "requests"] {
        let count = metrics.requested_resizes.with(&["increase", requirement, "memory"]).get();
        assert!((count - 1.0).abs() < f64::EPSILON, "{requirement} {count}");
    }
    assert!(bench.node.told("Normal ResizeStarted  Pod resize started: {\"containers\":[{\"name\":\"main\""));
    assert!(bench.node.told("Normal ResizeCompleted  Pod resize completed: "));
    bench.resize("64Gi");
    bench.wait("deferred", |bench| bench.condition("PodResizePending").is_some()).await;
    let (reason, message) = bench.condition("PodResizePending").unwrap();
    assert_eq!(reason, "Deferred");
    assert!(message.starts_with("Node didn't have enough resource: memory, requested: 68719476736"), "{message}");
    assert_eq!(bench.limit(), "2Gi", "what it has, not what it wants");
    assert_eq!(bench.container()["containerID"], id, "never restarted");
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn the_sandbox_is_told_what_its_pod_may_use() {
    const OPERATION: &str = "update_podsandbox_resources";
    let refusals = [None, Some(Code::Unimplemented), Some(Code::Internal)];
    for refusal in refusals {
        let bench = running().await;
        let sandbox = bench.runtime.sandbox_ids()[0].clone();
        bench.runtime.fail_always(OPERATION, refusal.map(|code| CriError::rpc(OPERATION, code, "no")));
        drop(bench.runtime.take_calls());
        bench.resize("2Gi");
        bench.wait("resized", |bench| bench.limit() == "2Gi" && bench.condition("PodResizeInProgress").is_none()).await;
        let told: Vec<_> = bench.runtime.take_calls().into_iter().filter(|call| call.operation == OPERATION).collect();
        assert_eq!(told.iter().map(|call| &call.subject).collect::<Vec<_>>(), [&sandbox], "{refusal:?}");
        let limit = bench.runtime.sandbox_config(&sandbox).and_then(|config| config.linux?.resources);
        let expected = if refusal.is_none() { 2 << 30 } else { 1 << 30 };
        assert_eq!(limit.map(|own| own.memory_limit_in_bytes), Some(expected), "{refusal:?}");
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_what_is_used_waits() {
    let bench = running().await;
    bench.runtime.set_memory("main", 700 << 20);
    bench.resize("512Mi");
    let refused = |bench: &Bench| bench.condition("PodResizeInProgress").is_some_and(|(reason, _)| reason == "Error");
    bench.wait("refused", refused).await;
    let (_, message) = bench.condition("PodResizeInProgress").unwrap();
    assert_eq!(
        message,
        "cannot decrease memory limits: attempting to set container \"main\" memory limit (536870912) below current \
         usage (734003200)"
    );
    assert_eq!(bench.limit(), "1Gi", "still in force");
    let lowered = bench.node.group_limits.lock().contains(&(512 << 20));
    assert!(!lowered, "a lower limit of the pod's group would have the kernel kill the container");
    assert_eq!(bench.container()["allocatedResources"]["memory"], "512Mi");
    bench.runtime.set_memory("main", 100 << 20);
    bench.wait("resized", |bench| bench.limit() == "512Mi").await;
    assert!(bench.node.told("Normal ResizeCompleted  Pod resize completed: "));
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_given_outlives_the_kubelet() {
    let bench = running().await;
    bench.resize("64Gi");
    bench.wait("deferred", |bench| bench.condition("PodResizePending").is_some()).await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;

    let tasks = TaskGroup::new("again");
    let shared = Arc::new(bench.runtime.clone());
    let (clock, client) = (TokioClock::shared(), Some(bench.server.client()));
    let _again = engine_with(settings(bench.root.path()), &bench.node, client, (shared.clone(), shared), clock, &tasks);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.phase("web"), "Running", "it is admitted with what it has");
    assert_eq!(bench.condition("PodResizePending").unwrap().0, "Deferred");
    assert_eq!(bench.limit(), "1Gi");
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn room_that_becomes_free_is_taken_at_once() {
    let bench = running().await;
    let mut other = pod("other", "node1");
    other["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "2Gi"}});
    bench.server.put("v1/pods", other);
    bench.wait("running", |bench| bench.phase("other") == "Running").await;
    bench.resize("3Gi");
    bench.wait("deferred", |bench| bench.condition("PodResizePending").is_some()).await;
    let mut going = bench.object("other").unwrap();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 2.into();
    let began = tokio::time::Instant::now();
    bench.server.put("v1/pods", going);
    bench.wait("resized", |bench| bench.limit() == "3Gi").await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let counted = |trigger| bench.engine.inner.metrics.deferred_resizes.with(&[trigger]).get();
    let counts = ["pods_removed", "pod_resized", "periodic_retry"].map(counted);
    assert_eq!(counts.map(|count| count.to_string()), ["1", "0", "0"]);
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

/// Puts a directory where the engine keeps what it gave, so that nothing can be written there.
fn block_checkpoint(bench: &Bench) -> std::path::PathBuf {
    let path = settings(bench.root.path()).root_dir.join("allocated_pods_state");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    path
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_remembered_is_not_given() {
    let bench = running().await;
    let blocked = block_checkpoint(&bench);
    drop(bench.runtime.take_calls());
    bench.resize("2Gi");
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(bench.runtime.take_calls().iter().filter(|call| call.operation == "update_container").count(), 0);
    assert_eq!(
        (bench.limit(), bench.container()["allocatedResources"]["memory"].clone()),
        ("1Gi".into(), "1Gi".into())
    );
    assert!(!bench.node.told("ResizeStarted"));
    std::fs::remove_dir(blocked).unwrap();
    bench.wait("resized", |bench| bench.limit() == "2Gi").await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_runtime_refuses_is_not_taken_for_done() {
    let bench = running().await;
    let refused = CriError::rpc("update_container", Code::Unknown, "device busy");
    bench.runtime.fail_always("update_container", Some(refused));
    bench.resize("2Gi");
    let failed = |bench: &Bench| bench.condition("PodResizeInProgress").is_some_and(|(reason, _)| reason == "Error");
    bench.wait("refused", failed).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(failed(&bench) && !bench.node.told("ResizeCompleted"));
    bench.runtime.fail_always("update_container", None);
    bench.wait("resized", |bench| bench.limit() == "2Gi").await;
    assert!(bench.node.told("ResizeCompleted"));
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_first_limit_below_what_is_used_waits() {
    let bench = start().await;
    let mut pod = pod("web", "node1");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "256Mi"}});
    bench.server.put("v1/pods", pod);
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.runtime.set_memory("main", 700 << 20);
    drop(bench.runtime.take_calls());
    let mut pod = bench.object("web").unwrap();
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({"memory": "512Mi"});
    bench.server.put("v1/pods", pod);
    let refused = |bench: &Bench| bench.condition("PodResizeInProgress").is_some_and(|(reason, _)| reason == "Error");
    bench.wait("refused", refused).await;
    assert_eq!(bench.runtime.take_calls().iter().filter(|call| call.operation == "update_container").count(), 0);
    bench.runtime.set_memory("main", 100 << 20);
    bench.wait("resized", |bench| bench.limit() == "512Mi").await;
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

/// A pod with so much memory for all of its containers together.
fn of_pod(memory: &str) -> Value {
    let mut pod = pod("web", "node1");
    pod["spec"]["resources"] = json!({"limits": {"memory": memory}, "requests": {"memory": memory}});
    pod
}

impl Bench {
    fn resize_pod(&self, memory: &str) {
        let mut pod = self.object("web").unwrap();
        pod["spec"] = of_pod(memory)["spec"].clone();
        self.server.put("v1/pods", pod);
    }

    /// The limit that is in force for the pod as a whole.
    fn limit_of_pod(&self) -> String {
        let status = self.object("web").unwrap()["status"].clone();
        status["resources"]["limits"]["memory"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_has_as_a_whole_changes_in_place() {
    let bench = start().await;
    bench.server.put("v1/pods", of_pod("1Gi"));
    bench.wait("running", |bench| bench.phase("web") == "Running" && bench.limit_of_pod() == "1Gi").await;
    bench.runtime.set_memory("main", 700 << 20);
    bench.resize_pod("512Mi");
    let refused = |bench: &Bench| bench.condition("PodResizeInProgress").is_some_and(|(reason, _)| reason == "Error");
    bench.wait("refused", refused).await;
    assert_eq!(
        bench.condition("PodResizeInProgress").unwrap().1,
        "cannot decrease memory limits: attempting to set pod memory limit (536870912) below current usage (734003200)"
    );
    assert_eq!(bench.object("web").unwrap()["status"]["allocatedResources"]["memory"], "512Mi");
    assert!(!bench.node.group_limits.lock().contains(&(512 << 20)), "the kernel would kill a container");
    bench.resize_pod("2Gi");
    bench.wait("resized", |bench| bench.limit_of_pod() == "2Gi").await;
    assert!(bench.node.told("Normal ResizeCompleted  Pod resize completed: "));
    assert!(bench.node.group_limits.lock().contains(&(2 << 30)), "also without a change of a container");
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_a_pod_keeps_what_it_has_as_a_whole() {
    let root = tempfile::tempdir().unwrap();
    let settings = PodSettings { pod_level_resizes: false, ..settings(root.path()) };
    let bench = start_as(settings, root, FakeServer::new(), Default::default()).await;
    bench.server.put("v1/pods", of_pod("1Gi"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    bench.resize_pod("2Gi");
    bench.wait("refused", |bench| bench.condition("PodResizePending").is_some()).await;
    let expected = ("Infeasible".to_owned(), "InPlacePodLevelResourcesVerticalScaling is disabled".to_owned());
    assert_eq!(bench.condition("PodResizePending"), Some(expected));
    assert!(!bench.node.group_limits.lock().contains(&(2 << 30)));
    assert_eq!(bench.limit_of_pod(), "", "it is not shown either");
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

/// A machine of two processors, of which one is kept for the system.
fn two_processors(root: &Path) -> Arc<TopologyManager> {
    let metrics = KubeletMetrics::unseen();
    let place = |cpu: u32| (cpu, Processor { core: cpu, socket: 0, node: 0, cache: 0 });
    let topology = Topology { processors: (0..2).map(place).collect(), nodes: [(0, MemoryNode::default())].into() };
    let policy = CpuPolicy::Static(CpuOptions::default());
    let settings = CpuSettings { policy, reserved_milli: 1000, reserved: None, pod_level: false };
    let (clock, tasks) = (TokioClock::shared(), TaskGroup::new("devices"));
    let deps = DevicesDeps { counts: metrics.clone(), clock: clock.clone(), tasks, extended: true };
    TopologyManager::new(TopologyParts {
        settings: TopologySettings::default(),
        cpus: Cpus::new(root, settings, &Processors::new(&topology), metrics.clone()).unwrap(),
        memory: MemoryNodes::new(root, &MemorySettings::default(), metrics.clone()),
        pod_level: false,
        topology,
        devices: Devices::new(root, deps),
        counts: metrics,
        clock,
    })
}

fn guaranteed(cpu: &str) -> Value {
    let mut pod = with("1Gi");
    let resources = &mut pod["spec"]["containers"][0]["resources"];
    for list in ["requests", "limits"] {
        resources[list]["cpu"] = cpu.into();
    }
    pod
}

/// A pod that asks for so much of the processors on a node where they are given away.
async fn running_exclusively(cpu: &str, resizes: ExclusiveResizes) -> (Bench, Arc<TopologyManager>) {
    let root = tempfile::tempdir().unwrap();
    let topology = two_processors(root.path());
    let node = Arc::new(TestNode::default());
    *node.topology.lock() = Some(topology.clone());
    let settings = PodSettings { resizes, ..settings(root.path()) };
    let bench = start_as(settings, root, client::fake::FakeServer::new(), node).await;
    bench.server.put("v1/pods", guaranteed(cpu));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    (bench, topology)
}

#[tokio::test(start_paused = true)]
async fn who_has_processors_is_resized_where_the_gate_says_so_and_keeps_them() {
    let on = ExclusiveResizes { cpus: true, memory: false };
    let infeasible = "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"";
    let few = "Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is \
               unexpected";
    // (what it asks for first, and then; with the gate; what it waits for; processors of its own in the end)
    let cases = [
        ("1", "2", ExclusiveResizes::default(), Some(("Infeasible", infeasible)), 1),
        ("1", "2", on, None, 1),
        ("500m", "1", on, None, 1),
        ("500m", "2", on, Some(("Deferred", few)), 0),
    ];
    for (first, then, resizes, pending, own) in cases {
        let (bench, topology) = running_exclusively(first, resizes).await;
        let mut object = bench.object("web").unwrap();
        object["spec"] = guaranteed(then)["spec"].clone();
        bench.server.put("v1/pods", object);
        let expected = pending.map(|(reason, message)| (reason.to_owned(), message.to_owned()));
        let given = |bench: &Bench| bench.container()["allocatedResources"]["cpu"].clone();
        let wanted = if pending.is_some() { first } else { then };
        bench
            .wait("decided", |bench| bench.condition("PodResizePending") == expected && given(bench) == json!(wanted))
            .await;
        assert_eq!(topology.cpus.exclusive("uid-web", "main").len(), own, "{first} {then} {resizes:?}");
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}
