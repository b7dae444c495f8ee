//! A whole cluster of real processes and real containers, driven by a stock `kubectl`.
//!
//! Needs root, containerd, nft and kubectl (`make deps` installs them) and the binaries and images (`make test` builds
//! them); skips, saying what is missing, where there is no such machine. One test, as there is one machine.

mod cluster;
mod kubectl;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use cluster::Cluster;
use futures_util::FutureExt as _;

const NAMESPACE: &str = "my-project-dev";
const START: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn an_application_runs_and_answers() {
    let Some(cluster) = Cluster::start(1).await else { return };
    // The machine is to be clean also after a failure.
    let outcome = AssertUnwindSafe(story(cluster.clone())).catch_unwind().await;
    cluster.stop().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

async fn story(cluster: Cluster) {
    let kubectl = cluster.kubectl();
    kubectl.ok(&["apply", "-f", cluster.repository("manifests/examples/echo.yaml").as_str()]).await;
    let rollout = ["-n", NAMESPACE, "rollout", "status", "deployment/my-app-deployment", "--timeout=120s"];
    kubectl.ok(&rollout).await;

    let address =
        kubectl.text(&["-n", NAMESPACE, "get", "service", "my-app-service", "-o", "jsonpath={.spec.clusterIP}"]);
    let answer = cluster.fetch(&format!("http://{}/", address.await), START).await;
    assert!(answer.contains("server_version"), "{answer}");

    let pods = ["-n", NAMESPACE, "get", "pods", "-l", "app=my-app", "-o", "jsonpath={.items[*].metadata.name}"];
    let names = kubectl.text(&pods).await;
    let names: Vec<&str> = names.split(' ').collect();
    assert_eq!(names.len(), 3);
    let said = kubectl.text(&["-n", NAMESPACE, "exec", names[0], "--", "echo", "hello"]).await;
    assert_eq!(said.trim(), "hello");
    kubectl.ok(&["-n", NAMESPACE, "logs", names[0]]).await;

    kubectl.ok(&["-n", NAMESPACE, "delete", "pod", names[0]]).await;
    kubectl.ok(&rollout).await;
    kubectl
        .ok(&[
            "-n",
            NAMESPACE,
            "set",
            "image",
            "deployment/my-app-deployment",
            "echo-container=k8s.gcr.io/echoserver:1.5",
        ])
        .await;
    kubectl.ok(&rollout).await;
    kubectl.ok(&["-n", NAMESPACE, "scale", "deployment/my-app-deployment", "--replicas=1"]).await;
    kubectl.ok(&rollout).await;
    kubectl.ok(&["delete", "namespace", NAMESPACE, "--timeout=120s"]).await;
}
