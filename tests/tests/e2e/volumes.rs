//! Volumes on a fresh cluster: there is a default class, a StatefulSet gets its volumes, keeps, grows, copies, snapshots and
//! loses them, whichever process is killed meanwhile.

use std::path::PathBuf;

use sys::proc::Proc;
use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::{Cluster, manifest};
use crate::machine;

const NAMESPACE: &str = "volumes";
const SNAPSHOT: &str = "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata:\n  name: before\nspec:\n  \
                        source:\n    persistentVolumeClaimName: data-db-0\n";

pub(crate) async fn story(cluster: Cluster) {
    let system = cluster.kubectl("1.36", "kube-system");
    system.ok("rollout status daemonset/csi-local --timeout=120s").await;
    system.ok("rollout status deployment/snapshot-controller --timeout=120s").await;
    let classes = system.ok("get storageclass").await;
    assert!(classes.contains("csi-local (default)"), "{classes}");
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok(&format!("apply -f {}", manifest("volumes.yaml"))).await;
    ready(&kubectl).await;
    kubectl.ok("exec db-0 -- sh -c 'echo precious >/data/kept && sync'").await;
    survives(&cluster, &kubectl).await;
    grows(&kubectl).await;
    copies(&kubectl).await;
    goes(&cluster, &kubectl).await;
}

async fn ready(kubectl: &Kubectl) {
    kubectl.ok("rollout status statefulset/db --timeout=120s").await;
    kubectl.until("get statefulset db -o jsonpath={.status.readyReplicas}", |text| text == "2").await;
}

async fn is_kept(kubectl: &Kubectl) {
    let kept = kubectl.until("exec db-0 -- cat /data/kept", |text| text == "precious").await;
    assert_eq!(kept, "precious");
}

/// Processes of a program with an argument that names something below the cluster's root.
fn pids(cluster: &Cluster, program: &str) -> Vec<u32> {
    let (proc, place) = (Proc::system(), cluster.root.display().to_string());
    let is_it = |pid: &u32| {
        let words = proc.command_line(*pid).unwrap_or_default();
        let is_program = words.first().is_some_and(|first| first.ends_with(program));
        is_program && words.iter().any(|word| word.contains(&place))
    };
    proc.pids().expect("processes can be listed").into_iter().filter(is_it).collect()
}

/// What was written is there whoever dies, and the next pod gets it.
async fn survives(cluster: &Cluster, kubectl: &Kubectl) {
    kubectl.ok("delete pod db-0 --timeout=60s").await;
    ready(kubectl).await;
    is_kept(kubectl).await;
    for program in ["csi-local", "csi-controller"] {
        let victims = pids(cluster, program);
        assert_eq!(victims.len(), 2, "one {program} for each node: {victims:?}");
        victims.into_iter().for_each(machine::kill_number);
        // The pod goes and comes while the driver does.
        kubectl.ok("delete pod db-0 --timeout=90s").await;
        ready(kubectl).await;
        is_kept(kubectl).await;
    }
    for node in ["node-1", "node-2"] {
        let kubelet = cluster.process(&format!("kubelet-{node}"));
        machine::kill(&kubelet);
        assert!(kubelet.wait(PATIENCE).await.expect("it can be waited for"), "the kubelet survives");
    }
    // Nobody notices, and the kubelets that come find what is mounted.
    cluster.up().await;
    is_kept(kubectl).await;
    kubectl.ok("delete pod db-0 db-1 --timeout=90s").await;
    ready(kubectl).await;
    is_kept(kubectl).await;
    let starts = kubectl.ok("exec db-0 -- cat /data/starts").await;
    assert_eq!(starts.lines().count(), 5, "{starts}");
}

async fn grows(kubectl: &Kubectl) {
    let size = "get pvc data-db-0 -o jsonpath={.status.capacity.storage}";
    assert_eq!(kubectl.ok(size).await, "16Mi");
    kubectl.ok("patch pvc data-db-0 -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"32Mi\"}}}}'").await;
    kubectl.until(size, |text| text == "32Mi").await;
    let volume = kubectl.ok("get pvc data-db-0 -o jsonpath={.spec.volumeName}").await;
    assert_eq!(kubectl.ok(&format!("get pv {volume} -o jsonpath={{.spec.capacity.storage}}")).await, "32Mi");
    is_kept(kubectl).await;
}

async fn copies(kubectl: &Kubectl) {
    kubectl.apply(SNAPSHOT).await;
    kubectl.until("get volumesnapshot before -o jsonpath={.status.readyToUse}", |text| text == "true").await;
    kubectl.ok("exec db-0 -- sh -c 'echo later >/data/kept && sync'").await;
    kubectl.ok(&format!("apply -f {}", manifest("volume-copies.yaml"))).await;
    kubectl.ok("wait --for=condition=Ready pod/reader --timeout=120s").await;
    assert_eq!(kubectl.ok("exec reader -- cat /restored/kept").await, "precious");
    assert_eq!(kubectl.ok("exec reader -- cat /clone/kept").await, "later");
    // They are copies.
    kubectl.ok("exec reader -- sh -c 'echo other >/clone/kept'").await;
    assert_eq!(kubectl.ok("exec db-0 -- cat /data/kept").await, "later");
}

/// With the claims and the snapshot everything goes, in the cluster and on disk.
async fn goes(cluster: &Cluster, kubectl: &Kubectl) {
    kubectl.ok("delete statefulset,pod --all --timeout=90s").await;
    kubectl.ok("delete volumesnapshot --all --timeout=90s").await;
    kubectl.ok("delete pvc --all --timeout=90s").await;
    kubectl.until("get pv -o name", str::is_empty).await;
    assert_eq!(kubectl.ok("get volumesnapshotcontent -o name").await, "");
    for node in ["node-1", "node-2"] {
        for kind in ["volumes", "snapshots", "building", "removed"] {
            let place: PathBuf = cluster.root.join("nodes").join(node).join("var/lib/csi-local").join(kind);
            let left: Vec<_> = std::fs::read_dir(&place).expect("the driver's directory").flatten().collect();
            assert!(left.is_empty(), "{}: {left:?}", place.display());
        }
    }
    kubectl.ok("delete namespace volumes --timeout=120s").await;
}
