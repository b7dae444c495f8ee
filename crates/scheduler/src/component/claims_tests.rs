//! Volumes and devices over the API: what the watches bring in, and what is written.

use client::fake::FakeServer;
use serde_json::json;

use super::tests::{PODS, pod_in, put, start_gated, start_with};
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

/// A pod whose container uses a claim of one device.
fn using(name: &str, claim: &str) -> crate::test_objects::PodBuilder {
    let mut own = pod(name);
    own.0.spec.resource_claims.push(crate::test_objects::object(json!({"name": "d", "resourceClaimName": claim})));
    own.0.spec.containers[0].resources.claims.push(crate::test_objects::object(json!({"name": "d"})));
    own
}

#[tokio::test(start_paused = true)]
async fn what_claims_give_takes_up_room() {
    let device =
        |name: &str| json!({"name": name, "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "3"}}});
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d", "nodeName": "a", "devices": [device("one"), device("two")],
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}}});
    let class =
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}});
    let claim = |name: &str| {
        let exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1});
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}})
    };
    for is_on in [true, false] {
        let server = FakeServer::new();
        put(&server, "v1/nodes", &*node("a").build());
        server.put("resource.k8s.io/v1/resourceslices", slice.clone());
        server.put("resource.k8s.io/v1/deviceclasses", class.clone());
        ["c", "e"].into_iter().for_each(|name| server.put(DEVICE_CLAIMS, claim(name)));
        let gates = Gates::default().with(component_base::shared_gates::NODE_ALLOCATABLE, is_on);
        let shown = Metrics::new(MetricsOptions::default());
        let client = start_gated(&server, plugins::ALL, &config::default_configuration(), &gates, &shown).await;
        // Of the others one asks for it itself, and one has it by a claim: neither has room beside the first, whom it is not
        // known of yet what its claim gives it when they are decided about.
        put(&server, PODS, &*using("p", "c").build());
        put(&server, PODS, &*pod("q").request("cpu", "2").build());
        put(&server, PODS, &*using("r", "e").build());
        tokio::time::sleep(Duration::from_secs(2)).await;
        let bound = pod_in(&server, "p");
        assert_eq!(bound["spec"]["nodeName"], "a", "{bound}");
        let told = json!([{"resourceClaimName": "c", "containers": ["main"], "resources": {"cpu": "3"}}]);
        assert_eq!(bound["status"]["nodeAllocatableResourceClaimStatuses"], if is_on { told } else { Value::Null });
        let place = |name: &str| pod_in(&server, name)["spec"]["nodeName"].clone();
        assert_eq!([place("q"), place("r")], if is_on { [Value::Null, Value::Null] } else { ["a".into(), "a".into()] });
        if is_on {
            let message = |name: &str| pod_in(&server, name)["status"]["conditions"][0]["message"].to_string();
            assert!(message("q").contains("1 Insufficient cpu") && message("r").contains("1 Insufficient cpu"));
            // It goes: there is room for one of them.
            server.remove(PODS, "default", "p");
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert!([place("q"), place("r")].iter().filter(|place| **place == "a").count() == 1);
        }
        client.tasks().shutdown(Duration::from_secs(5)).await;
    }
}
