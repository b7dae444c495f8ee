//! Other servers of the cluster: what only they serve is passed on to them, whatever they do with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, SystemClock, TaskGroup, TokioClock};
use component_base::lifecycle::Lifecycle;
use component_base::serving::{SecureServing, ServerHandle, handler_fn, text};
use http::StatusCode;
use serde_json::json;
use storage::{Backend, Expect, Key, Memory, MemoryOptions, Write};

use super::front::Trust;
use super::harness::{Answer, Api};
use crate::config::{BuiltInResource, FrontProxyConfig};
use crate::server_id::server_id;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What the servers of a cluster have in common: the store, and who vouches for them.
struct Cluster {
    trust: Trust,
    backend: Arc<dyn Backend>,
    tasks: TaskGroup,
}

impl Cluster {
    fn new() -> Self {
        component_base::tls::install_default();
        let tasks = TaskGroup::new("cluster");
        let backend = Memory::new(MemoryOptions::default(), TokioClock::shared(), &tasks);
        Self { trust: Trust::new(), backend, tasks }
    }

    /// A server that does not serve some resources, and listens.
    async fn server(&self, host: &str, without: &[BuiltInResource]) -> (Api, ServerHandle) {
        let mut serving = self.trust.serving_as("peer");
        serving.address.set_port(free_port());
        let address = serving.address;
        let [ca, cert, key] = ["ca.crt", "client.crt", "client.key"].map(|name| self.trust.file(name));
        let api = Api::over(&self.backend, u64::from(address.port()), |config| {
            config.disabled.extend(without.iter().copied());
            config.host = Some(host.to_owned());
            config.peers.advertise_ip = address.ip().to_string();
            config.peers.advertise_port = address.port().to_string();
            config.peers.ca_file = Some(ca.clone());
            config.aggregation.client_pair = Some((cert, key));
            config.authentication.front_proxy = Some(FrontProxyConfig {
                client_ca_file: ca,
                allowed_names: vec!["front-proxy-client".to_owned()],
                headers: authn::ProxyHeaders::default(),
            });
            config.serving = Some(serving);
        })
        .await;
        let handle = api.server.listen().unwrap().expect("it listens");
        (api, handle)
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until a request is answered in some way.
async fn until(api: &Api, path: &str, fits: impl Fn(&Answer) -> bool) -> Answer {
    for _ in 0..300 {
        let answer = api.get(path).await;
        if fits(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{}", api.get(path).await.text)
}

/// A cluster of a server that has everything, and one without jobs, which knows the other.
async fn two() -> (Cluster, (Api, ServerHandle), (Api, ServerHandle)) {
    let cluster = Cluster::new();
    let whole = cluster.server("one", &[]).await;
    whole.0.wait_until_ready().await;
    let lacking = cluster.server("two", &[("batch", "v1", "jobs")]).await;
    until(&lacking.0, JOBS, |answer| answer.code == 200).await;
    (cluster, whole, lacking)
}

/// The groups that a server tells of: its own, or those of all.
async fn groups(api: &Api, whose: &str) -> String {
    let accept = format!("{AGGREGATED}{whose}");
    api.send("GET /apis", &[("accept", &accept)], "").await.text
}

/// The value of a series without labels.
fn counted(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

#[tokio::test]
async fn what_only_another_server_serves_is_passed_on_to_it() {
    let (_cluster, (whole, _whole), (lacking, _lacking)) = two().await;
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}}}});
    let created = lacking.post(JOBS, &job.to_string()).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(whole.get(&format!("{JOBS}/j")).await.code, 200);
    let alice = lacking.send(&format!("GET {JOBS}"), &[("authorization", "Bearer alice")], "").await;
    assert_eq!(alice.code, 403, "who may not here is not passed on");
    let marked = lacking.send(&format!("GET {JOBS}"), &[("x-kubernetes-peer-proxied", "true")], "").await;
    assert_eq!(marked.code, 404, "it goes no further than one server");
    assert_eq!(lacking.get("/apis/batch/v1/namespaces/default/nothing").await.code, 404);
    let lease = until(&lacking, LEASES, |answer| answer.text.contains("peer-advertise-address")).await.text;
    assert!(lease.contains("127.0.0.1:"), "{lease}");

