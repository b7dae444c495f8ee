//! Exec, attach and port-forward through the server to a runtime that streams, over every protocol that clients speak.

use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::core_v1::Pod;
use authn::Anonymous;
use base::{Rng, TokioClock};
use component_base::Lifecycle;
use component_base::debugging::Contention;
use component_base::metrics::MetricsOptions;
use component_base::serving::{PortSharing, Security, Server, bind, empty, full, handler_fn};
use http::StatusCode;
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::{ImageSpec, Metric, MetricDescriptor, PodSandboxMetrics};
use node_api::cri::{Code, CriError, Images as _};
use streaming::{
    Carrier, ClientCommand, CommandStatus, DialError, PORT_FORWARD, PortForward, PortForwardClient, Protocol,
    RemoteCommand, SessionOptions, StatusForm, StreamSet, Subprotocol, UpgradedIo, WebSocketIo, accept_port_forward,
    accept_remote_command, dial_spdy, dial_websocket, spdy_request, websocket_request,
};
use sys::cgroups::FakeCgroups;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::access::{Access, Everyone};
use super::*;
use crate::engine::test_node::{TestNode, engine, settings};
use crate::eviction::{Gauge, Parts, PodUses, Snapshot};
use crate::resources::{CgroupNames, CgroupSettings, Driver, PodGroups};

const INPUT: &[u8] = b"hello";
const SET: StreamSet = StreamSet { stdin: true, stdout: true, stderr: false, tty: false };
const MANIFEST: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: \
                        'docker.io/library/app:1'}]}\n";

pub(super) struct Nothing;

#[async_trait]
impl Gauge for Nothing {
    async fn node(&self) -> Result<Snapshot, CriError> {
        Err(CriError::rpc("image_fs_info", Code::Unimplemented, "not measured here"))
    }

    async fn pods(&self, _pods: &[Arc<Pod>], _parts: Parts) -> Result<PodUses, CriError> {
        Err(CriError::rpc("list_container_stats", Code::Unimplemented, "not measured here"))
    }
}

/// A server for one running pod, and a runtime's streaming server.
pub(super) struct Node {
    pub(super) runtime: FakeRuntime,
    pub(super) tasks: TaskGroup,
    address: std::net::SocketAddr,
    pub(super) uid: String,
    _root: tempfile::TempDir,
}

impl Node {
    async fn start(translates: bool) -> Self {
        Self::start_with(translates, KubeletConfiguration::default()).await
    }

    async fn start_with(translates: bool, config: KubeletConfiguration) -> Self {
        Self::start_as(translates, |api| Api { config: Arc::new(config), ..api }).await
    }

    pub(super) async fn start_as(translates: bool, change: impl FnOnce(Api) -> Api) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("manifests")).unwrap();
        std::fs::write(root.path().join("manifests/web.yaml"), MANIFEST).unwrap();
        let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
        let runtime = FakeRuntime::new(clock.clone(), &TaskGroup::new("runtime"));
        let image = ImageSpec { image: "docker.io/library/app:1".into(), ..Default::default() };
        runtime.pull_image(image, None, None).await.unwrap();
        let shared = Arc::new(runtime.clone());
        let node = Arc::new(TestNode::default());
        let engine = engine(settings(root.path()), &node, shared.clone(), shared.clone(), clock.clone(), &tasks);
        let pod = running(&engine).await;
        // From here on there are real sockets, which a clock that jumps would not wait for.
        tokio::time::resume();
        let streaming = serve(&tasks, {
            let tasks = tasks.clone();
            Arc::new(handler_fn(move |request| {
                let tasks = tasks.clone();
                async move { stream(&tasks, request) }
            }))
        });
        runtime.set_streaming_base(&format!("http://{streaming}"));
        let access = Access {
            authentication: authn::Chain::new(Vec::new(), Some(Anonymous::default()), Vec::new()),
            authorizer: Arc::new(Everyone),
        };
        let api = Arc::new(change(api(engine, shared, clock, &tasks, translates)));
        let address = serve(&tasks, Arc::new(Secured { api, access }));
        Self { runtime, tasks, address, uid: pod.metadata.uid.clone(), _root: root }
    }

    /// The body of an answer.
    pub(super) async fn get(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: node1\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{head}");
        body.to_owned()
    }

    async fn websocket(&self, target: &str, protocols: &[&str]) -> Result<(UpgradedIo, String), DialError> {
        let request = websocket_request(target, "node1", protocols, &Rng::seeded(1)).unwrap();
        dial_websocket(TcpStream::connect(self.address).await.unwrap(), request).await
    }

    async fn spdy(&self, target: &str, protocols: &[&str]) -> Result<(UpgradedIo, String), DialError> {
        let request = spdy_request(target, "node1", protocols).unwrap();
        dial_spdy(TcpStream::connect(self.address).await.unwrap(), request).await
    }
}

