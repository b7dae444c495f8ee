//! What goes wrong with containers, what the user sees of it, and how the kubelet makes up for it.

use std::time::Duration;

use sys::proc::Proc;
use tests::kubectl::{Kubectl, PATIENCE};
use tokio::time::Instant;

use crate::cluster::{Cluster, manifest};
use crate::machine;

const NAMESPACE: &str = "self-healing";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok(&format!("apply -f {}", manifest("self-healing.yaml"))).await;
    tokio::join!(
        killed(&kubectl),
        crashing(&kubectl),
        missing(&kubectl),
        unlively(&kubectl),
        readiness(&cluster, &kubectl),
        too_much(&kubectl),
    );
    kubectl.ok("delete namespace self-healing --timeout=120s").await;
}

/// What a pod's first container says of itself.
fn container(pod: &str, what: &str) -> String {
    format!("get pod {pod} -o jsonpath={{.status.containerStatuses[0].{what}}}")
}

/// A container whose process somebody kills is started again, and the pod stays.
async fn killed(kubectl: &Kubectl) {
    kubectl.ok("wait --for=condition=Ready pod/killed --timeout=90s").await;
    let uid = kubectl.ok("get pod killed -o jsonpath={.metadata.uid}").await;
    let proc = Proc::system();
    let is_it = |pid: &u32| proc.command_line(*pid).is_ok_and(|words| words == ["sleep", "4711"]);
    let listed = || -> Vec<u32> { proc.pids().expect("processes can be listed").into_iter().filter(is_it).collect() };
    // A container counts as running from a moment before its program does.
    let (start, mut pids) = (Instant::now(), listed());
    while pids.is_empty() && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(100)).await;
        pids = listed();
    }
    assert_eq!(pids.len(), 1, "{pids:?}");
    pids.into_iter().for_each(machine::kill_number);
    kubectl.until(&container("killed", "restartCount"), |text| text == "1").await;
    kubectl.ok("wait --for=condition=Ready pod/killed --timeout=90s").await;
    assert_eq!(kubectl.ok(&container("killed", "lastState.terminated.exitCode")).await, "137");
    assert_eq!(kubectl.ok("get pod killed -o jsonpath={.metadata.uid}").await, uid);
}

/// One that keeps failing is held back longer and longer.
async fn crashing(kubectl: &Kubectl) {
    kubectl.until(&container("crashing", "state.waiting.reason"), |text| text == "CrashLoopBackOff").await;
    let message =
        kubectl.until(&container("crashing", "state.waiting.message"), |text| text.contains("back-off")).await;
    assert!(message.contains("restarting failed container=main pod=crashing_self-healing("), "{message}");
    assert_eq!(kubectl.ok(&container("crashing", "lastState.terminated.exitCode")).await, "7");
    kubectl.until("get pod crashing", |text| text.contains("CrashLoopBackOff") || text.contains("Error")).await;
    kubectl.until("events --for pod/crashing", |text| text.contains("Back-off restarting failed container main")).await;
    kubectl.until(&container("crashing", "restartCount"), |text| text.parse().unwrap_or(0) >= 2).await;
}

/// What is not there is named, and waited for.
async fn missing(kubectl: &Kubectl) {
    let waiting = "state.waiting.reason";
    kubectl.until(&container("no-image", waiting), |text| text == "ErrImagePull" || text == "ImagePullBackOff").await;
    kubectl
        .until("events --for pod/no-image", |text| {
            text.contains("Failed to pull image \"localhost:9/absent/image:v1\"")
        })
        .await;
    kubectl.until(&container("no-image", waiting), |text| text == "ImagePullBackOff").await;
    kubectl.until(&container("never-pulled", waiting), |text| text == "ErrImageNeverPull").await;
    kubectl.until(&container("no-config", waiting), |text| text == "CreateContainerConfigError").await;
    let message = kubectl.ok(&container("no-config", "state.waiting.message")).await;
    assert_eq!(message, "configmap \"later\" not found");
    kubectl.until(&container("no-volume", waiting), |text| text == "ContainerCreating").await;
    kubectl
        .until("events --for pod/no-volume", |text| text.contains("MountVolume.SetUp failed for volume \"config\""))
        .await;
    let unschedulable = "get pod unfitting -o jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}";
    kubectl.until(unschedulable, |text| text.starts_with("0/2 nodes are available: 2 Insufficient cpu.")).await;
    // It comes, and so do the pods.
    kubectl.ok("create configmap later --from-literal=colour=green").await;
    kubectl.until("get pod no-config no-volume", |text| text.matches("Running").count() == 2).await;
    assert_eq!(kubectl.ok("logs no-config").await, "green");
    assert_eq!(kubectl.ok("exec no-volume -- cat /config/colour").await, "green");
}

/// A container that fails its liveness probe is replaced.
async fn unlively(kubectl: &Kubectl) {
    kubectl.ok("wait --for=condition=Ready pod/unlively --timeout=90s").await;
    kubectl.ok("exec unlively -- rm /tmp/alive").await;
    kubectl.until(&container("unlively", "restartCount"), |text| text == "1").await;
    kubectl
        .until("events --for pod/unlively", |text| {
            text.contains("Container main failed liveness probe, will be restarted")
        })
        .await;
}

/// A pod that is not ready gets no traffic.
async fn readiness(cluster: &Cluster, kubectl: &Kubectl) {
    let address = kubectl.ok("get service gated -o jsonpath={.spec.clusterIP}").await;
    let url = format!("http://{address}/hostname");
    kubectl.until("get pod gated", |text| text.contains("0/1") && text.contains("Running")).await;
    assert!(!cluster.try_fetch(&url).await.success());
    kubectl.ok("exec gated -- touch /tmp/ready").await;
    assert_eq!(cluster.fetch(&url, PATIENCE).await, "gated");
    kubectl.ok("exec gated -- rm /tmp/ready").await;
    let start = tokio::time::Instant::now();
    while cluster.try_fetch(&url).await.success() {
        assert!(start.elapsed() < PATIENCE, "the pod is not ready and still gets traffic");
    }
}

/// A container beyond its memory is killed, and the pod says why.
async fn too_much(kubectl: &Kubectl) {
    kubectl.until(&container("memory-eater", "state.terminated.reason"), |text| text == "OOMKilled").await;
    // The phase follows when nothing of the pod can run any more; until then the one before is told, as upstream does.
    kubectl.until("get pod memory-eater -o jsonpath={.status.phase}", |text| text == "Failed").await;
}
