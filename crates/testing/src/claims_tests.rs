//! The way of a claim for dynamic resources: made from a template, allocated by the scheduler, prepared by a kubelet whose
//! driver is at a real socket, given to the container, and let go of.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use api_types::resource_v1::ResourceClaim;
use base::{TaskGroup, TokioClock};
use client::{Client, Request};
use http::Method;
use kubelet_node::dra::DynamicResources;
use kubelet_node::dra::fake::{claims_of, drivers_of};
use kubelet_pods::engine::test_node::{TestNode, engine_with, settings};
use kubelet_pods::metrics::KubeletMetrics;
use node_api::cri::Images as _;
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::ImageSpec;
use node_api::dra::DraVersion;
use node_api::dra::fake::{FakeDriver, POOL};
use serde_json::{Value, json};

use crate::Cluster;

const DRIVER: &str = "gpu.example.com";
const NODE: &str = "node1";
const IMAGE: &str = "docker.io/library/app:1";

async fn create(client: &Client, path: &str, body: Value) {
    let request = Request::new(Method::POST, path).body("application/json", body.to_string());
    client.send(request).await.expect(path);
}

/// What the cluster knows of the node and its devices.
async fn publish(admin: &Client) {
    let resources = json!({"cpu": "2", "memory": "4Gi", "pods": "110"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]);
    let status = json!({"capacity": resources, "allocatable": resources, "conditions": ready});
    create(admin, "/api/v1/nodes", json!({"metadata": {"name": NODE}, "status": status})).await;
    let group = "/apis/resource.k8s.io/v1";
    let device_class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": format!("device.driver == {DRIVER:?}")}}]}});
    create(admin, &format!("{group}/deviceclasses"), device_class).await;
    let pool = json!({"name": POOL, "generation": 1, "resourceSliceCount": 1});
    let slice = json!({"metadata": {"name": "slice"}, "spec": {
        "driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "gpu-0"}]}});
    create(admin, &format!("{group}/resourceslices"), slice).await;
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
    let template = json!({"metadata": {"name": "template"}, "spec": {"spec": {"devices": {"requests": [request]}}}});
    create(admin, &format!("{group}/namespaces/default/resourceclaimtemplates"), template).await;
}

/// A kubelet's claims, with the driver.
fn claims(root: &Path, client: &Client, socket: &Path, tasks: &TaskGroup) -> Arc<DynamicResources> {
    let drivers = drivers_of(client.clone(), NODE, tasks);
    drivers.add(DRIVER, &socket.display().to_string(), DraVersion::V1).unwrap();
    claims_of(root, client.clone(), drivers, KubeletMetrics::unseen()).unwrap()
}

/// Waits in the cluster's time.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come about");
}

#[test]
fn a_claim_goes_from_its_template_to_the_container_and_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::new(1).await.unwrap();
        let admin = cluster.admin().clone();
        publish(&admin).await;
        let (root, tasks, driver) = (tempfile::tempdir().unwrap(), TaskGroup::new("node"), FakeDriver::default());
        let socket = root.path().join("dra.sock");
        driver.serve(&socket, DraVersion::V1, &tasks).unwrap();
        let node = Arc::new(TestNode::default());
        *node.claims.lock() = Some(claims(root.path(), &admin, &socket, &tasks));
        std::fs::create_dir_all(root.path().join("manifests")).unwrap();
        let containers = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("runtime"));
        let image = ImageSpec { image: IMAGE.to_owned(), ..ImageSpec::default() };
        containers.pull_image(image, None, None).await.unwrap();
        let shared = Arc::new(containers.clone());
        let runtimes = (shared.clone() as Arc<_>, shared as Arc<_>);
        let clock = TokioClock::shared();
        let _engine = engine_with(settings(root.path()), &node, Some(admin.clone()), runtimes, clock, &tasks);

        let container = json!({"name": "main", "image": IMAGE, "resources": {"claims": [{"name": "gpu"}]}});
        // Nobody renews the lease of this node.
        let pod = json!({"metadata": {"name": "web"}, "spec": {
            "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "template"}],
            "containers": [container]}});
        create(&admin, "/api/v1/namespaces/default/pods", pod).await;
        let pods = admin.namespaced::<Pod>("default");
        let running = async || pods.get("web").await.ok().filter(|pod| pod.status.phase == "Running");
        let pod = until("the pod's running", running).await;
        let claim = pod.status.resource_claim_statuses[0].resource_claim_name.clone().unwrap();
        assert_eq!(driver.ready(), [format!("default/{claim}")]);
        let given = containers.container_configs("main").remove(0).cdi_devices;
        let given: Vec<&str> = given.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(given, [FakeDriver::cdi_id(&claim)]);

        pods.delete("web", &Default::default()).await.unwrap();
        let all = admin.namespaced::<ResourceClaim>("default");
        until("the claim's end", async || all.get_opt(&claim).await.unwrap().is_none().then_some(())).await;
        assert_eq!(driver.asked(), [format!("prepare default/{claim}"), format!("unprepare default/{claim}")]);
        tasks.shutdown(Duration::from_secs(5)).await;
        cluster.shutdown().await;
    });
}
