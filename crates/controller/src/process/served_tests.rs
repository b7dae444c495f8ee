//! A manager as a process, from its flags to its port: it believes the certificates that the API server says it should.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use base::{Rng, SystemClock, TaskGroup};
use client::fake::FakeServer;
use client::{ApiHandler as _, CertSource, Peer, Request, Trust};
use component_base::Gates;
use component_base::flags::{Flag, FlagSet, METRICS, parse};
use component_base::serving::{handler_fn, secure_serving_flags, text};
use component_base::shared_gates::RELEASE_LEASE_ON_EXIT;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::json;

use super::access::MASTERS;
use super::testing::{Authority, publish};
use super::*;

const SERVING: [Flag; 13] = secure_serving_flags("10257", "");
const ELECTION: [Flag; 7] = leader_election_flags("test");
const FLAGS: &[FlagSet] = &[
    CLIENT,
    DELEGATION,
    GENERIC,
    METRICS,
    FlagSet { title: "secure serving", flags: &SERVING },
    FlagSet { title: "leader election", flags: &ELECTION },
];

/// Serves an API over HTTPS; gives the path of a kubeconfig for it.
fn serve_api(api: &FakeServer, tasks: &TaskGroup, directory: &Path) -> String {
    let api = api.clone();
    let handler = handler_fn(move |request: component_base::serving::Request| {
        let api = api.clone();
        async move {
            if request.uri().path() == "/healthz" {
                return text(StatusCode::OK, "ok");
            }
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            api.call(http::Request::from_parts(parts, body), &Peer::default()).await
        }
    });
    let options = parse(FLAGS, std::iter::empty()).expect("flags");
    let mut serving = SecureServing::from_options(&options, "api", &mut Errors::new());
    serving.address = (Ipv4Addr::LOCALHOST, 0).into();
    let generate = |names: &[String]| self_signed(names, &SystemClock::shared(), &Rng::seeded(4));
    let certificates = serving.certificates(&["127.0.0.1".to_owned()], &generate).expect("certificates");
    let handle = serving.serve(tasks, certificates, &[], Arc::new(handler)).expect("a server");
    let cluster = json!({"server": format!("https://{}", handle.address()), "insecure-skip-tls-verify": true});
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    let path = directory.join("kubeconfig");
    std::fs::write(&path, config.to_string()).expect("a file");
    path.display().to_string()
}

/// What somebody is answered who asks a manager for its metrics: nothing as long as nobody listens.
async fn answered(port: u16, authority: &Authority, tasks: &TaskGroup) -> String {
    let (leaf, key) = authority.issue("root", MASTERS);
    let identity = CertSource::Pem { cert: leaf.to_pem().into(), key: key.to_pem().expect("a key").into() };
    let mut config = ClientConfig::for_server(format!("https://127.0.0.1:{port}")).with_rate(-1.0, 0);
    (config.trust, config.identity) = (Trust::Insecure, identity);
    let client = Client::new(config, ClientCx::new(SystemClock::shared(), Rng::seeded(5), tasks.clone()));
    match client.expect("a client").send(Request::get("/metrics").timeout(Duration::from_secs(10))).await {
        Ok(answer) => answer.status.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn administrators_of_the_cluster_may_read_its_metrics() {
    component_base::tls::install_default();
    let (tasks, directory) = (TaskGroup::new("test"), tempfile::tempdir().expect("a directory"));
    let (api, [ours, others]) =
        (FakeServer::new(), ["ours", "others"].map(|name| Authority::new(name, &SystemClock::shared())));
    publish(&api, &[("client-ca-file", &ours.pem())]);
    let kubeconfig = serve_api(&api, &tasks, directory.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let mut arguments: Vec<String> = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={kubeconfig}"))
        .into();
    arguments.extend([
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
    ]);
    let (options, rng, mut errors) = (parse(FLAGS, arguments).expect("flags"), Rng::seeded(6), Errors::new());
    let process =
        ProcessOptions::from_options("test", &options, &rng, &Gates::default(), &mut errors).expect("options");
    errors.into_result().expect("good flags");
    let lifecycle = Lifecycle::new("test", SystemClock::shared(), rng);
    let lead = |_: Leading| std::future::pending();
    let runs = run_process(process, &lifecycle, Vec::new(), Value::Null, lead);
    let asks = async {
        let mut answer = answered(port, &ours, &tasks).await;
        while answer.contains("onnect") {
            tokio::time::sleep(Duration::from_millis(20)).await;
            answer = answered(port, &ours, &tasks).await;
        }
        (answer, answered(port, &others, &tasks).await)
    };
    let (own, other) = tokio::select! {
        ended = runs => panic!("it does not run: {ended:?}"),
        answers = asks => answers,
    };
    assert_eq!(own, "200 OK");
    assert!(other.contains("forbidden: User \"system:anonymous\""), "{other}");
    lifecycle.tasks().cancel();
    tasks.cancel();
}

#[test]
fn the_lease_is_given_back_where_the_gate_says_so() {
    let arguments = ["--master=https://server:6443".to_owned(), "--leader-elect".to_owned()];
    let (options, mut errors) = (parse(FLAGS, arguments).expect("flags"), Errors::new());
    for on in [false, true] {
        let gates = Gates::default().with(RELEASE_LEASE_ON_EXIT, on);
        let process = ProcessOptions::from_options("test", &options, &Rng::seeded(1), &gates, &mut errors);
        let leader = process.expect("options").releasing_where_told(&gates).leader.expect("an election");
        assert_eq!(leader.release_on_stop, on);
    }
}
