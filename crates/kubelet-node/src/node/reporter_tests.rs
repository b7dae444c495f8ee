//! A node that registers with a server and reports to it.

use std::net::IpAddr;

use async_trait::async_trait;
use base::{Rng, TokioClock};
use client::fake::FakeServer;
use client::{InformerOptions, Informers, Scope};
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::StatusResponse;
use serde_json::{Value, json};
use sys::net::NetError;

use super::super::{DeclaredFeatures, RuntimeHealth};
use super::*;
use crate::events::RecordedEvents;

struct OneAddress;

#[async_trait]
impl AddressSource for OneAddress {
    async fn look_up(&self, _: &str) -> Vec<IpAddr> {
        vec!["10.0.0.5".parse().unwrap()]
    }

    async fn own(&self) -> Result<Vec<IpAddr>, NetError> {
        Ok(vec!["10.0.0.5".parse().unwrap()])
    }

    async fn of_default_route(&self, _: bool) -> Option<IpAddr> {
        None
    }
}

#[derive(Default)]
struct Errors(Mutex<Vec<String>>);

impl RuntimeHealth for Errors {
    fn ready_errors(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn runtime_status(&self) -> Option<StatusResponse> {
        Some(StatusResponse::default())
    }
}

struct Bench {
    server: Arc<FakeServer>,
    errors: Arc<Errors>,
    events: Arc<RecordedEvents>,
    runtime: FakeRuntime,
    state: Arc<NodeState>,
    _dir: tempfile::TempDir,
}

fn start(server: Arc<FakeServer>) -> Bench {
    start_with(server, false)
}

fn start_with(server: Arc<FakeServer>, gives_up_where_forbidden: bool) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let client = server.client();
    let informers = Informers::new(&client, InformerOptions::default());
    let informer = informers.scoped::<Node>(&Scope::fields("metadata.name=n1"));
    informers.start();
    let state = NodeState::new("n1", Some(client.clone()), Some(informer));
    let (errors, events) = (Arc::new(Errors::default()), Arc::new(RecordedEvents::default()));
    errors.0.lock().push("container runtime is down".into());
    state.set_health(errors.clone());
    let runtime = FakeRuntime::new(TokioClock::shared(), client.tasks());
    let settings = NodeSettings {
        name: "n1".into(),
        hostname: "n1".into(),
        register: true,
        max_pods: 110,
        max_images: 50,
        declared_features: DeclaredFeatures { own: vec!["A".into(), "B".into()], host_network_users: true },
        gives_up_where_forbidden,
        update_frequency: Duration::from_secs(10),
        report_frequency: Duration::from_secs(300),
        root_dir: dir.path().into(),
        ..NodeSettings::default()
    };
    let reporter = Arc::new(Reporter {
        settings,
        state: state.clone(),
        facts: Facts::system(),
        addresses: Arc::new(OneAddress),
        runtime: Arc::new(runtime.clone()),
        images: Arc::new(runtime.clone()),
        events: events.clone(),
        clock: TokioClock::shared(),
        rng: Rng::seeded(3),
        client: Some(client.clone()),
        memory: Memory::default(),
        devices: None,
        start: None,
    });
    client.tasks().spawn_cancellable("reporter", reporter.run());
    Bench { server, errors, events, runtime, state, _dir: dir }
}

fn node(server: &FakeServer) -> Value {
    server.objects("v1/nodes").into_iter().next().unwrap_or_default()
}

fn ready(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").cloned().unwrap_or_default();
    format!("{}: {}", ready["status"].as_str().unwrap_or_default(), ready["message"].as_str().unwrap_or_default())
}