/// The pod, once its container runs.
async fn running(engine: &PodEngine) -> Arc<Pod> {
    for _ in 0..600 {
        if let Some(pod) = engine.pod("default", "web-node1")
            && engine.container_id(&pod, "main").await.is_ok()
        {
            return pod;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the pod never runs");
}

fn serve(tasks: &TaskGroup, handler: Arc<dyn Handler>) -> std::net::SocketAddr {
    let listener = bind("127.0.0.1:0".parse().unwrap(), PortSharing::Exclusive).unwrap();
    Server::new(handler, Security::Plain).spawn(tasks, listener).unwrap().address()
}

pub(super) fn api(
    engine: PodEngine,
    runtime: Arc<FakeRuntime>,
    clock: SharedClock,
    tasks: &TaskGroup,
    translates: bool,
) -> Api {
    let (metrics, slis) = (Metrics::new(MetricsOptions::default()), Metrics::new(MetricsOptions::default()));
    let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
    let groups = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
    let groups = PodGroups::new(Arc::new(FakeCgroups::new()), groups);
    let boot = api_machinery::time::Time::default();
    let lifecycle = Lifecycle::new("kubelet", clock.clone(), base::Rng::seeded(1));
    Api {
        engine,
        config: Arc::new(KubeletConfiguration::default()),
        health: Health::new(&slis, Duration::ZERO),
        probes: metrics.clone(),
        own: KubeletMetrics::unseen(),
        claims: Box::new(|_| Box::pin(async { Vec::new() })),
        claims_shown: Default::default(),
        cert_dir: "/nonexistent".into(),
        stats: Stats::new("node1", std::path::Path::new("/"), groups, runtime.clone(), boot, 0, Arc::new(Nothing)),
        metrics,
        slis,
        runtime,
        clock,
        tasks: tasks.clone(),
        translates,
        splits_log_streams: false,
        separate_disks: true,
        source: super::Source::Groups,
        checkpoints: true,
        zpages: Zpages::new("kubelet", &lifecycle, &[]),
        debugging: Debugging::new(&lifecycle, Contention::Untold),
        node_logs: NodeLogs::new(&KubeletConfiguration::default(), tasks),
        tracer: None,
    }
}

/// The runtime's end of a stream: commands say what they are and repeat their input in capitals, ports answer in them.
fn stream(tasks: &TaskGroup, mut request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/portforward/token" {
        return forward(tasks, &mut request);
    }
    let accepted = match accept_remote_command(&mut request, &Subprotocol::SERVED) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(full),
    };
    let own = tasks.clone();
    tasks.spawn_cancellable("command", async move {
        let io = accepted.upgrade.io().await.unwrap();
        let started = RemoteCommand::start(io, accepted.dialect, SET, SessionOptions::default(), &own).await;
        let mut session = started.unwrap();
        let (mut stdin, mut stdout) = (session.stdin.take().unwrap(), session.stdout.take().unwrap());
        stdout.write_all(path.as_bytes()).await.unwrap();
        let mut input = [0; INPUT.len()];
        stdin.read_exact(&mut input).await.unwrap();
        stdout.write_all(&input.to_ascii_uppercase()).await.unwrap();
        drop(stdout);
        session.finish(&CommandStatus::exit(3), StatusForm::Short).await;
    });
    accepted.response.map(|()| empty())
}

