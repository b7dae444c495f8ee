//! A static pod on a real runtime, where `COXSWAIN_CRI_SOCKET` names one with a `busybox` image
//! (`hack/with-containerd.sh`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use base::{SystemClock, TaskGroup};
use node_api::cri::{ClientOptions, CriClient};

use super::PodEngine;
use super::test_node::{TestNode, engine, settings};
use crate::interfaces::PodSettings;

/// How long a real runtime may take for one step.
const PATIENCE: Duration = Duration::from_secs(60);

fn image() -> String {
    std::env::var("COXSWAIN_TEST_IMAGE").unwrap_or_else(|_| "docker.io/library/busybox:latest".to_owned())
}

/// A disk that is nearly full must not have the kubelet remove images that other tests need.
fn settings_here(root: &Path) -> PodSettings {
    PodSettings { image_gc_high_percent: 100, ..settings(root) }
}

fn manifest(name: &str, command: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    image: {}\n    imagePullPolicy: Never\n    command: [sh, -c, {command:?}]\n{more}",
        image()
    )
}

async fn wait_for(engine: &PodEngine, name: &str, what: &str, check: impl Fn(&Pod) -> bool) -> Arc<Pod> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let pod = engine.pod("default", name);
        if let Some(pod) = pod.clone().filter(|pod| check(pod)) {
            return pod;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: {pod:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn write(root: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(root.join("manifests")).unwrap();
    std::fs::write(root.join("manifests").join(name), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn static_pods_run_on_a_real_runtime() {
    let Ok(socket) = std::env::var("COXSWAIN_CRI_SOCKET") else {
        return test_facts::skipped("COXSWAIN_CRI_SOCKET does not name a runtime");
    };
    let root = tempfile::tempdir().unwrap();
    let client = CriClient::new(&ClientOptions::new(&socket)).unwrap();
    let tasks = TaskGroup::new("kubelet");
    let node = Arc::new(TestNode::default());
    let runtime: Arc<CriClient> = Arc::new(client);
    write(
        root.path(),
        "web.yaml",
        &manifest(
            "web",
            "echo hello; sleep 1000",
            "    readinessProbe: {exec: {command: [\"true\"]}, periodSeconds: 1}\n",
        ),
    );
    write(root.path(), "crash.yaml", &manifest("crash", "echo bye > /dev/termination-log; exit 3", ""));
    let running =
        engine(settings_here(root.path()), &node, runtime.clone(), runtime.clone(), SystemClock::shared(), &tasks);
    let pod = wait_for(&running, "web-node1", "ready", |pod| {
        pod.status.container_statuses.first().is_some_and(|own| own.ready)
    })
    .await;
    assert_eq!(pod.status.phase, "Running");
    assert!(!pod.status.pod_ip.is_empty());
    let source = running.log_source(&pod, "main", false).unwrap();
    assert!(std::fs::read_to_string(&source.path).unwrap().contains("stdout F hello"));
    let crash = wait_for(&running, "crash-node1", "crashed", |pod| {
        pod.status
            .container_statuses
            .first()
            .is_some_and(|own| own.state.waiting.as_ref().is_some_and(|it| it.reason == "CrashLoopBackOff"))
    })
    .await;
    let last = crash.status.container_statuses[0].last_state.terminated.clone().unwrap();
    assert_eq!((last.exit_code, last.message.as_str()), (3, "bye\n"));

    // A restart of the kubelet leaves containers alone.
    let id = pod.status.container_statuses[0].container_id.clone();
    tasks.shutdown(Duration::from_secs(10)).await;
    let tasks = TaskGroup::new("kubelet again");
    let running = engine(settings_here(root.path()), &node, runtime.clone(), runtime, SystemClock::shared(), &tasks);
    let again = wait_for(&running, "web-node1", "adopted", |pod| {
        pod.status.container_statuses.first().is_some_and(|own| own.ready)
    })
    .await;
    assert_eq!(again.status.container_statuses[0].container_id, id);

    std::fs::remove_file(root.path().join("manifests/web.yaml")).unwrap();
    std::fs::remove_file(root.path().join("manifests/crash.yaml")).unwrap();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !running.pods().is_empty() || !running.running_pods().await.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "pods stay: {:#?}", running.running_pods().await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(node.unmounted.lock().contains(&pod.metadata.uid));
    tasks.shutdown(Duration::from_secs(10)).await;
}
