//! Processes that stand still for a while: a kubelet and a container runtime are stopped and go on later. The node says
//! what is wrong, its pods run on, and when all moves again nothing has been lost or restarted.

use sys::process::Process;
use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::Cluster;
use crate::machine;

const NAMESPACE: &str = "frozen";
const READY: &str = "get node node-2 -o jsonpath='{range .status.conditions[?(@.type==\"Ready\")]}";

/// A process that stands still until this value goes.
struct Frozen(Process);

impl Frozen {
    fn new(process: Process) -> Self {
        machine::stop(&process);
        Self(process)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        machine::go_on(&self.0);
    }
}

/// A pod on the second node that stays there whatever is wrong with it.
fn patient(name: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": {name:?}}}, "spec": {{
          "terminationGracePeriodSeconds": 1, "tolerations": [{{"operator": "Exists"}}],
          "nodeSelector": {{"kubernetes.io/hostname": "node-2"}},
          "containers": [{{"name": "echo", "image": "k8s.gcr.io/echoserver:1.4"}}]}}}}"#
    )
}

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.apply(&patient("patient")).await;
    kubectl.ok("wait --for=condition=Ready pod/patient --timeout=90s").await;
    let address = kubectl.ok("get pod patient -o jsonpath={.status.podIP}").await;
    let url = format!("http://{address}:8080/hostname");

    let kubelet = Frozen::new(cluster.process("kubelet-node-2"));
    kubectl.until(&format!("{READY}{{.status}}{{end}}'"), |status| status == "Unknown").await;
    assert_eq!(cluster.fetch(&url, PATIENCE).await, "patient");
    drop(kubelet);
    is_well_again(&kubectl).await;

    let runtime = Frozen::new(cluster.process("containerd-node-2"));
    let says = kubectl
        .until(&format!("{READY}{{.status}} {{.reason}} {{.message}}{{end}}'"), |text| text.starts_with("False"))
        .await;
    assert!(says.starts_with("False KubeletNotReady ") && says.contains("container runtime is down"), "{says}");
    assert_eq!(cluster.fetch(&url, PATIENCE).await, "patient");
    // What comes meanwhile waits.
    kubectl.apply(&patient("late")).await;
    kubectl.until("get pod late -o jsonpath={.spec.nodeName}", |node| node == "node-2").await;
    assert_eq!(kubectl.ok("get pod late -o jsonpath={.status.phase}").await, "Pending");
    drop(runtime);
    is_well_again(&kubectl).await;
    kubectl.ok("wait --for=condition=Ready pod/late --timeout=90s").await;
    kubectl.ok("delete namespace frozen --timeout=120s").await;
}

/// The node and its pod are as they were.
async fn is_well_again(kubectl: &Kubectl) {
    kubectl.ok("wait --for=condition=Ready node/node-2 --timeout=90s").await;
    kubectl.ok("wait --for=condition=Ready pod/patient --timeout=90s").await;
    assert_eq!(kubectl.ok("get pod patient -o jsonpath={.status.containerStatuses[0].restartCount}").await, "0");
    kubectl.until("get node node-2 -o jsonpath={.spec.taints}", str::is_empty).await;
}
