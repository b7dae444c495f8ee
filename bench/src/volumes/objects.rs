//! The nodes, the pods, their claims and volumes.

use anyhow::Result;
use api_machinery::object::from_value;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::StorageClass;
use serde_json::{Value, json};

/// Where pods and claims are.
pub(super) const NAMESPACE: &str = "bench";
/// Who makes the volumes.
pub(super) const DRIVER: &str = "hollow.csi.bench";
const CLASS: &str = "hollow";
/// Says of a node that volumes are attached for it.
const ATTACHED_FOR: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

pub(super) fn node(number: usize) -> Result<Node> {
    let name = format!("node-{number:03}");
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    Ok(from_value(&json!({
        "metadata": {"name": name, "annotations": {ATTACHED_FOR: "true"}, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}]},
    }))?)
}

pub(super) fn class() -> Result<StorageClass> {
    let binding = "WaitForFirstConsumer";
    Ok(from_value(&json!({"metadata": {"name": CLASS}, "provisioner": DRIVER, "volumeBindingMode": binding}))?)
}

fn claim_name(number: usize) -> String {
    format!("data-{number:04}")
}

pub(super) fn claim(number: usize) -> Result<PersistentVolumeClaim> {
    Ok(from_value(&json!({
        "metadata": {"name": claim_name(number), "namespace": NAMESPACE},
        "spec": {"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}},
    }))?)
}

/// The volume that the driver makes for a claim.
pub(super) fn volume(claim: &PersistentVolumeClaim) -> Result<PersistentVolume> {
    let meta = &claim.metadata;
    let name = format!("pvc-{}", meta.uid);
    Ok(from_value(&json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {"storageClassName": CLASS, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta.namespace,
                "name": meta.name, "uid": meta.uid}},
    }))?)
}

pub(super) fn pod(number: usize, has_volume: bool) -> Result<Pod> {
    let mut spec: Value = json!({"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]});
    if has_volume {
        spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim_name(number)}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    }
    let name = format!("app-{number:04}");
    Ok(from_value(&json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}))?)
}

/// What a kubelet tells of a pod that runs.
pub(super) fn running(pod: &Pod) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"].map(condition);
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    json!({"metadata": {"uid": pod.metadata.uid}, "status": {"phase": "Running", "conditions": conditions,
        "containerStatuses": [{"name": "main", "ready": true, "started": true, "restartCount": 0,
            "image": "registry.k8s.io/pause:3.10", "imageID": "", "state": state}]}})
}
