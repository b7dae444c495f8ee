//! Other servers of the cluster: what only they serve is passed on to them, whatever they do with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, SystemClock, TaskGroup, TokioClock};
use component_base::lifecycle::Lifecycle;
use component_base::serving::{SecureServing, ServerHandle, handler_fn, text};
use http::StatusCode;
use serde_json::{Value, json};
use storage::{Backend, Memory, MemoryOptions};

use super::front::Trust;
use super::harness::Api;
use crate::config::{BuiltInResource, FrontProxyConfig};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const AGGREGATED: (&str, &str) = ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

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
async fn until(api: &Api, path: &str, fits: impl Fn(u16) -> bool) -> Value {
    for _ in 0..300 {
        let answer = api.get(path).await;
        if fits(answer.code) {
            return answer.json();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{}", api.get(path).await.text)
}

#[tokio::test]
async fn what_only_another_server_serves_is_passed_on_to_it() {
    let cluster = Cluster::new();
    let (whole, _whole) = cluster.server("one", &[]).await;
    let (lacking, _lacking) = cluster.server("two", &[("batch", "v1", "jobs")]).await;
    whole.wait_until_ready().await;
    until(&lacking, JOBS, |code| code == 200).await;
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

    let shown = |answer: &Value| answer.to_string().contains("\"resource\":\"jobs\"");
    let all = lacking.send("GET /apis", &[AGGREGATED], "").await.json();
    assert!(shown(&all), "discovery is that of all servers");
    let own = format!("{};profile=nopeer", AGGREGATED.1);
    let own = lacking.send("GET /apis", &[("accept", &own)], "").await.json();
    assert!(!shown(&own), "unless only its own is asked for");
    let metrics = lacking.get("/metrics").await.text;
    let line = r#"apiserver_rerouted_request_total{code="201",group="batch",resource="jobs",version="v1"} 1"#;
    assert!(metrics.contains(line), "{line}");
    assert!(metrics.contains("aggregator_discovery_nopeer_requests_total 1"));

    crate::server::shut_down(whole.server.cx(), None).await;
    until(&lacking, JOBS, |code| code == 404).await;
}

#[tokio::test]
async fn a_peer_that_is_dead_or_leads_elsewhere_is_an_error() {
    let cluster = Cluster::new();
    let (whole, handle) = cluster.server("one", &[]).await;
    let (lacking, _lacking) = cluster.server("two", &[("batch", "v1", "jobs")]).await;
    whole.wait_until_ready().await;
    until(&lacking, JOBS, |code| code == 200).await;
    let address: SocketAddr = handle.address();
    handle.shutdown(Duration::from_millis(100)).await;
    let dead = until(&lacking, JOBS, |code| code == 503).await;
    assert_eq!((dead["kind"].as_str(), dead["reason"].as_str()), (Some("Status"), Some("ServiceUnavailable")));
    let metrics = lacking.get("/metrics").await.text;
    assert!(
        metrics.contains(r#"apiserver_peer_proxy_errors_total{group="batch",resource="jobs",type="proxy_transport""#)
    );

    // Somebody else has the port and the certificate now, and sends clients away.
    let elsewhere = handler_fn(|_| async {
        let mut response = text(StatusCode::FOUND, "");
        response.headers_mut().insert("location", http::HeaderValue::from_static("https://evil.example/"));
        response
    });
    let serving = SecureServing { address, ..cluster.trust.serving_as("peer") };
    let certificates = serving.certificates(&[], &|_| Err("there are files".into())).unwrap();
    serving.serve(&cluster.tasks, certificates, &[], Arc::new(elsewhere)).unwrap();
    until(&lacking, JOBS, |code| code == 502).await;
    cluster.tasks.cancel();
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
