//! Any process may be killed at any moment: what was acknowledged is there afterwards, containers run on untouched, and
//! the cluster goes on working once the process is back.

use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::Cluster;
use crate::machine;

const NAMESPACE: &str = "kills";
const VICTIMS: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet-node-1",
    "kube-proxy-node-1",
    "containerd-node-1",
];

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok("create deployment app --image=k8s.gcr.io/echoserver:1.4 --replicas=2").await;
    kubectl.ok("expose deployment app --port=80 --target-port=8080").await;
    kubectl.ok("rollout status deployment/app --timeout=90s").await;
    let address = kubectl.ok("get service app -o jsonpath={.spec.clusterIP}").await;
    let url = format!("http://{address}/hostname");
    cluster.fetch(&url, PATIENCE).await;
    let running = running(&cluster, &kubectl).await;
    for (number, victim) in VICTIMS.iter().enumerate() {
        kubectl.ok(&format!("create configmap before-{number} --from-literal=victim={victim}")).await;
        let process = cluster.process(victim);
        machine::kill(&process);
        assert!(process.wait(PATIENCE).await.expect("it can be waited for"), "{victim} survives");
        // Nobody else is needed for connections through the Service.
        assert!(cluster.try_fetch(&url).await.success(), "without {victim} the Service does not answer");
        cluster.up().await;
        let kept = kubectl.ok(&format!("get configmap before-{number} -o jsonpath={{.data.victim}}")).await;
        assert_eq!(kept, *victim);
        works(&cluster, &kubectl, number).await;
    }
    // The last word of the runtimes themselves: the same processes as at the start.
    assert_eq!(self::running(&cluster, &kubectl).await, running);
    kubectl.ok("delete namespace kills --timeout=120s").await;
}

/// The containers of pods that the story does not touch, as the API and the runtimes tell it.
async fn running(cluster: &Cluster, kubectl: &Kubectl) -> (String, Vec<String>) {
    let ids = kubectl
        .until("get pods -l app=app -o jsonpath={.items[*].status.containerStatuses[*].containerID}", |text| {
            text.split(' ').count() == 2
        })
        .await;
    let mut tasks = Vec::new();
    for node in ["node-1", "node-2"] {
        let of_pods = |line: &&str| ids.contains(line.split_whitespace().next().unwrap_or("none"));
        tasks.extend(cluster.tasks(node).await.lines().filter(of_pods).map(str::to_owned));
    }
    assert_eq!(tasks.len(), 2, "{tasks:?}");
    (ids, tasks)
}

/// The whole road works: a pod is made, placed, started, reached through a Service, and taken away.
async fn works(cluster: &Cluster, kubectl: &Kubectl, number: usize) {
    let name = format!("check-{number}");
    kubectl.ok(&format!("create deployment {name} --image=k8s.gcr.io/echoserver:1.4")).await;
    kubectl.ok(&format!("expose deployment {name} --port=80 --target-port=8080")).await;
    kubectl.ok(&format!("rollout status deployment/{name} --timeout=90s")).await;
    let address = kubectl.ok(&format!("get service {name} -o jsonpath={{.spec.clusterIP}}")).await;
    let answer = cluster.fetch(&format!("http://{address}/hostname"), PATIENCE).await;
    assert!(answer.starts_with(&name), "{answer}");
    assert_eq!(kubectl.ok(&format!("exec deployment/{name} -- echo alive")).await, "alive");
    kubectl.ok(&format!("delete deployment,service {name} --wait=false")).await;
}
