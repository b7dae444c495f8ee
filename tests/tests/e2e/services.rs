//! Services: cluster addresses and node ports from the machine and from pods of both nodes, names, session affinity,
//! and what happens where there are no endpoints.

use std::collections::BTreeSet;

use tests::kubectl::{Kubectl, PATIENCE};

use crate::cluster::{Cluster, manifest};

const NAMESPACE: &str = "services";
/// Enough tries that a server of three is missed less than once in a million runs.
const TRIES: usize = 40;
const CLIENTS: [&str; 2] = ["client-1", "client-2"];

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.story_namespace(NAMESPACE).await;
    kubectl.ok(&format!("apply -f {}", manifest("services.yaml"))).await;
    kubectl.ok("rollout status deployment/echo --timeout=120s").await;
    kubectl.ok("wait --for=condition=Ready pod/client-1 pod/client-2 --timeout=90s").await;
    let pods = kubectl.ok("get pods -l app=echo -o jsonpath={.items[*].metadata.name}").await;
    let pods: BTreeSet<String> = pods.split(' ').map(str::to_owned).collect();
    let address = |service: &str| format!("get service {service} -o jsonpath={{.spec.clusterIP}}");
    let echo = kubectl.ok(&address("echo")).await;

    everyone_answers(&cluster, &kubectl, &pods, &echo).await;
    node_ports(&cluster, &kubectl, &pods).await;
    names(&kubectl, &echo).await;
    stickiness(&kubectl, &kubectl.ok(&address("sticky")).await).await;
    refusal(&cluster, &kubectl, &kubectl.ok(&address("empty")).await).await;
    kubectl.ok("delete namespace services --timeout=120s").await;
}

/// A shell loop that asks a URL a number of times.
fn loop_of(url: &str, times: usize) -> String {
    format!("sh -c 'i=0; while [ $i -lt {times} ]; do timeout 10 wget -qO- {url} || exit 1; echo; i=$((i+1)); done'")
}

async fn answers(kubectl: &Kubectl, client: &str, url: &str, times: usize) -> BTreeSet<String> {
    lines(&kubectl.until(&format!("exec {client} -- {}", loop_of(url, times)), |_| true).await)
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

async fn everyone_answers(cluster: &Cluster, kubectl: &Kubectl, pods: &BTreeSet<String>, echo: &str) {
    let url = format!("http://{echo}/hostname");
    for client in CLIENTS {
        // A node may learn of the last ready pod a moment after the rollout is over.
        kubectl.until(&format!("exec {client} -- {}", loop_of(&url, TRIES)), |text| &lines(text) == pods).await;
    }
    let mut seen = BTreeSet::new();
    for _ in 0..TRIES {
        seen.insert(cluster.fetch(&url, PATIENCE).await);
    }
    assert_eq!(&seen, pods, "from the machine");
    // Pods see each other's own addresses, also across nodes.
    let client = kubectl.ok("get pod client-2 -o jsonpath={.status.podIP}").await;
    let seen = answers(kubectl, "client-2", &format!("http://{echo}/clientip"), 1).await;
    assert!(seen.iter().all(|text| text.starts_with(&format!("{client}:"))), "{seen:?} instead of {client}");
}

async fn node_ports(cluster: &Cluster, kubectl: &Kubectl, pods: &BTreeSet<String>) {
    let port = kubectl.ok("get service echo -o jsonpath={.spec.ports[0].nodePort}").await;
    let nodes = "get nodes -o jsonpath={.items[*].status.addresses[?(@.type==\"InternalIP\")].address}";
    let nodes = kubectl.ok(nodes).await;
    assert_eq!(nodes.split(' ').count(), 2, "{nodes}");
    for node in nodes.split(' ') {
        let url = format!("http://{node}:{port}/hostname");
        assert!(pods.contains(&cluster.fetch(&url, PATIENCE).await), "{url}");
        for client in CLIENTS {
            let seen = answers(kubectl, client, &url, 3).await;
            assert!(!seen.is_empty() && seen.is_subset(pods), "{url} from {client}: {seen:?}");
        }
    }
}

async fn names(kubectl: &Kubectl, echo: &str) {
    let addresses = kubectl.ok("get pods -l app=echo -o jsonpath={.items[*].status.podIP}").await;
    for name in ["echo", "echo.services", "echo.services.svc.cluster.local"] {
        let seen = answers(kubectl, "client-1", &format!("http://{name}/hostname"), 1).await;
        assert_eq!(seen.len(), 1, "{name}");
    }
    let lookup =
        |kind: &str, name: &str| format!("exec client-2 -- nslookup -type={kind} {name}.services.svc.cluster.local");
    kubectl.until(&lookup("a", "echo"), |text| text.contains(echo)).await;
    kubectl.until(&lookup("a", "headless"), |text| addresses.split(' ').all(|each| text.contains(each))).await;
    let service = kubectl.until(&lookup("srv", "_http._tcp.echo"), |text| text.contains("80 echo.services")).await;
    assert!(service.contains("echo.services.svc.cluster.local"), "{service}");
    kubectl.until(&lookup("srv", "_http._tcp.headless"), |text| text.matches("8080").count() == 3).await;
    let absent = kubectl.run(&lookup("a", "nobody")).await;
    assert!(!absent.success() && absent.text().contains("NXDOMAIN"), "{}", absent.text());
    let reverse = format!("exec client-1 -- nslookup {echo}");
    kubectl.until(&reverse, |text| text.contains("echo.services.svc.cluster.local")).await;
}

async fn stickiness(kubectl: &Kubectl, sticky: &str) {
    for client in CLIENTS {
        let seen = answers(kubectl, client, &format!("http://{sticky}/hostname"), TRIES / 2).await;
        assert_eq!(seen.len(), 1, "{client} was led to {seen:?}");
    }
}

async fn refusal(cluster: &Cluster, kubectl: &Kubectl, empty: &str) {
    const COULD_NOT_CONNECT: sys::exec::Exit = sys::exec::Exit::Code(7);
    assert_eq!(cluster.try_fetch(&format!("http://{empty}/")).await.exit, COULD_NOT_CONNECT);
    for client in CLIENTS {
        let refused = kubectl.run(&format!("exec {client} -- timeout 10 wget -qO- http://{empty}/")).await;
        assert!(refused.error_text().contains("Connection refused"), "{client}: {}", refused.error_text());
    }
}
