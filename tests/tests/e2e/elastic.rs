//! Autoscaling by what pods really use: kubelets tell metrics-server, which answers behind the API server; `kubectl top` shows
//! it, and a HorizontalPodAutoscaler follows the load up and down again.

use std::time::Duration;

use tests::kubectl::Kubectl;

use crate::cluster::{Cluster, KUBECTL, manifest};

const NAMESPACE: &str = "elastic";
/// Usage is measured, scraped and judged every 15 s each, and pods are new at first.
const FOLLOWING: Duration = Duration::from_secs(240);
const REPLICAS: &str = "get deployment busy -o jsonpath={.spec.replicas}";

pub(crate) async fn story(cluster: Cluster) {
    let system = cluster.kubectl(KUBECTL[0], "kube-system");
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok(&format!("apply -f {}", manifest("elastic.yaml"))).await;
    system.ok("rollout status deployment/metrics-server --timeout=150s").await;
    system.ok("wait --for=condition=Available apiservice/v1beta1.metrics.k8s.io --timeout=90s").await;
    vouched_for(&system).await;
    kubectl.ok("rollout status deployment/busy --timeout=90s").await;

    nodes_and_pods(&kubectl).await;
    load_and_back(&kubectl).await;
    several_servers(&system, &kubectl).await;
    kubectl.ok("delete namespace elastic --timeout=120s").await;
}

/// Nobody is believed without a certificate: neither the extension server nor kubelets.
async fn vouched_for(system: &Kubectl) {
    let spec = system.ok("get apiservice v1beta1.metrics.k8s.io -o jsonpath={.spec}").await;
    assert!(spec.contains("caBundle") && !spec.contains("insecureSkipTLSVerify"), "{spec}");
    let arguments = "get deployment metrics-server -o jsonpath={.spec.template.spec.containers[0].args}";
    let arguments = system.ok(arguments).await;
    assert!(!arguments.contains("insecure"), "{arguments}");
}

/// The columns of a line of `kubectl top`: a name, milli-processors, and bytes in Mi.
fn usage(line: &str) -> Option<(String, u64, u64)> {
    let mut words = line.split_whitespace();
    let (name, cpu) = (words.next()?, words.next()?.strip_suffix('m')?.parse().ok()?);
    let memory = words.find_map(|word| word.strip_suffix("Mi"))?.parse().ok()?;
    Some((name.to_owned(), cpu, memory))
}

fn usages(text: &str) -> Vec<(String, u64, u64)> {
    text.lines().filter_map(usage).collect()
}

async fn nodes_and_pods(kubectl: &Kubectl) {
    let told = kubectl.until_within(FOLLOWING, "top nodes --no-headers", |text| usages(text).len() == 2).await;
    let nodes = usages(&told);
    assert_eq!(nodes.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["node-1", "node-2"], "{told}");
    assert!(nodes.iter().all(|(_, cpu, memory)| *cpu > 0 && *memory > 0), "{told}");
    let told = kubectl.until_within(FOLLOWING, "top pods --no-headers", |text| usages(text).len() == 1).await;
    assert!(told.starts_with("busy-") && usages(&told)[0].2 < 100, "{told}");
    let told = kubectl.ok("top pods --containers --no-headers -l app=busy").await;
    assert!(told.split_whitespace().nth(1) == Some("main"), "{told}");
}

async fn load_and_back(kubectl: &Kubectl) {
    let target = "get hpa busy -o jsonpath={.status.currentMetrics[0].resource.current.averageUtilization}";
    let below = |text: &str| text.parse::<u32>().is_ok_and(|percent| percent < 50);
    kubectl.until_within(FOLLOWING, target, below).await;
    assert_eq!(kubectl.ok(REPLICAS).await, "1", "nothing is to do yet");

    let pod = kubectl.ok("get pods -l app=busy -o jsonpath={.items[0].metadata.name}").await;
    kubectl.ok(&format!("exec {pod} -- touch /tmp/load")).await;
    kubectl.until_within(FOLLOWING, REPLICAS, |text| text == "3").await;
    kubectl.ok("rollout status deployment/busy --timeout=90s").await;
    let told = kubectl.ok("top pods --no-headers").await;
    let loaded = usages(&told).into_iter().find(|(name, ..)| *name == pod);
    assert!(loaded.is_some_and(|(_, cpu, _)| cpu > 50), "{told}");
    let limited = "get hpa busy -o jsonpath={.status.conditions[?(@.type==\"ScalingLimited\")].reason}";
    kubectl.until_within(FOLLOWING, limited, |text| text == "TooManyReplicas").await;
    let events = kubectl.ok("events --for=hpa/busy").await;
    assert!(events.contains("SuccessfulRescale") && events.contains("New size: 3"), "{events}");

    kubectl.ok(&format!("exec {pod} -- rm /tmp/load")).await;
    kubectl.until_within(FOLLOWING, REPLICAS, |text| text == "1").await;
}

/// Each of two servers has everything, and either may go.
async fn several_servers(system: &Kubectl, kubectl: &Kubectl) {
    system.ok("scale deployment/metrics-server --replicas=2").await;
    system.ok("rollout status deployment/metrics-server --timeout=150s").await;
    let oldest = "get pods -l k8s-app=metrics-server --sort-by=.metadata.creationTimestamp -o jsonpath={.items[0].metadata.name}";
    let oldest = system.ok(oldest).await;
    system.ok(&format!("delete pod {oldest} --wait=false")).await;
    kubectl.until("top pods --no-headers", |text| !usages(text).is_empty()).await;
    system.ok("scale deployment/metrics-server --replicas=1").await;
    system.ok("rollout status deployment/metrics-server --timeout=150s").await;
}
