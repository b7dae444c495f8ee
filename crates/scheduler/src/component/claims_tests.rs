//! Volumes and devices over the API: what the watches bring in, and what is written.

use client::fake::FakeServer;
use serde_json::json;

use super::tests::{PODS, pod_in, put, start_with};
use super::*;
use crate::test_objects::{node, pod};

const CLAIMS: &str = "v1/persistentvolumeclaims";
const VOLUMES: &str = "v1/persistentvolumes";
const CLASSES: &str = "storage.k8s.io/v1/storageclasses";
const DEVICE_CLAIMS: &str = "resource.k8s.io/v1/resourceclaims";

fn only(server: &FakeServer, resource: &str) -> Value {
    server.objects(resource).remove(0)
}

async fn started(server: &FakeServer) -> Client {
    put(server, "v1/nodes", &*node("a").build());
    start_with(server, plugins::ALL, &config::default_configuration()).await
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_with_its_volume() {
    let server = FakeServer::new();
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "found"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"});
    server.put(CLASSES, class);
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "uid-c"},
        "spec": {"storageClassName": "found", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    server.put(CLAIMS, claim);
    let client = started(&server).await;
    put(&server, PODS, &*pod("p").claim("c").build());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = pod_in(&server, "p")["status"]["conditions"][0]["message"].clone();
    let nothing = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. no new claims to \
                   deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(message, nothing);
    // A volume wakes the pod.
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"storageClassName": "found", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"}});
    server.put(VOLUMES, volume);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut claim = only(&server, CLAIMS);
    assert_eq!(only(&server, VOLUMES)["spec"]["claimRef"]["uid"], "uid-c");
    let waiting = pod_in(&server, "p");
    assert_eq!((&waiting["spec"]["nodeName"], &waiting["status"]["nominatedNodeName"]), (&Value::Null, &"a".into()));
    // As the binder does; the watch tells at once.
    claim["spec"]["volumeName"] = "v".into();
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    server.put(CLAIMS, claim);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
    client.tasks().shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_with_its_devices() {
    let server = FakeServer::new();
    server.put(
        "resource.k8s.io/v1/deviceclasses",
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}}),
    );
    let request =
        json!({"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}});
    let claim = |name: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
            "spec": {"devices": {"requests": [request]}}})
    };
    let client = started(&server).await;
    let mut wanting = pod("p");
    wanting.0.spec.resource_claims.push(crate::test_objects::object(json!({"name": "d", "resourceClaimName": "c"})));
    put(&server, PODS, &*wanting.build());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(pod_in(&server, "p")["status"]["conditions"], Value::Null, "it is held back without a word");
    server.put(DEVICE_CLAIMS, claim("c"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = pod_in(&server, "p")["status"]["conditions"][0]["message"].clone();
    let nothing = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are \
                   available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(message, nothing);
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d", "nodeName": "a", "devices": [{"name": "one"}],
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}}});
    server.put("resource.k8s.io/v1/resourceslices", slice);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
    let claim = only(&server, DEVICE_CLAIMS);
    assert_eq!(claim["status"]["allocation"]["devices"]["results"][0]["device"], "one");
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], "uid-p");
    assert_eq!(claim["metadata"]["finalizers"][0], "resource.kubernetes.io/delete-protection");
    client.tasks().shutdown(Duration::from_secs(5)).await;
}