    let jobs = r#""resource":"jobs""#;
    assert!(groups(&lacking, "").await.contains(jobs), "discovery is that of all servers");
    let before = counted(&lacking.get("/metrics").await.text, "aggregator_discovery_nopeer_requests_total");
    assert!(!groups(&lacking, ";profile=nopeer").await.contains(jobs), "unless only its own is asked for");
    let metrics = lacking.get("/metrics").await.text;
    assert!(counted(&metrics, "aggregator_discovery_nopeer_requests_total") > before);
    for line in [
        r#"apiserver_rerouted_request_total{code="201",group="batch",resource="jobs",version="v1"} 1"#,
        r#"apiserver_rerouted_request_total{code="200",group="",resource="",version=""} "#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }

    crate::server::shut_down(whole.server.cx(), None).await;
    until(&lacking, JOBS, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn a_peer_that_is_dead_or_leads_elsewhere_is_an_error() {
    let (cluster, (_whole, handle), (lacking, _lacking)) = two().await;
    let address: SocketAddr = handle.address();
    handle.shutdown(Duration::from_millis(100)).await;
    let dead = until(&lacking, JOBS, |answer| answer.code == 503).await;
    assert_eq!(dead.headers["content-type"], "text/plain; charset=utf-8", "{}", dead.text);
    let metrics = lacking.get("/metrics").await.text;
    for line in [
        r#"apiserver_peer_proxy_errors_total{group="batch",resource="jobs",type="proxy_transport",version="v1"} "#,
        r#"apiserver_rerouted_request_total{code="503",group="batch",resource="jobs",version="v1"} "#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }

    // Somebody else has the port and the certificate now, and sends clients away.
    let elsewhere = handler_fn(|_| async {
        let mut response = text(StatusCode::FOUND, "");
        response.headers_mut().insert("location", http::HeaderValue::from_static("https://evil.example/"));
        response
    });
    let serving = SecureServing { address, ..cluster.trust.serving_as("peer") };
    let certificates = serving.certificates(&[], &|_| Err("there are files".into())).unwrap();
    serving.serve(&cluster.tasks, certificates, &[], Arc::new(elsewhere)).unwrap();
    until(&lacking, JOBS, |answer| answer.code == 502).await;
    cluster.tasks.cancel();
}

#[tokio::test]
async fn a_peer_that_does_not_say_where_it_is_cannot_be_asked() {
    let (cluster, _whole, (lacking, _lacking)) = two().await;
    let key = Key::from(format!("/registry/peerserverleases/{}", server_id("one")));
    // It says so again every ten seconds.
    for _ in 0..3 {
        cluster.backend.txn(&key, Expect::Any, Write::Delete).await.unwrap();
        let answer = lacking.get(JOBS).await;
        if answer.code == 200 {
            continue;
        }
        let status = answer.json();
        assert_eq!((answer.code, status["reason"].as_str()), (503, Some("ServiceUnavailable")));
        assert_eq!(status["message"], "Error getting ip and port info of the remote server while proxying");
        assert!(lacking.get("/metrics").await.text.contains(r#"type="endpoint_resolution",version="v1"} 1"#));
        return;
    }
    panic!("it is found all the same");
}

#[tokio::test]
async fn versions_of_definitions_are_nobodys_own() {
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let cluster = Cluster::new();
    let (whole, _whole) = cluster.server("one", &[]).await;
    assert_eq!(whole.post(DEFINITIONS, &definition.to_string()).await.code, 201);
    until(&whole, "/apis/example.com/v1/things", |answer| answer.code == 200).await;
    whole.wait_until_ready().await;
    let (lacking, _lacking) = cluster.server("two", &[("batch", "v1", "jobs")]).await;
    until(&lacking, JOBS, |answer| answer.code == 200).await;
    assert!(groups(&lacking, "").await.contains("example.com"));
    assert_eq!(lacking.delete(&format!("{DEFINITIONS}/things.example.com")).await.code, 200);
    until(&lacking, "/apis/example.com/v1/things", |answer| answer.code == 404).await;
    assert!(!groups(&lacking, "").await.contains("example.com"), "what the other said of it does not outlive it");
    let metrics = lacking.get("/metrics").await.text;
    assert!(!metrics.contains(r#"group="example.com",resource="things",version="v1"} 1"#), "nobody was asked for it");
}

#[test]
fn flags_of_a_feature_that_is_off_are_refused() {
    use component_base::Gates;
    use component_base::metrics::{Metrics, MetricsOptions};

    use crate::config::{AggregationConfig, PeerConfig};
    use crate::peers::Peers;

    let refused = |on: bool, config: &PeerConfig| {
        let gates = Gates::default().with(crate::gates::PEERS, on);
        let lifecycle = Lifecycle::new("test", SystemClock::shared(), Rng::seeded(1)).with_gates(gates);
        let metrics = Metrics::new(MetricsOptions::default());
        Peers::new(config, &AggregationConfig::default(), &lifecycle, &metrics).map(|own| own.is_some())
    };
    let with_ca = PeerConfig { ca_file: Some("/ca".into()), ..PeerConfig::default() };
    let with_port = PeerConfig { advertise_port: "1".to_owned(), ..PeerConfig::default() };
    for (on, config, expected) in [
        (false, &with_ca, "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on"),
        (
            false,
            &with_port,
            "--peer-advertise-port requires UnknownVersionInteroperabilityProxy feature to be turned on",
        ),
        (true, &with_ca, "error building peer proxy handler, proxy-cert-file not specified"),
    ] {
        assert_eq!(refused(on, config).unwrap_err().to_string(), expected);
    }
    assert!(matches!(refused(true, &with_port), Ok(false)));
    assert!(matches!(refused(false, &PeerConfig::default()), Ok(false)));
}
