//! Taking a node out of service and back: cordon, drain (which heeds disruption budgets), taints, uncordon.

use crate::cluster::Cluster;

const NAMESPACE: &str = "maintenance";
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 4
  selector:
    matchLabels: {app: app}
  template:
    metadata:
      labels: {app: app}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: busybox:1.36
        command: [sleep, \"3600\"]
";

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.apply(DEPLOYMENT).await;
    kubectl.ok("rollout status deployment/app --timeout=90s").await;
    let nodes = "get pods -l app=app -o jsonpath={.items[*].spec.nodeName}";
    for version in ["1.36", "1.32"] {
        let kubectl = cluster.kubectl(version, NAMESPACE);
        let before = kubectl.ok(nodes).await;
        assert!(before.contains("node-1") && before.contains("node-2"), "pods are not spread: {before}");
        assert!(kubectl.ok("cordon node-2").await.contains("node/node-2 cordoned"));
        assert!(kubectl.ok("get node node-2").await.contains("Ready,SchedulingDisabled"));
        let drained = kubectl.ok("drain node-2 --ignore-daemonsets --delete-emptydir-data --force --timeout=90s").await;
        assert!(drained.contains("node/node-2 drained"), "{drained}");
        kubectl.ok("rollout status deployment/app --timeout=90s").await;
        kubectl.until(nodes, |text| text == "node-1 node-1 node-1 node-1").await;
        assert!(kubectl.ok("uncordon node-2").await.contains("node/node-2 uncordoned"));
        taint(&cluster, version).await;
        kubectl.ok("rollout restart deployment/app").await;
        kubectl.ok("rollout status deployment/app --timeout=90s").await;
        kubectl.until(nodes, |text| text.split(' ').count() == 4).await;
    }
    kubectl.ok("delete namespace maintenance --timeout=120s").await;
}

/// A pod that does not tolerate a taint goes nowhere near it; one that runs there is evicted.
async fn taint(cluster: &Cluster, version: &str) {
    let kubectl = cluster.kubectl(version, NAMESPACE);
    let pod = "run visitor --image=busybox:1.36 --image-pull-policy=IfNotPresent \
        --overrides={\"spec\":{\"terminationGracePeriodSeconds\":1,\"nodeSelector\":{\"kubernetes.io/hostname\":\"node-2\"}}} -- sleep 3600";
    assert!(kubectl.ok("taint node node-2 closed=yes:NoSchedule").await.contains("node/node-2 tainted"));
    kubectl.ok(pod).await;
    let why = "get pod visitor -o jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}";
    kubectl.until(why, |text| text.contains("1 node(s) had untolerated taint(s)")).await;
    assert!(kubectl.ok("taint node node-2 closed-").await.contains("node/node-2 untainted"));
    kubectl.ok("wait --for=condition=Ready pod/visitor --timeout=60s").await;
    kubectl.ok("taint node node-2 leave=now:NoExecute").await;
    kubectl.ok("wait --for=delete pod/visitor --timeout=60s").await;
    kubectl.ok("taint node node-2 leave-").await;
}
