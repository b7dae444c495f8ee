//! The application of the README: it runs, answers, resolves, is replaced when a pod goes, and goes with its namespace.

use std::time::Duration;

use tests::kubectl::PATIENCE;

use crate::cluster::{Cluster, repository};

const NAMESPACE: &str = "my-project-dev";
const NAME: &str = "my-app-service.my-project-dev.svc.cluster.local";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.kubectl("1.36", NAMESPACE);
    kubectl.ok(&format!("apply -f {}", repository("manifests/examples/echo.yaml"))).await;
    let rollout = "rollout status deployment/my-app-deployment --timeout=120s";
    kubectl.ok(rollout).await;

    let address = kubectl.ok("get service my-app-service -o jsonpath={.spec.clusterIP}").await;
    let answer = cluster.fetch(&format!("http://{address}/"), PATIENCE).await;
    assert!(answer.contains("server_version=echoserver: 1.4"), "{answer}");

    let pods = "get pods -l app=my-app -o jsonpath={.items[*].metadata.name}";
    let names = kubectl.ok(pods).await;
    let names: Vec<&str> = names.split(' ').collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let nodes = kubectl.ok("get pods -l app=my-app -o jsonpath={.items[*].spec.nodeName}").await;
    assert!(nodes.contains("node-1") && nodes.contains("node-2"), "pods are not spread: {nodes}");
    let fetch = format!("exec {} -- timeout 10 wget -qO- http://{NAME}/hostname", names[0]);
    let answer = kubectl.until(&fetch, |text| !text.is_empty()).await;
    assert!(names.contains(&answer.as_str()), "{answer}");

    kubectl.ok(&format!("delete pod {} --timeout=60s", names[0])).await;
    kubectl.ok(rollout).await;
    let replaced = kubectl.until(pods, |text| text.split(' ').count() == 3).await;
    assert!(!replaced.contains(names[0]), "{replaced}");

    kubectl.ok(&format!("delete namespace {NAMESPACE} --timeout=120s")).await;
    let left = kubectl.ok("get pods,services,deployments,replicasets,endpointslices,configmaps -o name").await;
    assert_eq!(left, "");
    // The rules of its Service go as well, so that its address leads nowhere.
    let start = tokio::time::Instant::now();
    while cluster.try_fetch(&format!("http://{address}/")).await.text().contains("echoserver") {
        assert!(start.elapsed() < PATIENCE, "{address} still answers");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
