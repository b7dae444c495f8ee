//! The cloud controller manager as a process, over the cloud that is a file: it introduces a node to the cluster with
//! what the cloud knows of it, and takes the node away when the cloud has it no more.

use sys::exec::Command;

use crate::background::Background;
use crate::cluster::{Cluster, KUBECTL};

/// A node that says it waits for its cloud; nothing is to run on it.
const NODE: &str = "
apiVersion: v1
kind: Node
metadata:
  name: rented
spec:
  unschedulable: true
  taints:
  - {key: node.cloudprovider.kubernetes.io/uninitialized, value: 'true', effect: NoSchedule}
";
const CLOUD: &str = "
instances:
- name: rented
  providerID: fake://rented
  instanceType: small
  zone: a
  region: here
  addresses:
  - {type: InternalIP, address: 192.0.2.77}
";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.kubectl(KUBECTL[0], "default");
    let cloud = cluster.root.join("cloud.yaml");
    std::fs::write(&cloud, CLOUD).expect("the cloud can be written");
    kubectl.apply(NODE).await;
    let program = cluster.binaries.join("cloud-controller-manager");
    let command = Command::new(program).args([
        format!("--kubeconfig={}", kubectl.kubeconfig.display()),
        "--cloud-provider=fake".to_owned(),
        format!("--cloud-config={}", cloud.display()),
        "--node-monitor-period=1s".to_owned(),
        "--secure-port=0".to_owned(),
    ]);
    let manager = Background::start(&cluster.exec, command).await;
    let known = "get node rented -o jsonpath={.spec.providerID}|{.metadata.labels.topology\\.kubernetes\\.io/zone}|\
        {.metadata.labels.node\\.kubernetes\\.io/instance-type}|{.status.addresses[0].address}";
    kubectl.until(known, |text| text == "fake://rented|a|small|192.0.2.77").await;
    let taints = "get node rented -o jsonpath={.spec.taints[*].key}";
    kubectl.until(taints, |text| !text.contains("uninitialized")).await;
    let lease = "-n kube-system get lease cloud-controller-manager -o jsonpath={.spec.holderIdentity}";
    assert!(!kubectl.ok(lease).await.is_empty(), "nobody leads: {}", manager.text());

    // Nobody sends its heartbeats, so the node is lost; whether it goes is for the cloud to say.
    kubectl.until(taints, |text| text.contains("unreachable")).await;
    std::fs::write(&cloud, "instances: []\n").expect("the cloud can be written");
    kubectl.until("get nodes -o name", |text| !text.contains("rented")).await;
}
