//! `coxswain up` on a cluster that runs changes nothing; after the machine has lost everything that does not survive a
//! reboot it brings the same cluster back.

use std::path::PathBuf;
use std::time::Duration;

use sys::cgroups::{CgroupPath, LinuxCgroups};
use sys::exec::{Command, Exec as _};
use sys::mounts::{LinuxMounts, Mounts as _, Unmount};
use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::Cluster;
use crate::machine;

const NAMESPACE: &str = "reboot";
const NODES: [&str; 2] = ["node-1", "node-2"];
const PROCESSES: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet-node-1",
    "kubelet-node-2",
    "kube-proxy-node-1",
    "kube-proxy-node-2",
    "containerd-node-1",
    "containerd-node-2",
];
const CGROUP_DEADLINE: Duration = Duration::from_secs(20);
/// Names in the machine that a reboot takes with it, and how to take them without one.
const KERNEL_STATE: &[&[&str]] = &[
    &["ip", "link", "delete", "coxswain-fab"],
    &["ip", "link", "delete", "coxswain-0"],
    &["ip", "netns", "delete", "coxswain-fab"],
    &["ip", "netns", "delete", "coxswain-1"],
    &["nft", "delete", "table", "ip", "kube-proxy"],
    &["nft", "delete", "table", "inet", "coxswain-coxswain"],
];

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok("create deployment app --image=k8s.gcr.io/echoserver:1.4 --replicas=3").await;
    kubectl.ok("expose deployment app --port=80 --target-port=8080").await;
    kubectl.ok("rollout status deployment/app --timeout=90s").await;
    twice(&cluster).await;

    let uids = "get pods,services,deployments -o jsonpath={.items[*].metadata.uid}";
    let before = kubectl.ok(uids).await;
    stop_the_machine(&cluster).await;
    cluster.up().await;
    works(&cluster, &kubectl).await;
    assert_eq!(kubectl.ok(uids).await, before, "other objects than before");
    kubectl.ok("delete namespace reboot --timeout=120s").await;
}

async fn twice(cluster: &Cluster) {
    let look = async || {
        let processes: Vec<u32> = PROCESSES.iter().map(|name| cluster.process(name).pid()).collect();
        let mut tasks = Vec::new();
        for node in NODES {
            tasks.push(cluster.tasks(node).await);
        }
        (processes, tasks)
    };
    let before = look().await;
    cluster.up().await;
    assert_eq!(look().await, before, "up changed what was up");
}

/// All processes gone at once, then everything that is in the kernel or in memory only.
async fn stop_the_machine(cluster: &Cluster) {
    let groups = || NODES.iter().filter_map(|node| CgroupPath::new(&format!("coxswain-{node}")));
    for _ in 0..2 {
        for place in [&cluster.root, &cluster.state] {
            machine::processes_of(place).into_iter().for_each(|(pid, _)| machine::kill_number(pid));
        }
    }
    for group in groups() {
        let gone = sys::cgroups::destroy(&LinuxCgroups::detect(), &group, CGROUP_DEADLINE).await;
        gone.expect("the pods' control groups can be removed");
    }
    for place in [&cluster.root, &cluster.state] {
        LinuxMounts.unmount_below(place, Unmount::Lazy).expect("mounts can be removed");
    }
    for words in KERNEL_STATE {
        let (program, arguments) = words.split_first().expect("a command has a program");
        let _ = cluster.exec.run(&Command::with(program, arguments)).await;
    }
    shim_sockets(cluster).into_iter().for_each(|socket| drop(std::fs::remove_file(socket)));
    sys::tree::remove_tree(&cluster.state).expect("the state can be removed");
}

/// The sockets of shims, which are in memory as well, but in a directory that all runtimes of the machine share.
fn shim_sockets(cluster: &Cluster) -> Vec<PathBuf> {
    let tasks = |node| cluster.state.join(node).join("containerd/io.containerd.runtime.v2.task/k8s.io");
    let bundles = NODES.iter().flat_map(|node| std::fs::read_dir(tasks(node)).into_iter().flatten().flatten());
    let addresses = bundles.filter_map(|bundle| std::fs::read_to_string(bundle.path().join("address")).ok());
    addresses.filter_map(|address| Some(PathBuf::from(address.trim().strip_prefix("unix://")?))).collect()
}

async fn works(cluster: &Cluster, kubectl: &Kubectl) {
    kubectl.until("get nodes --no-headers", |text| text.matches(" Ready").count() == 2).await;
    let restarted = "get pods -o jsonpath={.items[*].status.containerStatuses[0].restartCount}";
    kubectl.until(restarted, |text| text == "1 1 1").await;
    kubectl.until("get deployment app", |text| text.contains("3/3")).await;
    let address = kubectl.ok("get service app -o jsonpath={.spec.clusterIP}").await;
    let answer = cluster.fetch(&format!("http://{address}/hostname"), PATIENCE).await;
    assert!(answer.starts_with("app-"), "{answer}");
    kubectl
        .until("exec deployment/app -- timeout 10 wget -qO- http://app/hostname", |text| text.starts_with("app-"))
        .await;
}