fn patches(server: &FakeServer) -> usize {
    server.requests().iter().filter(|request| request.starts_with("PATCH")).count()
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_and_becomes_ready() {
    let bench = start(Arc::new(FakeServer::new()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let made = node(&bench.server);
    assert_eq!(ready(&made), "False: container runtime is down");
    assert_eq!(made["status"]["addresses"][0], json!({"type": "InternalIP", "address": "10.0.0.5"}));
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/hostname"], "n1");
    assert_eq!(made["status"]["declaredFeatures"], json!(["A", "B"]));

    bench.errors.0.lock().clear();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ready(&node(&bench.server)), "True: kubelet is posting ready status", "told at once");
    let reasons: Vec<String> = bench.events.taken().into_iter().map(|event| event.reason).collect();
    assert!(reasons.contains(&"NodeReady".to_owned()), "{reasons:?}");
    assert_eq!(bench.state.host_ips(), ["10.0.0.5".parse::<IpAddr>().unwrap()]);

    let before = patches(&bench.server);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(patches(&bench.server) <= before + 1, "an unchanged status is not sent every ten seconds");
    bench.state.set_pressures(["MemoryPressure".to_owned()].into());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pressed = node(&bench.server)["status"]["conditions"].as_array().cloned().unwrap();
    assert!(pressed.iter().any(|one| one["type"] == "MemoryPressure" && one["status"] == "True"));
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert!(patches(&bench.server) > before + 1, "heartbeats are sent now and then");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_there_is_taken_over() {
    let server = Arc::new(FakeServer::new());
    server.put(
        "v1/nodes",
        json!({"apiVersion": "v1", "kind": "Node",
               "metadata": {"name": "n1", "uid": "u1", "labels": {"mine": "kept"}},
               "spec": {"unschedulable": true},
               "status": {"nodeInfo": {"bootID": "other"}}}),
    );
    let bench = start(server);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let node = node(&bench.server);
    assert_eq!((&node["metadata"]["labels"]["mine"], &node["spec"]["unschedulable"]), (&json!("kept"), &json!(true)));
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/os"], "linux");
    let events = bench.events.taken();
    assert_eq!(events.iter().filter(|event| event.reason == "Rebooted").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_not_be_made_is_looked_for_unless_a_gate_says_otherwise() {
    for (gives_up, attempts) in [(false, 1), (true, 2)] {
        let server = Arc::new(FakeServer::new());
        server.put("v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u1"}}));
        server.fail_next("POST", &[403]);
        let bench = start_with(server, gives_up);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let requests = bench.server.requests();
        let made = requests.iter().filter(|request| request.starts_with("POST") && request.contains("/nodes"));
        assert_eq!(made.count(), attempts, "{requests:?}");
        assert_eq!(node(&bench.server)["metadata"]["labels"]["kubernetes.io/os"], "linux");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_a_node_and_opening_it_is_told_of() {
    let server = Arc::new(FakeServer::new());
    let object = |closed: bool| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": closed}});
    server.put("v1/nodes", object(true));
    let bench = start(server);
    let told = |bench: &Bench| {
        let events = bench.events.taken().into_iter();
        events.map(|event| event.message).filter(|text| text.contains("chedulable")).collect::<Vec<_>>()
    };
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(told(&bench), ["Node n1 status is now: NodeNotSchedulable"]);
    bench.server.put("v1/nodes", object(false));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(told(&bench), ["Node n1 status is now: NodeSchedulable"]);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_hangs_holds_up_no_status() {
    let bench = start(Arc::new(FakeServer::new()));
    bench.errors.0.lock().clear();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(ready(&node(&bench.server)), "True: kubelet is posting ready status");
    bench.runtime.delay("list_images", Duration::from_secs(120));
    bench.errors.0.lock().push("container runtime is down".into());
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(ready(&node(&bench.server)), "False: container runtime is down");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_is_started_anew_looks_round_before_it_complains() {
    let server = Arc::new(FakeServer::new());
    server.put(
        "v1/nodes",
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
               "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}),
    );
    let bench = start(server);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    bench.errors.0.lock().clear();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(ready(&node(&bench.server)), "True: kubelet is posting ready status");
    let told: Vec<String> = bench.events.taken().into_iter().map(|event| event.reason).collect();
    assert!(!told.iter().any(|reason| reason.ends_with("Ready")), "{told:?}");
}