fn forward(tasks: &TaskGroup, request: &mut Request) -> Response {
    let accepted = match accept_port_forward(request) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(full),
    };
    let own = tasks.clone();
    tasks.spawn_cancellable("forward", async move {
        let io = accepted.upgrade.io().await.unwrap();
        let options = SessionOptions::default();
        let mut session = PortForward::start(io, accepted.dialect, &[80], "peer", options, &own).await;
        while let Some(mut forward) = session.next().await {
            let mut input = [0; INPUT.len()];
            forward.data.read_exact(&mut input).await.unwrap();
            forward.data.write_all(&input.to_ascii_uppercase()).await.unwrap();
            forward.data.shutdown().await.unwrap();
            forward.finish();
        }
    });
    accepted.response.map(|()| empty())
}

async fn run(mut command: ClientCommand) -> (String, CommandStatus) {
    command.stdin.as_mut().unwrap().write_all(INPUT).await.unwrap();
    let mut out = String::new();
    command.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    (out, command.status().await.unwrap())
}

fn ended(protocol: Protocol) -> CommandStatus {
    let text = "error executing remote command: command terminated with non-zero exit code: command terminated with \
                exit code 3";
    if protocol.has_status() { CommandStatus::exit(3) } else { CommandStatus::Failure(text.to_owned()) }
}

#[tokio::test(start_paused = true)]
async fn commands_run_over_every_protocol() {
    let node = Node::start(true).await;
    let uid = &node.uid;
    let cases = [
        ("/exec/default/web-node1/main?command=ls&input=1&output=1".to_owned(), "/exec/tokenHELLO"),
        (format!("/exec/default/web-node1/{uid}/main?command=ls&input=1&output=1"), "/exec/tokenHELLO"),
        ("/attach/default/web-node1/main?input=1&output=1".to_owned(), "/attach/tokenHELLO"),
    ];
    for (target, expected) in cases {
        for subprotocol in Subprotocol::SERVED.into_iter().chain(Subprotocol::TRANSLATED) {
            let wanted: Vec<&str> = Some(subprotocol.name).filter(|name| !name.is_empty()).into_iter().collect();
            let (io, chosen) = node.websocket(&target, &wanted).await.unwrap();
            assert_eq!(chosen, subprotocol.name);
            let (out, outcome) = run(ClientCommand::over_websocket(io, subprotocol, SET, &node.tasks).await).await;
            assert_eq!((out.as_str(), outcome), (expected, ended(subprotocol.protocol)), "{}", subprotocol.name);
        }
        for protocol in Protocol::SPDY_SERVER {
            let (io, chosen) = node.spdy(&target, &[protocol.name()]).await.unwrap();
            assert_eq!(chosen, protocol.name());
            let command = ClientCommand::over_spdy(io, protocol, SET, &node.tasks).await.unwrap();
            let (out, outcome) = run(command).await;
            assert_eq!((out.as_str(), outcome), (expected, ended(protocol)), "{}", protocol.name());
        }
    }
    node.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn ports_are_forwarded_plain_and_tunnelled() {
    let node = Node::start(true).await;
    let target = "/portForward/default/web-node1";
    let tunnel = format!("SPDY/3.1+{PORT_FORWARD}");
    for carrier in [Carrier::Plain, Carrier::Tunnel] {
        let client = match carrier {
            Carrier::Plain => {
                PortForwardClient::start(node.spdy(target, &[PORT_FORWARD]).await.unwrap().0, carrier, &node.tasks)
            }
            Carrier::Tunnel => {
                let (io, _) = node.websocket(target, &[&tunnel]).await.unwrap();
                PortForwardClient::start(WebSocketIo::client(io).await, carrier, &node.tasks)
            }
        };
        let mut forward = client.open(80).await.unwrap();
        forward.data.write_all(INPUT).await.unwrap();
        let mut answer = String::new();
        forward.data.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "HELLO", "{carrier:?}");
    }
    let (_, chosen) = node.websocket(&format!("{target}?port=80"), &["v4.channel.k8s.io"]).await.unwrap();
    assert_eq!(chosen, "v4.channel.k8s.io", "the older form is passed on to the runtime");
    node.tasks.cancel();
}

