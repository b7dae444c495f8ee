//! A rolling update: never fewer pods ready nor more pods wanted than allowed, and never a request unanswered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tests::kubectl::{Kubectl, PATIENCE};
use tokio::time::Instant;

use crate::cluster::Cluster;

const NAMESPACE: &str = "rolling";
const REPLICAS: usize = 4;
const MAX_SURGE: usize = 1;
const MAX_UNAVAILABLE: usize = 1;
const MANIFESTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 4
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 1}
  selector:
    matchLabels: {app: app}
  template:
    metadata:
      labels: {app: app}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: echo
        image: k8s.gcr.io/echoserver:1.4
        readinessProbe:
          httpGet: {path: /readyz, port: 8080}
          periodSeconds: 1
        lifecycle:
          preStop:
            sleep: {seconds: 3}
---
apiVersion: v1
kind: Service
metadata:
  name: app
spec:
  selector: {app: app}
  ports:
  - port: 80
    targetPort: 8080
";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.apply(MANIFESTS).await;
    kubectl.ok("rollout status deployment/app --timeout=120s").await;
    let address = kubectl.ok("get service app -o jsonpath={.spec.clusterIP}").await;
    let url = format!("http://{address}/");
    assert!(cluster.fetch(&url, PATIENCE).await.contains("echoserver: 1.4"));

    let roll = async |line: &str| {
        kubectl.ok(line).await;
        kubectl.ok("rollout status deployment/app --timeout=150s").await;
    };
    guarded(&cluster, &kubectl, &url, roll("set image deployment/app echo=k8s.gcr.io/echoserver:1.5")).await;
    serves_only(&cluster, &url, "echoserver: 1.5").await;
    roll("rollout undo deployment/app").await;
    kubectl.until("get pods -o jsonpath={.items[*].spec.containers[0].image}", |text| !text.contains("1.5")).await;
    serves_only(&cluster, &url, "echoserver: 1.4").await;
    stuck(&kubectl).await;
    kubectl.ok("delete namespace rolling --timeout=120s").await;
}

/// Waits until the old pods, which serve on until the proxies have heard that they end, answer no more.
async fn serves_only(cluster: &Cluster, url: &str, version: &str) {
    let (start, mut in_a_row) = (Instant::now(), 0);
    while in_a_row < 20 {
        let answer = cluster.fetch(url, PATIENCE).await;
        in_a_row = if answer.contains(version) { in_a_row + 1 } else { 0 };
        assert!(start.elapsed() < PATIENCE, "others than {version} still answer: {answer}");
    }
}

/// Watches pods and traffic while the work goes on.
async fn guarded(cluster: &Cluster, kubectl: &Kubectl, url: &str, work: impl Future<Output = ()>) {
    let over = Arc::new(AtomicBool::new(false));
    let pods = async {
        while !over.load(Ordering::Relaxed) {
            let list = "get pods -o jsonpath='{range .items[*]}{.metadata.deletionTimestamp}/{.status.conditions[?(@.type==\"Ready\")].status} {end}'";
            let text = kubectl.ok(list).await;
            let text = text.trim_matches('\'');
            // Those that are being deleted no longer count.
            let ready = text.split_whitespace().filter(|word| *word == "/True").count();
            assert!(ready >= REPLICAS - MAX_UNAVAILABLE, "too few ready pods: {text}");
            // The sets are held to it: a new one may have its next pod before the old one has let go of its last.
            let sizes = kubectl.ok("get replicasets -o jsonpath={.items[*].spec.replicas}").await;
            let wanted: usize = sizes.split_whitespace().filter_map(|size| size.parse::<usize>().ok()).sum();
            let allowed = REPLICAS - MAX_UNAVAILABLE..=REPLICAS + MAX_SURGE;
            assert!(allowed.contains(&wanted), "sets want {sizes} pods");
        }
    };
    let traffic = async {
        let mut served = 0;
        while !over.load(Ordering::Relaxed) {
            let answer = cluster.try_fetch(url).await;
            assert!(answer.success(), "after {served} answers: {}", answer.error_text());
            served += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(served > 10, "only {served} requests");
    };
    let work = async {
        work.await;
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(work, pods, traffic);
}

/// A roll that cannot go on leaves the old pods serving.
async fn stuck(kubectl: &Kubectl) {
    kubectl.ok("set image deployment/app echo=localhost:9/absent/image:v2").await;
    kubectl.until("get pods", |text| text.contains("ErrImagePull") || text.contains("ImagePullBackOff")).await;
    let available = kubectl.ok("get deployment app -o jsonpath={.status.availableReplicas}").await;
    assert!(available.parse().unwrap_or(0) >= REPLICAS - MAX_UNAVAILABLE, "{available}");
    kubectl.ok("rollout undo deployment/app").await;
    kubectl.ok("rollout status deployment/app --timeout=90s").await;
}
