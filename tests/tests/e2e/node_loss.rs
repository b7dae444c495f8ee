//! A node whose kubelet stops: it goes NotReady once its lease has expired, is tainted, its pods are evicted and replaced
//! elsewhere; when the kubelet is back, all of that is undone. Timings are upstream's, shortened by flags.

use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::{Cluster, manifest};
use crate::machine;

const NAMESPACE: &str = "node-loss";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok(&format!("apply -f {}", manifest("node-loss.yaml"))).await;
    kubectl.ok("rollout status deployment/app --timeout=90s").await;
    kubectl.ok("wait --for=condition=Ready pod/patient --timeout=90s").await;
    let address = kubectl.ok("get service app -o jsonpath={.spec.clusterIP}").await;
    let lost = kubectl
        .ok("get pods -l app=app --field-selector=spec.nodeName=node-2 -o jsonpath={.items[*].metadata.name}")
        .await;
    assert!(!lost.is_empty() && !lost.contains(' '), "one pod each: {lost:?}");

    let kubelet = cluster.process("kubelet-node-2");
    machine::kill(&kubelet);
    goes(&kubectl, &lost).await;
    for _ in 0..10 {
        // Its endpoint is gone by now, so every request is answered by the other node's pods.
        let answer = cluster.fetch(&format!("http://{address}/hostname"), PATIENCE).await;
        assert_ne!(answer, lost);
    }
    cluster.up().await;
    comes_back(&kubectl, &lost).await;
    kubectl.ok("delete namespace node-loss --timeout=120s").await;
}

async fn goes(kubectl: &Kubectl, lost: &str) {
    let ready = "get node node-2 -o jsonpath={.status.conditions[?(@.type==\"Ready\")]";
    kubectl.until(&format!("{ready}.status}}"), |text| text == "Unknown").await;
    assert_eq!(kubectl.ok(&format!("{ready}.reason}}")).await, "NodeStatusUnknown");
    assert_eq!(kubectl.ok(&format!("{ready}.message}}")).await, "Kubelet stopped posting node status.");
    assert!(kubectl.ok("get node node-2").await.contains("NotReady"));
    let taints = "get node node-2 -o jsonpath='{range .spec.taints[*]}{.key}:{.effect} {end}'";
    kubectl
        .until(taints, |text| {
            text.contains("node.kubernetes.io/unreachable:NoSchedule")
                && text.contains("node.kubernetes.io/unreachable:NoExecute")
        })
        .await;
    kubectl.until(&format!("get pod {lost}"), |text| text.contains("Terminating")).await;
    kubectl.until("events -n default --for node/node-2", |text| text.contains("NodeNotReady")).await;
    // Both replicas run, on the node that is left.
    let running = "get pods -l app=app --field-selector=spec.nodeName=node-1 --no-headers";
    kubectl.until(running, |text| text.matches("1/1").count() == 2).await;
    assert_eq!(kubectl.ok("get pod patient -o jsonpath={.metadata.deletionTimestamp}").await, "");
    kubectl
        .until("get endpointslices -l kubernetes.io/service-name=app -o yaml", |text| {
            !text.contains(&format!("name: {lost}")) || text.contains("terminating: true")
        })
        .await;
}

async fn comes_back(kubectl: &Kubectl, lost: &str) {
    kubectl.ok("wait --for=condition=Ready node/node-2 --timeout=60s").await;
    kubectl.until("get node node-2 -o jsonpath={.spec.taints}", str::is_empty).await;
    // What was evicted meanwhile ends now, what tolerated it all has run on.
    kubectl.ok(&format!("wait --for=delete pod/{lost} --timeout=60s")).await;
    kubectl.until("get pod patient", |text| text.contains("1/1") && text.contains("Running")).await;
    assert_eq!(kubectl.ok("get pod patient -o jsonpath={.status.containerStatuses[0].restartCount}").await, "0");
}
