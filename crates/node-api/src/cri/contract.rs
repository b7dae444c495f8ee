//! What every runtime must do, checked on the fake, on the fake behind gRPC, and on a real runtime.
//!
//! The real one is used when `COXSWAIN_CRI_SOCKET` names its socket, as `hack/with-containerd.sh` has it (`make test`,
//! `make test-cri`); `COXSWAIN_CRI_IMAGE` names an image it has, whose own command runs until it is stopped (a pause image
//! will do).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::{SystemClock, TaskGroup, TokioClock};
use futures_util::StreamExt as _;

use super::fake::{ExecScript, FakeRuntime, Script};
use super::server::{Lists, serve_with};
use super::v1::{
    AttachRequest, ContainerConfig, ContainerFilter, ContainerMetadata, ContainerState, ContainerStateValue,
    ExecRequest, ImageFilter, ImageSpec, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxFilter, PodSandboxMetadata,
    PodSandboxState, PortForwardRequest,
};
use super::{ClientOptions, Code, CriClient, CriError, Images, Observer, Runtime};

const NOBODY: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

fn spec(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned(), ..ImageSpec::default() }
}

fn sandbox_config(name: &str) -> PodSandboxConfig {
    let unique = format!("{name}-{}", std::process::id());
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: unique.clone(),
            uid: format!("uid-{unique}"),
            namespace: "contract".into(),
            attempt: 0,
        }),
        log_directory: std::env::temp_dir().join(format!("contract-{unique}")).to_string_lossy().into_owned(),
        labels: HashMap::from([("io.kubernetes.pod.uid".to_owned(), format!("uid-{unique}"))]),
        linux: Some(LinuxPodSandboxConfig::default()),
        ..PodSandboxConfig::default()
    }
}

fn container_config(name: &str, image: &str) -> ContainerConfig {
    ContainerConfig {
        metadata: Some(ContainerMetadata { name: name.to_owned(), attempt: 0 }),
        image: Some(spec(image)),
        labels: HashMap::from([("io.kubernetes.container.name".to_owned(), name.to_owned())]),
        log_path: format!("{name}.log"),
        ..ContainerConfig::default()
    }
}

async fn state_of(runtime: &dyn Runtime, id: &str) -> ContainerState {
    runtime.container_status(id, false).await.unwrap().status.unwrap().state()
}