/// The code, the text and `Retry-After` of a refusal.
fn refusal(result: Result<(UpgradedIo, String), DialError>) -> (u16, String, String) {
    let Err(DialError::Refused(refused)) = result else {
        panic!("not refused: {:?}", result.map(|(_, chosen)| chosen))
    };
    let after = refused.parts.headers.get("retry-after").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (code, after) = (refused.parts.status.as_u16(), after.to_owned());
    (code, String::from_utf8_lossy(&refused.body).into_owned(), after)
}

#[tokio::test(start_paused = true)]
async fn refusals_are_plain_answers() {
    let node = Node::start(true).await;
    let exec = "/exec/default/web-node1/main?command=ls&input=1&output=1";
    let missing = "container not found (\"other\")";
    for (target, expected) in [
        ("/exec/default/none/main?command=ls&output=1", (404, "pod does not exist")),
        ("/exec/default/web-node1/wrong-uid/main?command=ls&output=1", (404, "pod does not exist")),
        ("/exec/default/web-node1/other?command=ls&output=1", (500, missing)),
        ("/exec/default/none/main?command=ls", (400, "you must specify at least 1 of stdin, stdout, stderr")),
        ("/exec/default/web-node1/main?command=ls", (400, "you must specify at least 1 of stdin, stdout, stderr")),
        ("/portForward/default/none?port=80", (404, "pod does not exist")),
        ("/portForward/default/web-node1/wrong-uid?port=80", (404, "pod does not exist")),
        ("/portForward/default/none", (400, "query parameter \"port\" is required")),
        ("/portForward/default/web-node1", (400, "query parameter \"port\" is required")),
    ] {
        for protocol in ["v5.channel.k8s.io", "v4.channel.k8s.io"] {
            let (code, text, _) = refusal(node.websocket(target, &[protocol]).await);
            assert_eq!((code, text.as_str()), expected, "{target}");
        }
    }
    assert_eq!(refusal(node.websocket(exec, &["v9.channel.k8s.io"]).await).0, 403, "by the runtime");
    for (code, expected) in [
        (Code::NotFound, (404, "no such container".to_owned(), String::new())),
        (Code::ResourceExhausted, (429, "no such container".to_owned(), "60".to_owned())),
    ] {
        node.runtime.fail_next("exec", CriError::rpc("exec", code, "no such container"));
        assert_eq!(refusal(node.websocket(exec, &["v5.channel.k8s.io"]).await), expected);
    }
    node.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn without_its_gate_nothing_is_translated() {
    let node = Node::start(false).await;
    let exec = "/exec/default/web-node1/main?command=ls&input=1&output=1";
    let (code, text, _) = refusal(node.websocket(exec, &["v5.channel.k8s.io"]).await);
    assert_eq!((code, text.as_str()), (StatusCode::FORBIDDEN.as_u16(), ""), "no runtime knows that protocol");
    let (_, chosen) = node.websocket(exec, &["v5.channel.k8s.io", "v4.channel.k8s.io"]).await.unwrap();
    assert_eq!(chosen, "v4.channel.k8s.io");
    node.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn streams_that_nobody_uses_are_closed() {
    let limit = GoDuration::parse("200ms").unwrap();
    let config = KubeletConfiguration { streaming_connection_idle_timeout: limit, ..KubeletConfiguration::default() };
    let node = Node::start_with(true, config).await;
    let exec = "/exec/default/web-node1/main?command=ls&input=1&output=1";
    // Passed on as it is, and translated.
    let (io, chosen) = node.spdy(exec, &[Protocol::V4.name()]).await.unwrap();
    let plain = ClientCommand::over_spdy(io, Protocol::from_name(&chosen).unwrap(), SET, &node.tasks).await.unwrap();
    let subprotocol = Subprotocol::TRANSLATED[0];
    let (io, _) = node.websocket(exec, &[subprotocol.name]).await.unwrap();
    let translated = ClientCommand::over_websocket(io, subprotocol, SET, &node.tasks).await;
    for mut command in [plain, translated] {
        // Its input stays open; the command waits for more of it.
        let mut out = Vec::new();
        let read = command.stdout.as_mut().unwrap().read_to_end(&mut out);
        let _ = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the stream is closed");
        assert_eq!(String::from_utf8_lossy(&out), "/exec/token");
    }
    node.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn logs_and_checkpoints_that_there_are_not_are_told_of() {
    let node = Node::start(true).await;
    let log = "/containerLogs/default";
    for (method, target, expected) in [
        ("GET", format!("{log}/none/main"), (404, "pod \"none\" does not exist")),
        ("GET", format!("{log}/web-node1/other"), (404, "container \"other\" not found in pod \"web-node1\"")),
        ("GET", format!("{log}/web-node1/main"), (400, "failed to try resolving symlinks in path \"")),
        ("GET", format!("{log}/web-node1/main?previous=true"), (400, "previous terminated container \"main\" in pod ")),
        ("POST", "/checkpoint/default/web-node1/other".to_owned(), (404, "container other does not exist")),
        ("POST", "/run/default/web-node1/wrong-uid/main?cmd=ls".to_owned(), (404, "pod does not exist")),
    ] {
        let mut connection = TcpStream::connect(node.address).await.unwrap();
        let request = format!("{method} {target} HTTP/1.0\r\nhost: node1\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!(" {} ", expected.0)) && body.starts_with(expected.1), "{target}: {answer}");
        assert!(!body.ends_with('\n'), "{target}");
    }
    node.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_is_turned_off_says_so() {
    let debugging =
        |on| KubeletConfiguration { enable_debugging_handlers: Some(on), ..KubeletConfiguration::default() };
    let profiling = KubeletConfiguration { enable_profiling_handler: Some(false), ..debugging(true) };
    let flags = KubeletConfiguration { enable_debug_flags_handler: Some(false), ..debugging(true) };
    let root = tempfile::tempdir().unwrap();
    let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
    let runtime = Arc::new(FakeRuntime::new(clock.clone(), &TaskGroup::new("runtime")));
    let node = Arc::new(TestNode::default());
    for (config, path, expected) in [
        (debugging(false), "/containerLogs/default/p/c", (405, "Debug endpoints are disabled.\n")),
        (debugging(false), "/debug/pprof/", (405, "Debug endpoints are disabled.\n")),
        (debugging(false), "/debug/flags/v", (404, "404 page not found\n")),
        (debugging(false), "/checkpoint/default/p/c", (404, "404 page not found\n")),
        (profiling, "/debug/pprof/", (405, "profiling endpoint is disabled.\n")),
        (flags, "/debug/flags/v", (405, "flags endpoint is disabled.\n")),
    ] {
        let (shared, images) = (runtime.clone(), runtime.clone());
        let engine = engine(settings(root.path()), &node, shared, images, clock.clone(), &tasks);
        let api = Api { config: Arc::new(config), ..api(engine, runtime.clone(), clock.clone(), &tasks, true) };
        let request = http::Request::get(path).body(empty()).unwrap();
        let answer = route::full(Arc::new(api), request).await;
        let status = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        assert_eq!((status, std::str::from_utf8(&body).unwrap()), expected, "{path}");
    }
    tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn routes_have_their_methods_and_plain_handlers_any() {
    let root = tempfile::tempdir().unwrap();
    let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
    let runtime = Arc::new(FakeRuntime::new(clock.clone(), &TaskGroup::new("runtime")));
    let node = Arc::new(TestNode::default());
    let engine = engine(settings(root.path()), &node, runtime.clone(), runtime.clone(), clock.clone(), &tasks);
    let api = Arc::new(api(engine, runtime, clock, &tasks, true));
    let answered = |path: &'static str, method: &'static str, public: bool| {
        let request = http::Request::builder().method(method).uri(path).body(empty()).unwrap();
        let api = api.clone();
        async move {
            let answer = if public { route::read_only(api, request).await } else { route::full(api, request).await };
            let allowed = answer.headers().get("allow").map(|value| value.to_str().unwrap().to_owned());
            (answer.status().as_u16(), allowed)
        }
    };
    for (path, methods) in [
        ("/pods", "GET"),
        ("/runningpods/", "GET"),
        ("/stats/summary", "GET, POST"),
        ("/containerLogs/default/p/c", "GET"),
        ("/logs/syslog", "GET"),
        ("/debug/pprof/cmdline", "GET"),
        ("/exec/default/p/c", "GET, POST"),
        ("/attach/default/p/c", "GET, POST"),
        ("/portForward/default/p", "GET, POST"),
        ("/run/default/p/c", "POST"),
        ("/checkpoint/default/p/c", "POST"),
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE"] {
            let (status, allowed) = answered(path, method, false).await;
            let expected = (!methods.split(", ").any(|one| one == method)).then(|| methods.to_owned());
            assert_eq!((status == 405, allowed), (expected.is_some(), expected), "{method} {path}");
        }
    }
    for path in ["/healthz", "/metrics", "/metrics/cadvisor", "/metrics/resource", "/configz"] {
        for method in ["HEAD", "POST", "DELETE"] {
            assert_eq!(answered(path, method, false).await, (200, None), "{method} {path}");
        }
    }
    assert_eq!(answered("/pods", "HEAD", true).await, (405, Some("GET".to_owned())));
    assert_eq!(answered("/metrics", "POST", true).await.0, 200);
    assert_eq!(answered("/other", "PUT", true).await.0, 404);
    tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn checkpoints_are_made_where_the_gate_says_so() {
    let root = tempfile::tempdir().unwrap();
    let (tasks, clock) = (TaskGroup::new("kubelet"), TokioClock::shared());
    let runtime = Arc::new(FakeRuntime::new(clock.clone(), &TaskGroup::new("runtime")));
    let node = Arc::new(TestNode::default());
    for (checkpoints, expected) in [(true, "pod does not exist"), (false, "404 page not found\n")] {
        let (shared, images) = (runtime.clone(), runtime.clone());
        let engine = engine(settings(root.path()), &node, shared, images, clock.clone(), &tasks);
        let api = Api { checkpoints, ..api(engine, runtime.clone(), clock.clone(), &tasks, true) };
        let request = http::Request::post("/checkpoint/default/none/main").body(empty()).unwrap();
        let answer = route::full(Arc::new(api), request).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        assert_eq!(body, expected);
    }
    tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn pods_use_what_the_runtime_says_where_it_is_asked() {
    for (source, expected) in [(Source::Groups, None), (Source::Runtime, Some(5 << 20))] {
        let node = Node::start_as(false, |api| Api { source, ..api }).await;
        node.runtime.set_memory("main", 5 << 20);
        let (name, help) = ("container_of_the_runtime".to_owned(), String::new());
        let described = MetricDescriptor { name: name.clone(), help, label_keys: Vec::new() };
        let pod_sandbox_id = String::new();
        let metrics = vec![Metric { name, ..Metric::default() }];
        let told = PodSandboxMetrics { pod_sandbox_id, metrics, container_metrics: Vec::new() };
        node.runtime.set_metrics(vec![described], vec![told]);

        let summary: serde_json::Value = serde_json::from_str(&node.get("/stats/summary").await).unwrap();
        let pod = &summary["pods"][0];
        assert_eq!(pod["memory"]["workingSetBytes"].as_u64(), expected, "{source:?} {pod}");
        assert_eq!(pod["containers"][0]["memory"]["workingSetBytes"].as_u64(), Some(5 << 20));
        let resource = node.get("/metrics/resource").await;
        assert!(resource.contains("container_memory_working_set_bytes{container=\"main\""), "{resource}");
        assert_eq!(resource.contains("pod_memory_working_set_bytes{"), expected.is_some());
        let cadvisor = node.get("/metrics/cadvisor").await;
        assert!(cadvisor.contains("machine_cpu_cores{"));
        let families = [cadvisor.contains("container_last_seen{"), cadvisor.contains("container_of_the_runtime 0\n")];
        assert_eq!(families, [expected.is_none(), expected.is_some()], "{cadvisor}");
        node.tasks.shutdown(Duration::from_secs(5)).await;
        // The next one starts on a clock that jumps.
        tokio::time::pause();
    }
}
