//! Pods with claims for dynamic resources, on an engine with an API server and a driver at a real socket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use client::fake::FakeServer;
use kubelet_node::dra::DynamicResources;
use kubelet_node::dra::fake::{claims_of, drivers_of};
use node_api::dra::DraVersion;
use node_api::dra::fake::{FakeDriver, POOL};
use serde_json::json;

use super::api_tests::{Bench, pod, restarted, start_with};
use super::test_node::TestNode;
use crate::metrics::KubeletMetrics;

const DRIVER: &str = "gpu.example.com";

/// What a kubelet has of claims, with one driver at a socket.
fn claims(root: &Path, server: &FakeServer, socket: &Path, tasks: &TaskGroup) -> Arc<DynamicResources> {
    let drivers = drivers_of(server.client(), "node1", tasks);
    drivers.add(DRIVER, &socket.display().to_string(), DraVersion::V1).unwrap();
    claims_of(root, server.client(), drivers, KubeletMetrics::unseen()).unwrap()
}

/// An engine whose API has a pod with a claim that was made from a template, allocated, and reserved for it.
async fn start(driver: &FakeDriver, tasks: &TaskGroup) -> Bench {
    let (server, node) = (FakeServer::new(), Arc::new(TestNode::default()));
    let root = tempfile::tempdir().unwrap();
    let socket = root.path().join("dra.sock");
    driver.serve(&socket, DraVersion::V1, tasks).unwrap();
    *node.claims.lock() = Some(claims(root.path(), &server, &socket, tasks));
    let bench = start_with(root, server, node).await;
    let result = json!({"request": "gpu", "driver": DRIVER, "pool": POOL, "device": "gpu-made"});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "made", "namespace": "default", "uid": "claim-uid", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web", "controller": true}]},
        "status": {"allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "web", "uid": "uid-web"}]},
    });
    bench.server.put("resource.k8s.io/v1/resourceclaims", claim);
    let mut web = pod("web", "node1");
    web["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "template"}]);
    web["spec"]["containers"][0]["resources"] = json!({"claims": [{"name": "gpu", "request": "gpu"}]});
    web["status"]["resourceClaimStatuses"] = json!([{"name": "gpu", "resourceClaimName": "made"}]);
    bench.server.put("v1/pods", web);
    bench
}

fn delete(bench: &Bench) {
    let mut going = bench.object("web").unwrap();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 2.into();
    bench.server.put("v1/pods", going);
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_ready_before_its_pod_starts_and_let_go_of_after_its_end() {
    let (driver, drivers) = (FakeDriver::default(), TaskGroup::new("drivers"));
    let bench = start(&driver, &drivers).await;
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    let given = bench.runtime.container_configs("main").remove(0).cdi_devices;
    assert_eq!(given.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), [FakeDriver::cdi_id("made")]);
    assert_eq!(driver.asked(), ["prepare default/made"]);

    let socket = bench.root.path().join("dra.sock");
    let again = claims(bench.root.path(), &bench.server, &socket, &drivers);
    *bench.node.claims.lock() = Some(again);
    let bench = restarted(bench).await;
    bench.wait("known", |bench| bench.engine.pod("default", "web").is_some()).await;
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(driver.asked(), ["prepare default/made"], "what runs goes on, and nothing is taken from it");

    driver.refuse("made", Some("busy"));
    delete(&bench);
    bench.wait("asked", |_| driver.asked().len() > 1).await;
    assert!(bench.object("web").is_some() && !driver.ready().is_empty(), "it is there while its devices are in use");
    driver.refuse("made", None);
    bench.wait("over", |bench| bench.phase("web") == "Failed").await;
    assert!(driver.ready().is_empty());
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_claim_and_can_be_deleted_meanwhile() {
    let (driver, drivers) = (FakeDriver::default(), TaskGroup::new("drivers"));
    driver.refuse("made", Some("broken"));
    let bench = start(&driver, &drivers).await;
    let text = "Warning FailedPrepareDynamicResources  Failed to prepare dynamic resources: prepare dynamic resources: \
                NodePrepareResources failed for ResourceClaim made: broken";
    bench.wait("told", |bench| bench.node.told(text)).await;
    assert!(bench.runtime.sandbox_ids().is_empty() && bench.phase("web") == "Pending");
    let tries = driver.asked().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tried = driver.asked().len() - tries;
    assert!((3..10).contains(&tried), "{tried} tries in a minute");
    driver.hang(true);
    let before = driver.asked().len();
    bench.wait("hanging", |_| driver.asked().len() > before).await;
    delete(&bench);
    // It is told within the grace period that it is to end, and not only once the driver is given up on.
    driver.hang(false);
    driver.refuse("made", None);
    bench.wait("over", |bench| bench.phase("web") == "Failed").await;
    assert_eq!(driver.asked().last().map(String::as_str), Some("unprepare default/made"));
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}
