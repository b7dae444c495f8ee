//! The whole scheduler against an API server in memory, and its flags against the published ones.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Object;
use client::fake::FakeServer;
use component_base::flags::{Flag, check_table, parse};

use super::*;
use crate::test_objects::{node, pod};

pub(super) const PODS: &str = "v1/pods";
pub(super) const NODES: &str = "v1/nodes";

/// A scheduler that runs against a server; its tasks end with the returned client's group.
async fn start(server: &FakeServer) -> client::Client {
    start_with(server, plugins::ALL, &config::default_configuration()).await
}

/// The same with other plugins and another configuration.
pub(super) async fn start_with(
    server: &FakeServer,
    plugins: &[Descriptor],
    configuration: &KubeSchedulerConfiguration,
) -> client::Client {
    let shown = Metrics::new(MetricsOptions::default());
    start_gated(server, plugins, configuration, &Gates::default(), &shown).await
}

/// The same with other gates, and metrics to look at.
pub(super) async fn start_gated(
    server: &FakeServer,
    plugins: &[Descriptor],
    configuration: &KubeSchedulerConfiguration,
    gates: &Gates,
    shown: &Metrics,
) -> client::Client {
    let client = server.client();
    let watches = Arc::new(Watches::new(&client));
    let metrics = Arc::new(SchedulerMetrics::new(shown));
    let limit = Duration::from_secs(300);
    let place = Place { gates, client: &client, watches: &watches, metrics, tasks: client.tasks().clone() };
    let scheduler = assemble_in(place, plugins, configuration, limit).unwrap();
    watches.feed(&scheduler);
    watches.start();
    watches.wait_synced().await;
    let tasks = client.tasks().clone();
    client.tasks().spawn("scheduler", scheduler.run(tasks.clone(), tasks.token()));
    client
}

pub(super) fn put(server: &FakeServer, resource: &str, object: &dyn Object) {
    server.put(resource, object.to_value());
}

pub(super) fn pod_in(server: &FakeServer, name: &str) -> Value {
    let pods = server.objects(PODS);
    pods.into_iter().find(|pod| pod["metadata"]["name"] == name).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn pods_get_nodes_and_reasons_over_the_api() {
    let server = FakeServer::new();
    put(&server, NODES, &*node("a").build());
    let client = start(&server).await;
    put(&server, PODS, &*pod("p").request("cpu", "3").build());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
    put(&server, PODS, &*pod("q").request("cpu", "3").build());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = pod_in(&server, "q")["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "Unschedulable", "{status}");
    let reasons: Vec<Value> =
        server.objects("events.k8s.io/v1/events").iter().map(|event| event["reason"].clone()).collect();
    assert!(reasons.contains(&"Scheduled".into()) && reasons.contains(&"FailedScheduling".into()), "{reasons:?}");
    // Room comes back: the pod that waits is bound.
    server.remove(PODS, "default", "p");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(pod_in(&server, "q")["spec"]["nodeName"], "a");
    assert_eq!(client.tasks().shutdown(Duration::from_secs(5)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn an_important_pod_takes_the_place_of_another() {
    let server = FakeServer::new();
    put(&server, NODES, &*node("a").build());
    put(&server, PODS, &*pod("low").request("cpu", "4").on("a").build());
    let client = start(&server).await;
    put(&server, PODS, &*pod("high").request("cpu", "4").priority(10).build());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pod_in(&server, "low"), Value::Null);
    assert_eq!(pod_in(&server, "high")["spec"]["nodeName"], "a");
    client.tasks().shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn calls_go_through_one_place_where_that_is_on() {
    for on in [true, false] {
        let (server, shown) = (FakeServer::new(), Metrics::new(MetricsOptions::default()));
        put(&server, NODES, &*node("a").build());
        let gates = Gates::default().with(ASYNC_CALLS, on);
        let client = start_gated(&server, plugins::ALL, &config::default_configuration(), &gates, &shown).await;
        put(&server, PODS, &*pod("p").request("cpu", "3").build());
        put(&server, PODS, &*pod("q").request("cpu", "3").build());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
        assert_eq!(pod_in(&server, "q")["status"]["conditions"][0]["reason"], "Unschedulable");
        for kind in ["pod_binding", "pod_status_patch"] {
            let call = format!("scheduler_async_api_call_execution_total{{call_type={kind:?},result=\"success\"}} 1");
            assert_eq!(shown.text().contains(&call), on, "{kind}");
        }
        client.tasks().shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_fails_is_tried_again() {
    let server = FakeServer::new();
    put(&server, NODES, &*node("a").build());
    let client = start(&server).await;
    server.fail_next("POST", &[500]);
    put(&server, PODS, &*pod("p").build());
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(pod_in(&server, "p")["spec"]["nodeName"], "a");
    client.tasks().shutdown(Duration::from_secs(5)).await;
}

#[test]
fn flags_are_upstreams() {
    assert_eq!(check_table(flags::FLAGS), Vec::<String>::new());
    let document = test_facts::facts("flags/kube-scheduler.json");
    let own: Vec<Flag> = flags::FLAGS.iter().flat_map(|set| set.flags.iter().cloned()).collect();
    for facts in document["flags"].as_array().unwrap() {
        let name = facts["flag"].as_str().unwrap();
        let flag = own.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("--{name} is missing"));
        let expected = match &facts["default"] {
            Value::String(text) if text == "[]" => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
            other => other.to_string(),
        };
        assert_eq!(flag.default, expected, "--{name} default");
    }
}

#[test]
fn the_file_speaks_where_flags_are_silent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    std::fs::write(
        &path,
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection:\n  \
         leaderElect: false\n  retryPeriod: 3s\nclientConnection:\n  qps: 7\n",
    )
    .unwrap();
    let arguments = [format!("--config={}", path.display()), "--leader-elect-retry-period=4s".to_owned()];
    let mut options = parse(flags::FLAGS, arguments).unwrap();
    settings::prepare(&mut options).unwrap();
    assert!(!options.bool("leader-elect"));
    assert_eq!(options.duration("leader-elect-retry-period"), Duration::from_secs(4));
    assert_eq!(options.float("kube-api-qps"), 7.0);
    std::fs::write(&path, "apiVersion: v1\nkind: Pod\n").unwrap();
    assert!(settings::prepare(&mut options).is_err());
}

#[test]
fn each_gate_can_be_switched_on() {
    assert_eq!((COMPONENT.gates.out_of_reach(), COMPONENT.gates.untold()), (vec![], vec![]));
}

#[test]
fn no_gate_has_one_side_only() {
    assert_eq!(COMPONENT.gates.one_sided(), Vec::<&str>::new());
}
