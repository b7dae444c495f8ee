//! A whole engine on the runtime in memory, with static pods and paused time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{ContainerStatus, Pod};
use base::{SystemClock, TaskGroup, TokioClock};
use node_api::cri::fake::{ExecScript, FakeRuntime, Script};
use node_api::cri::v1::{self, ImageSpec};
use node_api::cri::{Code, CriError, Images as _, Runtime as _};

use super::test_node::{TestNode, engine, settings};
use super::{Eviction, PodEngine};
use crate::runtime::labels;

struct Machine {
    root: tempfile::TempDir,
    node: Arc<TestNode>,
    runtime: FakeRuntime,
    engine: PodEngine,
    tasks: TaskGroup,
}

impl Machine {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl FnOnce(&mut crate::interfaces::PodSettings)) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("manifests")).unwrap();
        let tasks = TaskGroup::new("kubelet");
        let clock = TokioClock::shared();
        let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
        let spec = ImageSpec { image: "docker.io/library/app:1".into(), ..Default::default() };
        runtime.pull_image(spec, None, None).await.unwrap();
        let node = Arc::new(TestNode::default());
        let shared = Arc::new(runtime.clone());
        let mut settings = settings(root.path());
        change(&mut settings);
        let engine = engine(settings, &node, shared.clone(), shared, clock, &tasks);
        Self { root, node, runtime, engine, tasks }
    }

    fn write(&self, name: &str, spec: &str) {
        write(self.root.path(), name, spec);
    }

    fn pod(&self, name: &str) -> Option<Arc<Pod>> {
        self.engine.pod("default", &format!("{name}-node1"))
    }

    /// Waits until a pod is as wanted; minutes of paused time.
    async fn wait(&self, name: &str, what: &str, check: impl Fn(&Pod) -> bool) -> Arc<Pod> {
        for _ in 0..6000 {
            if let Some(pod) = self.pod(name).filter(|pod| check(pod)) {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: {:#?}\n{:#?}", self.pod(name), self.node.events.lock());
    }
}

fn write(root: &Path, name: &str, spec: &str) {
    let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {spec}\n");
    std::fs::write(root.join("manifests").join(format!("{name}.yaml")), text).unwrap();
}

const APP: &str = "{terminationGracePeriodSeconds: 5, containers: [{name: main, image: 'docker.io/library/app:1'}]}";

fn first(pod: &Pod) -> ContainerStatus {
    pod.status.container_statuses.first().cloned().unwrap_or_default()
}

fn waiting(pod: &Pod) -> String {
    first(pod).state.waiting.map(|waiting| waiting.reason).unwrap_or_default()
}

/// There is one for each pod of the node, and nearly all of them wait nearly all the time.
#[tokio::test(start_paused = true)]
async fn workers_that_wait_are_small() {
    let machine = Machine::start().await;
    let wake = tokio::sync::Notify::new();
    let bytes = size_of_val(&machine.engine.inner.work("u", &wake));
    assert!(bytes <= 1024, "{bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_lives_and_goes() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
    assert_eq!(pod.status.phase, "Running");
    assert_eq!(pod.status.conditions.iter().filter(|condition| condition.status == "True").count(), 5);
    assert!(machine.node.told("Normal Created spec.containers{main} Container created"));
    std::fs::remove_file(machine.root.path().join("manifests/web.yaml")).unwrap();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if machine.engine.running_pods().await.is_empty() && machine.engine.pods().is_empty() {
            break;
        }
    }
    assert!(machine.engine.running_pods().await.is_empty());
    assert!(machine.node.told("Normal Killing spec.containers{main} Stopping container main"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(machine.node.unmounted.lock().contains(&pod.metadata.uid));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_container_names_the_signal_that_ends_it_where_that_is_asked_for() {
    for on in [false, true] {
        let machine = Machine::start_with(|settings| settings.stop_signals = on).await;
        let container = "{name: main, image: 'docker.io/library/app:1', lifecycle: {stopSignal: SIGUSR1}}";
        machine.write("web", &format!("{{os: {{name: linux}}, containers: [{container}]}}"));
        let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
        // As the runtime says, which was told so.
        assert_eq!(first(&pod).stop_signal.as_deref(), on.then_some("SIGUSR1"));
        machine.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn crashing_containers_back_off() {
    let machine = Machine::start().await;
    machine.runtime.script("main", [Script::exits(Duration::from_secs(1), 3)]);
    machine.write("crash", APP);
    let pod = machine.wait("crash", "backed off", |pod| waiting(pod) == "CrashLoopBackOff").await;
    let own = first(&pod);
    let message = own.state.waiting.unwrap().message;
    assert!(message.starts_with("back-off 10s restarting failed container=main pod=crash-node1_default("), "{message}");
    assert_eq!(own.last_state.terminated.unwrap().exit_code, 3);
    assert_eq!(pod.status.phase, "Running", "it will be restarted");
    machine.wait("crash", "third start", |pod| first(pod).restart_count >= 3).await;
    assert!(
        machine.node.told("Warning BackOff spec.containers{main} Back-off restarting failed container main in pod")
    );
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn missing_images_are_pulled_or_waited_for() {
    let machine = Machine::start().await;
    let refused = CriError::rpc("pull_image", Code::Unknown, "no such image");
    machine.runtime.set_pull_error("docker.io/library/none:2", Some(refused));
    machine.write("never", "{containers: [{name: main, image: 'absent:1', imagePullPolicy: Never}]}");
    machine.write("pulls", "{containers: [{name: main, image: 'docker.io/library/none:2'}]}");
    machine.write("wrong", "{containers: [{name: main, image: 'A B'}]}");
    machine.wait("never", "refused", |pod| waiting(pod) == "ErrImageNeverPull").await;
    machine.wait("wrong", "refused", |pod| waiting(pod) == "InvalidImageName").await;
    machine.wait("pulls", "failed", |pod| waiting(pod) == "ErrImagePull").await;
    let pod = machine.wait("pulls", "backed off", |pod| waiting(pod) == "ImagePullBackOff").await;
    let message = first(&pod).state.waiting.unwrap().message;
    assert_eq!(
        message,
        "Back-off pulling image \"docker.io/library/none:2\": ErrImagePull: rpc error: code = Unknown desc = no such image"
    );
    for (pod, word) in [
        ("never", "ErrImageNeverPull"),
        ("wrong", "InvalidImageName"),
        ("pulls", "ErrImagePull"),
        ("pulls", "ImagePullBackOff"),
    ] {
        let told = format!("Warning Failed spec.containers{{main}} Error: {word}");
        assert!(machine.node.told(&told), "{pod}: {told}");
    }
    // However long the back-off has become, a failure is soon followed by word of it.
    for _ in 0..3 {
        machine.wait("pulls", "failed again", |pod| waiting(pod) == "ErrImagePull").await;
        let failed = tokio::time::Instant::now();
        machine.wait("pulls", "backed off again", |pod| waiting(pod) == "ImagePullBackOff").await;
        assert!(failed.elapsed() < Duration::from_secs(20), "after {:?}", failed.elapsed());
    }
    machine.runtime.set_pull_error("docker.io/library/none:2", None);
    machine.wait("pulls", "running", |pod| first(pod).ready).await;
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn init_containers_and_sidecars_come_first() {
    let machine = Machine::start().await;
    machine.runtime.script("init", [Script::exits(Duration::from_secs(2), 0)]);
    machine.runtime.script("main", [Script::exits(Duration::from_secs(20), 0)]);
    machine.write(
        "ordered",
        "{restartPolicy: Never, terminationGracePeriodSeconds: 2, initContainers: [{name: side, image: 'docker.io/library/app:1', restartPolicy: Always}, \
         {name: init, image: 'docker.io/library/app:1'}], containers: [{name: main, image: 'docker.io/library/app:1'}]}",
    );
    let pod = machine.wait("ordered", "initializing", |pod| pod.status.init_container_statuses.len() == 2).await;
    assert_eq!(waiting(&pod), "PodInitializing");
    machine.wait("ordered", "running", |pod| first(pod).ready).await;
    let calls: Vec<String> = machine
        .runtime
        .take_calls()
        .into_iter()
        .filter(|call| call.operation == "create_container")
        .map(|call| call.subject)
        .collect();
    assert_eq!(calls, ["side", "init", "main"]);
    let ended = machine.wait("ordered", "done", |pod| pod.status.phase == "Succeeded").await;
    let ready = ended.status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap().clone();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "PodCompleted"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn liveness_failures_restart() {
    let machine = Machine::start().await;
    let script = node_api::cri::fake::ExecScript { exit_code: 1, ..Default::default() };
    machine.runtime.script_exec("check", script);
    machine.write(
        "sick",
        "{terminationGracePeriodSeconds: 2, containers: [{name: main, image: 'docker.io/library/app:1', \
         livenessProbe: {exec: {command: [check]}, periodSeconds: 1, failureThreshold: 2}}]}",
    );
    machine.wait("sick", "restarted", |pod| first(pod).restart_count >= 1).await;
    assert!(machine.node.told("Killing spec.containers{main} Container main failed liveness probe, will be restarted"));
    assert!(machine.node.told("Warning Unhealthy spec.containers{main} Liveness probe failed: "));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_more_volumes_than_the_node_can_have_is_rejected() {
    let machine = Machine::start().await;
    *machine.node.volume_limit.lock() = Some("too many".into());
    let began = tokio::time::Instant::now();
    machine.write("web", APP);
    let pod = machine.wait("web", "rejected", |pod| pod.status.phase == "Failed").await;
    assert!(began.elapsed() > Duration::from_secs(120), "whoever attaches has time to find room");
    assert_eq!(pod.status.reason, "VolumeAttachmentLimitExceeded");
    assert_eq!(pod.status.message, "Pod was rejected: too many");
    assert!(machine.node.told("Warning VolumeAttachmentLimitExceeded  too many"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn configuration_errors_show() {
    let machine = Machine::start().await;
    *machine.node.config_error.lock() = Some("couldn't find key k in ConfigMap default/m".into());
    machine.write("web", APP);
    let pod = machine.wait("web", "waiting", |pod| waiting(pod) == "CreateContainerConfigError").await;
    assert_eq!(first(&pod).state.waiting.unwrap().message, "couldn't find key k in ConfigMap default/m");
    *machine.node.config_error.lock() = None;
    machine.wait("web", "healed", |pod| first(pod).ready).await;
    *machine.node.mount_error.lock() = Some("no such disk".into());
    machine.write("late", APP);
    machine.wait("late", "known", |_| true).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(machine.node.told("Warning FailedMount  no such disk"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn evicted_pods_fail() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
    let eviction = Eviction {
        reason: "Evicted".into(),
        message: "The node was low on resource: memory. ".into(),
        grace: Some(1),
        condition_message: Some("The node was low on resource: memory. ".into()),
        annotations: std::collections::BTreeMap::new(),
    };
    machine.engine.evict(&pod.metadata.uid, eviction).await.unwrap();
    let pod = machine.wait("web", "failed", |pod| pod.status.phase == "Failed").await;
    assert_eq!(pod.status.reason, "Evicted");
    assert!(pod.status.conditions.iter().any(|condition| condition.type_ == "DisruptionTarget"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn refused_pods_fail_without_a_container() {
    let machine = Machine::start().await;
    machine.write(
        "big",
        "{containers: [{name: main, image: 'docker.io/library/app:1', resources: {requests: {cpu: '3'}}}]}",
    );
    let pod = machine.wait("big", "refused", |pod| pod.status.phase == "Failed").await;
    // A static pod is critical, so others would have made way for it.
    assert_eq!(pod.status.reason, "UnexpectedAdmissionError");
    assert_eq!(
        pod.status.message,
        "Pod was rejected: Unexpected error while attempting to recover from admission failure: preemption: error \
         finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]"
    );
    assert!(machine.engine.running_pods().await.is_empty());
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_pods() {
    let machine = Machine::start().await;
    machine.write("slow", "{activeDeadlineSeconds: 30, terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'docker.io/library/app:1'}]}");
    machine.wait("slow", "ready", |pod| first(pod).ready).await;
    let pod = machine.wait("slow", "failed", |pod| pod.status.phase == "Failed").await;
    assert_eq!(pod.status.reason, "DeadlineExceeded");
    assert!(machine.node.told("Normal DeadlineExceeded"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_comes_back_adopts_what_runs() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    machine.write("gone", APP);
    let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
    machine.wait("gone", "ready", |pod| first(pod).ready).await;
    machine.tasks.shutdown(Duration::from_secs(5)).await;
    std::fs::remove_file(machine.root.path().join("manifests/gone.yaml")).unwrap();
    let tasks = TaskGroup::new("again");
    let shared = Arc::new(machine.runtime.clone());
    let again =
        engine(settings(machine.root.path()), &machine.node, shared.clone(), shared, TokioClock::shared(), &tasks);
    let machine = Machine { engine: again, tasks, ..machine };
    let adopted = machine.wait("web", "adopted", |pod| first(pod).ready).await;
    assert_eq!(first(&adopted).container_id, first(&pod).container_id);
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if machine.engine.running_pods().await.len() == 1 {
            break;
        }
    }
    let running: Vec<String> = machine.engine.running_pods().await.into_iter().map(|pod| pod.metadata.name).collect();
    assert_eq!(running, ["web-node1"]);
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

/// A pod that another kubelet has started from `web.yaml`, under a uid of its own; gives the container's id.
async fn started_by_another(runtime: &FakeRuntime) -> String {
    let identity = [(labels::POD_NAME, "web-node1"), (labels::POD_NAMESPACE, "default"), (labels::POD_UID, "theirs")];
    let source = [("kubernetes.io/config.source", "file"), ("kubernetes.io/config.hash", "theirs")];
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let metadata = v1::PodSandboxMetadata {
        name: "web-node1".into(),
        uid: "theirs".into(),
        namespace: "default".into(),
        attempt: 0,
    };
    let sandbox = v1::PodSandboxConfig {
        metadata: Some(metadata),
        labels: map(&identity),
        annotations: map(&source),
        ..Default::default()
    };
    let id = runtime.run_pod_sandbox(sandbox.clone(), "").await.unwrap();
    let image = "docker.io/library/app:1".to_owned();
    let own = api_types::core_v1::Container { name: "main".into(), image: image.clone(), ..Default::default() };
    let mut named = identity.to_vec();
    named.push((labels::CONTAINER_NAME, "main"));
    let config = v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata { name: "main".into(), attempt: 0 }),
        image: Some(ImageSpec { image, ..Default::default() }),
        labels: map(&named),
        annotations: map(&[(labels::HASH, &labels::definition_hash(&own))]),
        ..Default::default()
    };
    let container = runtime.create_container(&id, config, sandbox).await.unwrap();
    runtime.start_container(&container).await.unwrap();
    container
}

#[tokio::test(start_paused = true)]
async fn static_pods_of_another_kubelet_go_on() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("manifests")).unwrap();
    write(root.path(), "web", APP);
    // The file system has a clock of its own, which is behind.
    let later = SystemClock::shared().wall() + Duration::from_secs(3600);
    let clock: base::SharedClock = Arc::new(TokioClock::starting_at(later));
    let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
    let spec = ImageSpec { image: "docker.io/library/app:1".into(), ..Default::default() };
    runtime.pull_image(spec, None, None).await.unwrap();
    let container = started_by_another(&runtime).await;
    let (node, tasks, shared) = (Arc::new(TestNode::default()), TaskGroup::new("kubelet"), Arc::new(runtime.clone()));
    let engine = engine(settings(root.path()), &node, shared.clone(), shared, clock, &tasks);
    let machine = Machine { root, node, runtime, engine, tasks };
    let pod = machine.wait("web", "adopted", |pod| first(pod).ready).await;
    assert_eq!(pod.metadata.uid, "theirs");
    tokio::time::sleep(Duration::from_secs(150)).await;
    let pod = machine.pod("web").unwrap();
    assert!(first(&pod).container_id.ends_with(&container) && first(&pod).ready, "{pod:#?}");
    assert_eq!(machine.runtime.container_ids(), [container]);
    // An edit is one as ever.
    machine.write("web", &APP.replace("{name: main", "{name: main, tty: true"));
    let edited = machine.wait("web", "edited", |pod| pod.metadata.uid != "theirs" && first(pod).ready).await;
    assert_eq!(edited.metadata.uid.len(), 32);
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_that_comes_back_starts_anew() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
    let manifest = machine.root.path().join("manifests/web.yaml");
    std::fs::remove_file(&manifest).unwrap();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if machine.engine.pods().is_empty() {
            break;
        }
    }
    machine.write("web", APP);
    let again = |again: &Pod| first(again).ready && first(again).container_id != first(&pod).container_id;
    let again = machine.wait("web", "ready again", again).await;
    assert_eq!(again.metadata.uid, pod.metadata.uid);
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn sidecars_stop_last_and_hooks_run_before() {
    let machine = Machine::start().await;
    let slow = Script { on_stop: Some((Duration::from_secs(3), 0)), ..Script::forever() };
    machine.runtime.script("main", [slow]);
    machine.write(
        "pair",
        "{terminationGracePeriodSeconds: 20, initContainers: [{name: one, image: 'docker.io/library/app:1', restartPolicy: Always}, \
         {name: two, image: 'docker.io/library/app:1', restartPolicy: Always}], containers: [{name: main, image: 'docker.io/library/app:1', \
         lifecycle: {preStop: {exec: {command: [bye]}}}}]}",
    );
    let pod = machine.wait("pair", "ready", |pod| first(pod).ready).await;
    drop(machine.runtime.take_calls());
    std::fs::remove_file(machine.root.path().join("manifests/pair.yaml")).unwrap();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if machine.engine.running_pods().await.is_empty() {
            break;
        }
    }
    let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let ids: Vec<(String, String)> =
        statuses.map(|own| (own.container_id.replace("://", " "), own.name.clone())).collect();
    let name = |id: &str| ids.iter().find(|(own, _)| own.ends_with(id)).map_or("?", |(_, name)| name).to_owned();
    let calls = machine.runtime.take_calls().into_iter();
    let calls: Vec<String> = calls
        .filter(|call| matches!(call.operation, "stop_container" | "exec_sync"))
        .map(|call| format!("{} {}", call.operation, name(&call.subject)))
        .collect();
    assert_eq!(calls, ["exec_sync main", "stop_container main", "stop_container two", "stop_container one"]);
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_given_is_refused() {
    let machine = Machine::start().await;
    *machine.node.sandbox_error.lock() = Some("can't set `spec.hostUsers: false`".to_owned());
    machine.write("users", "{hostUsers: false, containers: [{name: main, image: 'docker.io/library/app:1'}]}");
    machine.wait("users", "known", |_| true).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        machine.node.told("FailedCreatePodSandBox  Failed to create pod sandbox: can't set `spec.hostUsers: false`")
    );
    assert!(machine.engine.running_pods().await.is_empty());
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_to_end_waits_neither_for_its_image_nor_for_its_hook() {
    let hook = "{terminationGracePeriodSeconds: 5, containers: [{name: main, image: 'docker.io/library/app:1', \
                lifecycle: {postStart: {exec: {command: [hang]}}}}]}";
    let pull = "{terminationGracePeriodSeconds: 5, containers: [{name: main, image: 'docker.io/library/slow:1'}]}";
    for (name, spec, sign) in [("hook", hook, "Container started"), ("pull", pull, "Pulling image")] {
        let machine = Machine::start().await;
        machine.runtime.set_pull_time(Duration::from_secs(24 * 3600));
        machine.runtime.script_exec("hang", ExecScript { takes: Duration::from_secs(24 * 3600), ..Default::default() });
        machine.write(name, spec);
        machine.wait(name, sign, |_| machine.node.told(sign)).await;
        std::fs::remove_file(machine.root.path().join(format!("manifests/{name}.yaml"))).unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(machine.engine.active_pods().is_empty(), "{name}: {:#?}", machine.node.events.lock());
        assert!(machine.engine.running_pods().await.is_empty(), "{name}");
        machine.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_while_the_runtime_cannot_be_listed() {
    let machine = Machine::start().await;
    machine.write("early", APP);
    machine.wait("early", "ready", |pod| first(pod).ready).await;
    assert_eq!(machine.engine.ready_errors(), Vec::<String>::new());
    assert!(machine.engine.sees_runtime());
    machine.runtime.fail_always("list_containers", Some(CriError::rpc("list_containers", Code::Unknown, "stuck")));
    tokio::time::sleep(Duration::from_secs(185)).await;
    assert!(!machine.engine.sees_runtime());
    let errors = machine.engine.ready_errors();
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert!(error.starts_with("PLEG is not healthy: pleg was last seen active 3m"), "{error}");
    assert!(error.ends_with("s ago; threshold is 3m0s"), "{error}");
    machine.write("late", APP);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(machine.pod("late"), None, "nobody has looked at it");
    machine.runtime.fail_always("list_containers", None);
    machine.wait("late", "ready", |pod| first(pod).ready).await;
    let pod = machine.wait("early", "ready", |pod| first(pod).ready).await;
    assert_eq!((first(&pod).restart_count, machine.engine.ready_errors()), (0, Vec::new()));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_collected_is_told_of() {
    let machine = Machine::start().await;
    machine.runtime.script("main", [Script::exits(Duration::from_secs(1), 3)]);
    machine.write("crash", APP);
    machine.wait("crash", "backed off", |pod| first(pod).restart_count >= 2).await;
    let refused = CriError::rpc("remove_container", Code::Unknown, "device busy");
    machine.runtime.fail_always("remove_container", Some(refused));
    machine.wait("crash", "restarted", |pod| first(pod).restart_count >= 4).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(machine.node.told("Warning ContainerGCFailed  rpc error: code = Unknown desc = device busy"));
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn commands_go_to_the_container_that_runs_now() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    let pod = machine.wait("web", "ready", |pod| first(pod).ready).await;
    let id = machine.engine.container_id(&pod, "main").await.unwrap();
    assert!(first(&pod).container_id.ends_with(&id));
    assert!(machine.engine.container_id(&pod, "other").await.is_err());
    machine.runtime.exit_container(&id, 1, "Error");
    let gone = machine.engine.container_id(&pod, "main").await.unwrap_err();
    assert_eq!(gone.to_string(), "container not found (\"main\")", "though the last look at the runtime saw it run");
    machine.wait("web", "restarted", |pod| first(pod).restart_count == 1 && first(pod).ready).await;
    assert_ne!(machine.engine.container_id(&pod, "main").await.unwrap(), id);
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn an_edited_static_pod_waits_until_nothing_is_left_of_the_old_one() {
    let machine = Machine::start().await;
    machine.write("web", APP);
    let old = machine.wait("web", "ready", |pod| first(pod).ready).await;
    *machine.node.unmount_error.lock() = Some("device busy".into());
    machine.write("web", &APP.replace("Seconds: 5", "Seconds: 6"));
    machine.wait("web", "replaced", |pod| pod.metadata.uid != old.metadata.uid).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(machine.node.unmounted.lock().contains(&old.metadata.uid));
    assert!(machine.engine.running_pods().await.is_empty(), "two of one name would share what the name stands for");
    *machine.node.unmount_error.lock() = None;
    machine.wait("web", "ready again", |pod| pod.metadata.uid != old.metadata.uid && first(pod).ready).await;
    machine.tasks.shutdown(Duration::from_secs(5)).await;
}