/// The whole suite.
async fn contract(runtime: &dyn Runtime, images: &dyn Images, image: &str) {
    assert_eq!(runtime.version().await.unwrap().runtime_api_version, "v1");
    let conditions = runtime.status(false).await.unwrap().status.unwrap().conditions;
    for name in ["RuntimeReady", "NetworkReady"] {
        assert!(conditions.iter().any(|condition| condition.r#type == name && condition.status), "{name}");
    }
    image_contract(images, image).await;
    absent_objects(runtime, image).await;
    sandbox_contract(runtime).await;
    container_contract(runtime, image).await;
    stopping_a_sandbox_ends_its_containers(runtime, image).await;
}

async fn image_contract(images: &dyn Images, image: &str) {
    let absent = images.image_status(spec("localhost/contract/absent:1"), false).await.unwrap();
    assert!(absent.image.is_none(), "an absent image is no error");
    images.remove_image(spec("localhost/contract/absent:1")).await.unwrap();
    if images.image_status(spec(image), false).await.unwrap().image.is_none() {
        images.pull_image(spec(image), None, None).await.unwrap();
    }
    let present = images.image_status(spec(image), false).await.unwrap().image.unwrap();
    let by_id = images.image_status(spec(&present.id), false).await.unwrap().image.unwrap();
    assert_eq!(present.id, by_id.id);
    let filter = ImageFilter { image: Some(spec(image)) };
    // containerd ignores the filter, so a caller must look at what it gets.
    assert!(images.list_images(Some(filter)).await.unwrap().iter().any(|listed| listed.id == present.id));
    assert!(images.list_images(None).await.unwrap().iter().any(|listed| listed.id == present.id));
    assert!(!images.image_fs_info().await.unwrap().image_filesystems.is_empty());
}

async fn absent_objects(runtime: &dyn Runtime, image: &str) {
    runtime.stop_container(NOBODY, Duration::ZERO).await.unwrap();
    runtime.remove_container(NOBODY).await.unwrap();
    runtime.stop_pod_sandbox(NOBODY).await.unwrap();
    runtime.remove_pod_sandbox(NOBODY).await.unwrap();
    assert!(runtime.container_status(NOBODY, false).await.unwrap_err().is_not_found());
    assert!(runtime.pod_sandbox_status(NOBODY, false).await.unwrap_err().is_not_found());
    assert!(runtime.start_container(NOBODY).await.is_err());
    assert!(runtime.exec_sync(NOBODY, vec!["true".into()], Duration::ZERO).await.is_err());
    assert!(runtime.container_stats(NOBODY).await.is_err());
    let request = PortForwardRequest { pod_sandbox_id: NOBODY.into(), port: vec![1] };
    assert!(runtime.port_forward(request).await.is_err());
    let created = runtime.create_container(NOBODY, container_config("c", image), sandbox_config("none")).await;
    assert!(created.is_err());
}

async fn sandbox_contract(runtime: &dyn Runtime) {
    let config = sandbox_config("sandbox");
    let id = runtime.run_pod_sandbox(config.clone(), "").await.unwrap();
    let status = runtime.pod_sandbox_status(&id, false).await.unwrap().status.unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert_eq!(status.metadata, config.metadata);
    assert!(!status.network.unwrap().ip.is_empty());
    assert!(runtime.run_pod_sandbox(config.clone(), "").await.is_err(), "the same pod and attempt twice");
    let listed = async |filter: PodSandboxFilter| {
        let listed = runtime.list_pod_sandboxes(Some(filter)).await.unwrap();
        listed.iter().any(|sandbox| sandbox.id == id)
    };
    assert!(listed(PodSandboxFilter { id: id.clone(), ..PodSandboxFilter::default() }).await);
    assert!(listed(PodSandboxFilter { label_selector: config.labels.clone(), ..PodSandboxFilter::default() }).await);
    let other = HashMap::from([("io.kubernetes.pod.uid".to_owned(), "other".to_owned())]);
    assert!(!listed(PodSandboxFilter { label_selector: other, ..PodSandboxFilter::default() }).await);
    let whole = runtime.list_pod_sandboxes(None).await.unwrap().into_iter().find(|sandbox| sandbox.id == id).unwrap();
    let sketches = runtime.sketch_pod_sandboxes().await.unwrap();
    let own = sketches.iter().find(|sketch| sketch.id == id).unwrap();
    assert_eq!(
        (own.state, own.label("io.kubernetes.pod.uid").as_ref()),
        (whole.state, config.labels.get("io.kubernetes.pod.uid"))
    );
    assert!(own.label("io.kubernetes.pod.uid").is_some());
    assert_eq!(own.whole().unwrap(), whole);
    runtime.stop_pod_sandbox(&id).await.unwrap();
    runtime.stop_pod_sandbox(&id).await.unwrap();
    let status = runtime.pod_sandbox_status(&id, false).await.unwrap().status.unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxNotready);
    runtime.remove_pod_sandbox(&id).await.unwrap();
    runtime.remove_pod_sandbox(&id).await.unwrap();
    assert!(runtime.pod_sandbox_status(&id, false).await.unwrap_err().is_not_found());
}

async fn container_contract(runtime: &dyn Runtime, image: &str) {
    let config = sandbox_config("container");
    let sandbox = runtime.run_pod_sandbox(config.clone(), "").await.unwrap();
    let missing = container_config("c", "localhost/contract/absent:1");
    assert!(runtime.create_container(&sandbox, missing, config.clone()).await.is_err());
    let id = runtime.create_container(&sandbox, container_config("c", image), config.clone()).await.unwrap();
    assert_eq!(state_of(runtime, &id).await, ContainerState::ContainerCreated);
    let again = runtime.create_container(&sandbox, container_config("c", image), config.clone()).await;
    assert!(again.is_err(), "the same name and attempt twice");
    runtime.start_container(&id).await.unwrap();
    assert_eq!(state_of(runtime, &id).await, ContainerState::ContainerRunning);
    assert!(runtime.start_container(&id).await.is_err(), "started twice");
    streaming_requests_are_checked(runtime, &id).await;
    let running = ContainerFilter {
        state: Some(ContainerStateValue { state: ContainerState::ContainerRunning.into() }),
        pod_sandbox_id: sandbox.clone(),
        ..ContainerFilter::default()
    };
    let listed = runtime.list_containers(Some(running.clone())).await.unwrap();
    assert_eq!(listed.iter().map(|container| &container.id).collect::<Vec<_>>(), [&id]);
    let sketches = runtime.sketch_containers().await.unwrap();
    let own = sketches.iter().find(|sketch| sketch.id == id).unwrap();
    assert_eq!((own.name.as_str(), own.state), ("c", ContainerState::ContainerRunning.into()));
    assert_eq!(own.whole().unwrap(), listed[0]);
    assert_eq!(runtime.container_stats(&id).await.unwrap().attributes.unwrap().id, id);
    runtime.stop_container(&id, Duration::from_secs(10)).await.unwrap();
    runtime.stop_container(&id, Duration::from_secs(10)).await.unwrap();
    let status = runtime.container_status(&id, false).await.unwrap().status.unwrap();
    assert_eq!(status.state(), ContainerState::ContainerExited);
    assert!(status.created_at <= status.started_at && status.started_at <= status.finished_at);
    assert!(runtime.list_containers(Some(running)).await.unwrap().is_empty());
    assert!(runtime.start_container(&id).await.is_err(), "a container runs once");
    runtime.remove_container(&id).await.unwrap();
    assert!(runtime.container_status(&id, false).await.unwrap_err().is_not_found());
    runtime.remove_pod_sandbox(&sandbox).await.unwrap();
}

async fn streaming_requests_are_checked(runtime: &dyn Runtime, id: &str) {
    let request = ExecRequest { container_id: id.into(), cmd: vec!["true".into()], ..ExecRequest::default() };
    assert_eq!(runtime.exec(request.clone()).await.unwrap_err().code(), Code::InvalidArgument);
    let both = ExecRequest { tty: true, stdout: true, stderr: true, ..request.clone() };
    assert_eq!(runtime.exec(both).await.unwrap_err().code(), Code::InvalidArgument);
    let url = runtime.exec(ExecRequest { stdout: true, ..request }).await.unwrap();
    assert!(url.starts_with("http") && url.contains("/exec/"), "{url}");
    let attach = AttachRequest { container_id: id.into(), stdout: true, ..AttachRequest::default() };
    assert!(runtime.attach(attach).await.unwrap().contains("/attach/"));
}

async fn stopping_a_sandbox_ends_its_containers(runtime: &dyn Runtime, image: &str) {
    let config = sandbox_config("whole");
    let sandbox = runtime.run_pod_sandbox(config.clone(), "").await.unwrap();
    let id = runtime.create_container(&sandbox, container_config("c", image), config.clone()).await.unwrap();
    runtime.start_container(&id).await.unwrap();
    runtime.stop_pod_sandbox(&sandbox).await.unwrap();
    assert_eq!(state_of(runtime, &id).await, ContainerState::ContainerExited);
    let late = runtime.create_container(&sandbox, container_config("late", image), config).await;
    assert!(late.is_err(), "a stopped sandbox takes no containers");
    runtime.remove_pod_sandbox(&sandbox).await.unwrap();
    assert!(runtime.container_status(&id, false).await.unwrap_err().is_not_found());
}

fn fake(group: &TaskGroup) -> FakeRuntime {
    FakeRuntime::new(TokioClock::shared(), group)
}

#[tokio::test(start_paused = true)]
async fn the_fake_keeps_the_contract() {
    let fake = fake(&TaskGroup::new("test"));
    contract(&fake, &fake, "registry.example/pause:1").await;
}

/// A client of a fake behind a real socket.
async fn served(group: &TaskGroup, list_streaming: bool) -> (CriClient, FakeRuntime, tempfile::TempDir) {
    let (client, fake, directory, _) = served_with(group, list_streaming, Lists::Streamed).await;
    (client, fake, directory)
}

/// The calls that a client has ended, and whether well.
#[derive(Default)]
struct Ended(parking_lot::Mutex<Vec<(&'static str, bool)>>);

impl Observer for Ended {
    fn observe(&self, operation: &'static str, _: Duration, outcome: Result<(), &CriError>) {
        self.0.lock().push((operation, outcome.is_ok()));
    }
}

/// The same with a server that may have no streamed lists, and with what becomes of calls.
async fn served_with(
    group: &TaskGroup,
    list_streaming: bool,
    lists: Lists,
) -> (CriClient, FakeRuntime, tempfile::TempDir, Arc<Ended>) {
    let fake = FakeRuntime::new(SystemClock::shared(), group);
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("cri.sock");
    let (path, runtime, token) = (socket.clone(), Arc::new(fake.clone()), group.token());
    group.spawn("server", async move { serve_with(&path, lists, runtime.clone(), runtime, token).await.unwrap() });
    let ended = Arc::new(Ended::default());
    let observer: Option<Arc<dyn Observer>> = Some(ended.clone());
    let endpoint = format!("unix://{}", socket.display());
    let options = ClientOptions { list_streaming, observer, ..ClientOptions::new(&endpoint) };
    // The server's task binds the socket when it first runs.
    tokio::task::yield_now().await;
    (CriClient::connect(&options).await.unwrap(), fake, directory, ended)
}

#[tokio::test]
async fn the_client_keeps_the_contract_over_grpc() {
    for (list_streaming, lists) in [(false, Lists::Streamed), (true, Lists::Streamed), (true, Lists::Whole)] {
        let group = TaskGroup::new("test");
        let (client, _fake, _directory, _) = served_with(&group, list_streaming, lists).await;
        contract(&client, &client, "registry.example/pause:1").await;
        group.shutdown(Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn streamed_lists_come_in_parts_and_a_service_without_them_is_asked_once() {
    const MANY: usize = 250;
    for (lists, tries) in [(Lists::Streamed, &[true, true][..]), (Lists::Whole, &[false, true, true])] {
        let group = TaskGroup::new("test");
        let (client, fake, _directory, ended) = served_with(&group, true, lists).await;
        for number in 0..MANY {
            fake.pull_image(spec(&format!("registry.example/app:{number}")), None, None).await.unwrap();
        }
        ended.0.lock().clear();
        for _ in 0..2 {
            assert_eq!(client.list_images(None).await.unwrap().len(), MANY);
        }
        // Another service is asked on its own.
        assert!(client.list_containers(None).await.unwrap().is_empty());
        assert!(client.clone().list_pod_sandboxes(None).await.unwrap().is_empty());
        let of = |operation: &str| -> Vec<bool> {
            ended.0.lock().iter().filter(|(name, _)| *name == operation).map(|(_, is_ok)| *is_ok).collect()
        };
        assert_eq!(of("list_images"), tries, "{lists:?}");
        assert_eq!(of("list_containers"), &tries[..tries.len() - 1], "{lists:?}");
        assert_eq!(of("list_podsandbox"), [true], "{lists:?}");
        // A list that is read in part alone is had in the same way.
        assert!(client.sketch_containers().await.unwrap().is_empty());
        assert!(client.sketch_pod_sandboxes().await.unwrap().is_empty());
        assert_eq!((of("list_containers").len(), of("list_podsandbox")), (tries.len(), vec![true, true]), "{lists:?}");
        group.shutdown(Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn a_real_runtime_keeps_the_contract() {
    let Ok(socket) = std::env::var("COXSWAIN_CRI_SOCKET") else {
        return test_facts::skipped("COXSWAIN_CRI_SOCKET does not name a runtime");
    };
    let image = std::env::var("COXSWAIN_CRI_IMAGE").unwrap_or_else(|_| "registry.k8s.io/pause:3.10".to_owned());
    let endpoint = if socket.contains("://") { socket } else { format!("unix://{socket}") };
    let client = CriClient::connect(&ClientOptions::new(&endpoint)).await.unwrap();
    contract(&client, &client, &image).await;
}

#[tokio::test]
async fn events_and_errors_cross_the_socket() {
    let group = TaskGroup::new("test");
    let (client, fake, _directory) = served(&group, false).await;
    let (collect, run) = tokio::join!(
        async {
            let events = client.container_events().await.unwrap();
            let kinds = events.map(|event| event.unwrap().container_event_type).take(2);
            kinds.collect::<Vec<_>>().await
        },
        async {
            // The stream's head comes with its first event, so events are made until the reader has two.
            for attempt in 0..100 {
                let mut config = sandbox_config("events");
                config.metadata.as_mut().unwrap().attempt = attempt;
                client.run_pod_sandbox(config, "").await.unwrap();
                tokio::task::yield_now().await;
            }
        },
    );
    assert_eq!((collect.len(), run), (2, ()));
    fake.fail_next("run_podsandbox", CriError::rpc("run_podsandbox", Code::ResourceExhausted, "full"));
    let error = client.run_pod_sandbox(sandbox_config("late"), "").await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = ResourceExhausted desc = full");
    group.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn statistics_outlast_what_goes_while_they_are_listed() {
    let group = TaskGroup::new("test");
    let (client, fake, _directory) = served(&group, false).await;
    let gone = |operation| CriError::rpc(operation, Code::NotFound, "failed to obtain cpu stats: not found");
    for _ in 0..2 {
        fake.fail_next("list_container_stats", gone("list_container_stats"));
        fake.fail_next("list_podsandbox_stats", gone("list_podsandbox_stats"));
    }
    assert!(client.list_container_stats(None).await.is_ok());
    assert!(client.list_pod_sandbox_stats(None).await.is_ok());
    fake.fail_always("list_container_stats", Some(gone("list_container_stats")));
    assert!(client.list_container_stats(None).await.unwrap_err().is_not_found(), "not for ever");
    group.shutdown(Duration::from_secs(10)).await;
}

async fn started(fake: &FakeRuntime, name: &str) -> String {
    let config = sandbox_config(name);
    let sandbox = fake.run_pod_sandbox(config.clone(), "").await.unwrap();
    fake.pull_image(spec("image"), None, None).await.unwrap();
    let id = fake.create_container(&sandbox, container_config(name, "image"), config).await.unwrap();
    fake.start_container(&id).await.unwrap();
    id
}

#[tokio::test(start_paused = true)]
async fn scripted_containers_end_by_themselves_and_say_so() {
    let fake = fake(&TaskGroup::new("test"));
    fake.script("job", [Script::exits(Duration::from_secs(5), 2)]);
    let id = started(&fake, "job").await;
    let mut events = fake.container_events().await.unwrap();
    let stopped = events.next().await.unwrap().unwrap();
    assert_eq!(stopped.container_id, id);
    let status = &stopped.containers_statuses[0];
    assert_eq!(
        (status.state(), status.exit_code, status.reason.as_str()),
        (ContainerState::ContainerExited, 2, "Error")
    );
    assert_eq!(status.finished_at - status.started_at, 5_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_ignores_the_signal_is_killed_after_the_grace_period() {
    let fake = fake(&TaskGroup::new("test"));
    fake.script("deaf", [Script { on_stop: None, ..Script::forever() }]);
    let id = started(&fake, "deaf").await;
    let start = tokio::time::Instant::now();
    fake.stop_container(&id, Duration::from_secs(30)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(fake.container_status(&id, false).await.unwrap().status.unwrap().exit_code, 137);
}

#[tokio::test(start_paused = true)]
async fn faults_delays_and_commands_are_scripted() {
    let fake = fake(&TaskGroup::new("test"));
    let id = started(&fake, "app").await;
    let failure = CriError::rpc("version", Code::Unavailable, "gone");
    fake.fail_next("version", failure.clone());
    assert_eq!(fake.version().await.unwrap_err(), failure);
    assert!(fake.version().await.is_ok());
    fake.delay("status", Duration::from_secs(7));
    let start = tokio::time::Instant::now();
    fake.status(false).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    let probe = ExecScript { exit_code: 1, takes: Duration::from_secs(3), ..ExecScript::default() };
    fake.script_exec("cat /tmp/healthy", probe);
    let command = || vec!["cat".to_owned(), "/tmp/healthy".to_owned()];
    assert_eq!(fake.exec_sync(&id, command(), Duration::ZERO).await.unwrap().exit_code, 1);
    let late = fake.exec_sync(&id, command(), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(late.to_string(), "command timed out: \"cat /tmp/healthy\" timed out after 1s");
    assert!(fake.take_calls().iter().any(|call| call.operation == "exec_sync" && call.subject == id));
}
