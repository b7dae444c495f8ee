//! Plans from tables, and the controller against the fake server, with the test as the drivers' attacher.

use std::collections::BTreeSet;

use api_machinery::value::{Value, from_value};
use api_types::core_v1::{
    AttachedVolume, CSIPersistentVolumeSource, Node, NodeCondition, ObjectReference, PersistentVolumeClaimVolumeSource,
    Taint, Volume,
};
use api_types::storage_v1::VolumeError;
use bytes::Bytes;
use client::fake::FakeServer;
use client::{Transport, TransportError};
use component_base::serving::Body;

use super::plan::{BackOff, Condition, Detach, Force, Progress, Work, plan_detach, progress};
use super::state::{Elsewhere, Entry};
use super::target::Target;
use super::*;
use crate::workloads::fixtures::{Running, at, dying, meta, pod, run_until_idle, stored};

const CLAIMS_AT: &str = "v1/persistentvolumeclaims";
const VOLUMES_AT: &str = "v1/persistentvolumes";
const NODES_AT: &str = "v1/nodes";
const PODS_AT: &str = "v1/pods";
const ATTACHMENTS_AT: &str = "storage.k8s.io/v1/volumeattachments";
const DRIVERS_AT: &str = "storage.k8s.io/v1/csidrivers";

fn target(handle: &str) -> Target {
    Target { driver: "d".into(), handle: handle.into(), volume: "v".into(), is_exclusive: true }
}

fn error(text: &str) -> Option<VolumeError> {
    Some(VolumeError { message: text.into(), ..VolumeError::default() })
}

#[tokio::test(start_paused = true)]
async fn what_an_attacher_does_is_followed() {
    let began = tokio::time::Instant::now();
    let (soon, late) = (began + Duration::from_secs(119), began + Duration::from_secs(120));
    let deadline = late;
    let (attaching, detaching) = (Work::Attaching { began }, Work::Detaching { began });
    let made = VolumeAttachment::default();
    let with = |change: fn(&mut VolumeAttachment)| {
        let mut attachment = VolumeAttachment::default();
        change(&mut attachment);
        Some(attachment)
    };
    let attached = || with(|own| own.status.attached = true);
    let refused = || with(|own| own.status.attach_error = error("no"));
    let held = || with(|own| own.status.detach_error = error("busy"));
    let going = || with(|own| (own.status.attached, own.metadata.deletion_timestamp) = (true, Some(at(1))));
    let failed = |text: &str| Some(Progress::Failed(text.into()));
    let too_late = "timed out waiting for external-attacher of d CSI driver to attach volume h";
    let too_late_to_go = "timed out waiting for external-attacher of unknown CSI driver to detach volume h";
    for (name, work, attachment, now, expected) in [
        ("nothing", Work::Idle, attached(), late, None),
        ("not seen yet", attaching, None, soon, Some(Progress::Pending(deadline))),
        ("made", attaching, Some(made.clone()), soon, Some(Progress::Pending(deadline))),
        ("attached", attaching, attached(), late, Some(Progress::Attached)),
        ("refused", attaching, refused(), soon, failed("no")),
        ("going", attaching, going(), soon, failed("volume attachment is being deleted")),
        ("too late", attaching, Some(made.clone()), late, failed(too_late)),
        ("still there", detaching, attached(), soon, Some(Progress::Pending(deadline))),
        ("gone", detaching, None, late, Some(Progress::Detached)),
        ("held", detaching, held(), soon, failed("busy")),
        ("too late to go", detaching, Some(made), late, failed(too_late_to_go)),
    ] {
        assert_eq!(progress(work, &target("h"), attachment.as_ref(), now), expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_taken_away_once_that_is_safe() {
    let since = tokio::time::Instant::now();
    let end = since + Duration::from_secs(360);
    let (early, late) = (since + Duration::from_secs(1), end + Duration::from_secs(1));
    let wait = Detach::Wait(Some(end + Duration::from_millis(1)));
    let (ill, well) = (Condition::default(), Condition { is_healthy: true, is_out_of_service: false });
    let out = Condition { is_healthy: false, is_out_of_service: true };
    for (name, in_use, node, forces, now, expected) in [
        ("unmounted", false, well, true, early, Detach::Now(None)),
        ("mounted", true, well, true, early, wait),
        ("mounted for long", true, well, true, late, Detach::Wait(None)),
        ("ill", true, ill, true, early, wait),
        ("ill for long", true, ill, true, late, Detach::Now(Some(Force::Timeout))),
        ("never by force", true, ill, false, late, Detach::Wait(None)),
        ("never by force, unmounted", false, ill, false, late, Detach::Now(None)),
        ("out of service", true, out, false, early, Detach::Now(Some(Force::OutOfService))),
        ("unmounted after long", false, well, true, late, Detach::Now(Some(Force::Timeout))),
    ] {
        assert_eq!(plan_detach(since, in_use, node, forces, now), expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_followed_by_longer_pauses() {
    let now = tokio::time::Instant::now();
    let mut back_off = BackOff::default();
    let mut pauses = Vec::new();
    for _ in 0..12 {
        back_off = back_off.after_failure(now);
        pauses.push(back_off.until(now).map(|until| (until - now).as_millis()).unwrap_or_default());
    }
    assert_eq!(pauses[..4], [500, 1000, 2000, 4000]);
    assert_eq!(pauses[11], 122_000);
    assert_eq!(back_off.until(now + Duration::from_secs(122)), None);
}

#[test]
fn a_volume_is_in_one_place_or_moves() {
    let mut state = State::default();
    let name = target("h").name();
    assert_eq!(state.elsewhere("b", &name), None);
    state.put("a", Entry::uncertain(target("h")));
    assert_eq!(state.elsewhere("b", &name), Some(Elsewhere::Moving), "it may be there");
    state.put("b", Entry::uncertain(target("h")));
    assert_eq!(state.elsewhere("b", &name), Some(Elsewhere::Moving));
    assert_eq!(state.elsewhere("a", &name), None, "where it may be on both, they do not wait for each other");
    state.remove("b", &name);
    state.put("a", Entry::attached(target("h")));
    assert_eq!(state.elsewhere("b", &name), Some(Elsewhere::Attached(vec!["a".into()])));
    assert_eq!(state.elsewhere("a", &name), None);
    assert!(!state.wait("b", &name, false));
    assert!(state.wait("b", &name, true));
    assert!(!state.wait("b", &name, true), "told once");
    assert_eq!(state.waiting_for(&name), ["b"]);
    state.stop_waiting("b", &BTreeSet::new());
    assert_eq!(state.waiting_for(&name), [] as [String; 0]);
    state.remove("a", &name);
    assert_eq!((state.elsewhere("b", &name), state.all().count()), (None, 0));
}

#[test]
fn pods_are_told_who_has_their_volume() {
    let users = |all: &[(&str, &str)]| {
        let make = |(name, namespace): &(&str, &str)| {
            let mut user = pod(name, "Running", None);
            user.metadata.namespace = (*namespace).into();
            Arc::new(user)
        };
        all.iter().map(make).collect::<Vec<_>>()
    };
    for (all, text) in [
        (&[][..], "Volume is already exclusively attached to one node and can't be attached to another"),
        (&[("a", "ns"), ("b", "ns")], "Volume is already used by pod(s) a, b"),
        (&[("a", "ns"), ("x", "y")], "Volume is already used by pod(s) a and 1 pod(s) in different namespaces"),
        (&[("x", "y"), ("z", "y")], "Volume is already used by 2 pod(s) in different namespaces"),
    ] {
        let notice = notices::multi_attach("v", &pod("p", "Pending", None), &users(all));
        assert_eq!(notice.message(), format!("Multi-Attach error for volume \"v\" {text}"));
    }
}

/// A volume of driver `d`, bound to the claim of the same name.
fn volume(name: &str, mode: &str) -> PersistentVolume {
    let mut volume = PersistentVolume { metadata: meta(name), ..PersistentVolume::default() };
    volume.metadata.namespace.clear();
    volume.spec.access_modes = vec![mode.into()];
    let csi =
        CSIPersistentVolumeSource { driver: "d".into(), volume_handle: format!("{name}-h"), ..Default::default() };
    volume.spec.persistent_volume_source.csi = Some(csi);
    let uid = format!("{name}-uid");
    volume.spec.claim_ref =
        Some(ObjectReference { namespace: "ns".into(), name: name.into(), uid, ..Default::default() });
    volume
}

fn claim(name: &str) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim { metadata: meta(name), ..PersistentVolumeClaim::default() };
    claim.spec.volume_name = name.into();
    claim.status.phase = "Bound".into();
    claim
}

/// A pod on a node with this claim.
fn user(name: &str, node: &str, claim: &str) -> Pod {
    let mut user = pod(name, "Pending", None);
    user.spec.node_name = node.into();
    let source = PersistentVolumeClaimVolumeSource { claim_name: claim.into(), ..Default::default() };
    let mut volume = Volume { name: "data".into(), ..Volume::default() };
    volume.volume_source.persistent_volume_claim = Some(source);
    user.spec.volumes.push(volume);
    user
}

fn node(name: &str) -> Node {
    let mut node = Node { metadata: meta(name), ..Node::default() };
    node.metadata.namespace.clear();
    node.metadata.annotations.insert("volumes.kubernetes.io/controller-managed-attach-detach".into(), "true".into());
    let ready = NodeCondition { type_: "Ready".into(), status: "True".into(), ..NodeCondition::default() };
    node.status.conditions.push(ready);
    node
}

/// The cluster that most tests begin with: two nodes and a volume with its claim.
fn start(mode: &str) -> Running {
    start_over(mode, FakeServer::transport)
}

/// The same, on a server that is reached over another transport.
fn start_over(mode: &str, transport: impl FnOnce(&FakeServer) -> Arc<dyn Transport>) -> Running {
    let run = Running::start_over(&[DESCRIPTOR], Settings::default(), transport);
    run.put(NODES_AT, &node("a"));
    run.put(NODES_AT, &node("b"));
    run.put(VOLUMES_AT, &volume("v", mode));
    run.put(CLAIMS_AT, &claim("v"));
    run
}

fn read<T: api_machinery::reflect::Reflect + Default>(value: &Value) -> T {
    let mut object = T::default();
    from_value(value, &mut object).unwrap();
    object
}

/// Changes an object as somebody else would.
fn change<T: client::ApiObject + api_machinery::reflect::Reflect>(
    run: &Running,
    resource: &str,
    name: &str,
    change: impl FnOnce(&mut T),
) {
    let all = run.server.objects(resource);
    let found = all.iter().find(|one| one["metadata"]["name"] == name).unwrap();
    let mut object: T = read(found);
    change(&mut object);
    run.put(resource, &object);
}

/// Nodes that have an attachment, by name.
fn attachments(run: &Running) -> Vec<String> {
    let all = run.server.objects(ATTACHMENTS_AT);
    let mut nodes: Vec<String> = all.iter().map(|one| one["spec"]["nodeName"].as_str().unwrap().to_owned()).collect();
    nodes.sort();
    nodes
}

/// What the driver's attacher does: it attaches everything.
async fn attach_all(run: &Running) {
    for one in run.server.objects(ATTACHMENTS_AT) {
        change::<VolumeAttachment>(run, ATTACHMENTS_AT, one["metadata"]["name"].as_str().unwrap(), |own| {
            own.status.attached = true;
            own.metadata.finalizers = vec!["external-attacher/d".into()];
        });
    }
    run_until_idle().await;
}

/// The attacher has detached what is being deleted.
async fn finish_detaching(run: &Running) {
    for one in run.server.objects(ATTACHMENTS_AT) {
        if !one["metadata"]["deletionTimestamp"].is_null() {
            run.server.remove(ATTACHMENTS_AT, "", one["metadata"]["name"].as_str().unwrap());
        }
    }
    run_until_idle().await;
}

/// What a node's status lists.
fn listed(run: &Running, node: &str) -> Vec<String> {
    let all = run.server.objects(NODES_AT);
    let found: Node = read(all.iter().find(|one| one["metadata"]["name"] == node).unwrap());
    found.status.volumes_attached.into_iter().map(|volume| volume.name).collect()
}

fn messages(run: &Running) -> Vec<String> {
    run.server.objects("v1/events").iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

const NAME: &str = "kubernetes.io/csi/d^v-h";

fn mounts(run: &Running, node: &str, volumes: &[&str]) {
    let volumes = volumes.iter().map(|name| (*name).to_owned()).collect();
    change::<Node>(run, NODES_AT, node, |own| own.status.volumes_in_use = volumes);
}

#[tokio::test(start_paused = true)]
async fn a_volume_comes_with_its_pod_and_goes_after_it() {
    let run = start("ReadWriteOnce");
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    let made: VolumeAttachment = read(&run.server.objects(ATTACHMENTS_AT)[0]);
    assert_eq!(made.metadata.name, component_helpers::volumes::attaching::attachment_name("d", "v-h", "a"));
    assert_eq!((made.spec.attacher.as_str(), made.spec.node_name.as_str()), ("d", "a"));
    assert_eq!(made.spec.source.persistent_volume_name.as_deref(), Some("v"));
    assert_eq!(listed(&run, "a"), [] as [String; 0], "it is not attached yet");
    attach_all(&run).await;
    assert_eq!(listed(&run, "a"), [NAME]);
    assert_eq!(messages(&run), ["AttachVolume.Attach succeeded for volume \"v\" "]);
    run.assert_shows(r#"storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi:d"} 1"#);
    run.assert_shows(
        r#"attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:d",state="actual_state_of_world"} 1"#,
    );
    mounts(&run, "a", &[NAME]);
    run.server.remove(PODS_AT, "ns", "p");
    run_until_idle().await;
    assert_eq!(run.requests("DELETE", "volumeattachments"), 0, "it is mounted still");
    mounts(&run, "a", &[]);
    run_until_idle().await;
    assert_eq!(run.requests("DELETE", "volumeattachments"), 1);
    let requests = run.server.requests();
    let place =
        |method: &str, part: &str| requests.iter().rposition(|one| one.starts_with(method) && one.contains(part));
    assert!(place("PATCH", "/nodes/a/status") < place("DELETE", "volumeattachments"), "the kubelet hears first");
    assert_eq!(listed(&run, "a"), [] as [String; 0]);
    finish_detaching(&run).await;
    run.assert_steady().await;
}

/// A kubelet that says that it mounts the volume as soon as its node's status is written.
struct Mounting {
    server: FakeServer,
    inner: Arc<dyn Transport>,
}

#[async_trait::async_trait]
impl Transport for Mounting {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let is_written = request.method() == http::Method::PATCH && request.uri().path().ends_with("/nodes/a/status");
        let answer = self.inner.send(request).await;
        let node = self.server.objects(NODES_AT).into_iter().find(|one| one["metadata"]["name"] == "a");
        if let Some(mut node) = node.filter(|_| is_written) {
            node["status"]["volumesInUse"] = vec![NAME].into();
            self.server.put(NODES_AT, node);
        }
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_mounted_at_the_last_moment_stays() {
    let run =
        start_over("ReadWriteOnce", |server| Arc::new(Mounting { server: server.clone(), inner: server.transport() }));
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    attach_all(&run).await;
    run.server.remove(PODS_AT, "ns", "p");
    run_until_idle().await;
    mounts(&run, "a", &[]);
    run_until_idle().await;
    assert_eq!(
        run.requests("DELETE", "volumeattachments"),
        0,
        "it was free when that was decided, and is not any more"
    );
    assert_eq!(listed(&run, "a"), [NAME], "it is there still");
}

#[tokio::test(start_paused = true)]
async fn a_volume_for_one_node_is_not_brought_to_two() {
    let run = start("ReadWriteOnce");
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    attach_all(&run).await;
    mounts(&run, "a", &[NAME]);
    run.put(PODS_AT, &user("q", "b", "v"));
    run_until_idle().await;
    assert_eq!(attachments(&run), ["a"]);
    let told = "Multi-Attach error for volume \"v\" Volume is already used by pod(s) p".to_owned();
    assert_eq!(messages(&run).iter().filter(|text| **text == told).count(), 1);
    run.put(PODS_AT, &dying(user("p", "a", "v")));
    mounts(&run, "a", &[]);
    run_until_idle().await;
    assert_eq!(attachments(&run), ["a"], "the attacher has to let go first");
    finish_detaching(&run).await;
    assert_eq!(attachments(&run), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_could_not_be_taken_away_is_not_brought_elsewhere() {
    let run = start("ReadWriteOnce");
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    attach_all(&run).await;
    run.put(PODS_AT, &user("q", "b", "v"));
    run.server.fail_next("DELETE", &[500; 3]);
    run.server.remove(PODS_AT, "ns", "p");
    run_until_idle().await;
    assert_eq!(attachments(&run), ["a"], "nobody knows what has become of it");
    assert_eq!(run.requests("DELETE", "volumeattachments"), 4);
    finish_detaching(&run).await;
    assert_eq!(attachments(&run), ["b"]);
}

/// Holds one creation of a VolumeAttachment back until it is let go, refused then where it is told to be.
struct Holding {
    inner: Arc<dyn Transport>,
    held: Mutex<Option<tokio::sync::oneshot::Receiver<bool>>>,
}

#[async_trait::async_trait]
impl Transport for Holding {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let is_made = request.method() == http::Method::POST && request.uri().path().ends_with("/volumeattachments");
        let held = if is_made { self.held.lock().take() } else { None };
        let is_refused = match held {
            Some(held) => held.await.unwrap_or_default(),
            None => false,
        };
        if is_refused {
            return Ok(component_base::serving::text(http::StatusCode::INTERNAL_SERVER_ERROR, "no"));
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn no_volume_waits_for_another_of_its_node() {
    for is_refused in [false, true] {
        let (let_go, held) = tokio::sync::oneshot::channel();
        let run = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
            server.put(NODES_AT, stored(&node("a")));
            server.put(NODES_AT, stored(&node("b")));
            for name in ["u", "v", "w"] {
                server.put(VOLUMES_AT, stored(&volume(name, "ReadWriteOnce")));
                server.put(CLAIMS_AT, stored(&claim(name)));
                server.put(PODS_AT, stored(&user(&format!("of-{name}"), "a", name)));
            }
            Arc::new(Holding { inner: server.transport(), held: Mutex::new(Some(held)) })
        });
        run_until_idle().await;
        let made = |run: &Running| {
            let all = run.server.objects(ATTACHMENTS_AT);
            let name = |one: &Value| one["spec"]["source"]["persistentVolumeName"].as_str().unwrap().to_owned();
            all.iter()
                .map(|one| (name(one), one["spec"]["nodeName"].as_str().unwrap().to_owned()))
                .collect::<BTreeSet<_>>()
        };
        let on_a =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "a".to_owned())).collect::<BTreeSet<_>>();
        let others = made(&run);
        assert_eq!(others.len(), 2, "the others do not wait for the one that is held: {others:?}");
        // What is being brought is taken, whether or not that has been answered.
        for name in ["u", "v", "w"] {
            run.put(PODS_AT, &user(&format!("beside-{name}"), "b", name));
        }
        run_until_idle().await;
        assert_eq!(made(&run), others);
        let_go.send(is_refused).unwrap();
        run_until_idle().await;
        let refused = messages(&run).iter().filter(|text| text.contains("attacher.Attach failed: ")).count();
        assert_eq!(refused, usize::from(is_refused), "{:?}", messages(&run));
        // What failed is tried again after a pause, and nobody else has got it meanwhile.
        tokio::time::sleep(Duration::from_secs(2)).await;
        run_until_idle().await;
        assert_eq!(made(&run), on_a(&["u", "v", "w"]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_for_many_nodes_is() {
    let run = start("ReadWriteMany");
    run.put(PODS_AT, &user("p", "a", "v"));
    run.put(PODS_AT, &user("q", "b", "v"));
    run_until_idle().await;
    assert_eq!(attachments(&run), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn volumes_are_taken_from_a_lost_node_by_force() {
    for (is_tainted, seconds, reason) in [(false, 370, "timeout"), (true, 1, "out-of-service")] {
        let run = start("ReadWriteOnce");
        run.put(PODS_AT, &user("p", "a", "v"));
        run_until_idle().await;
        attach_all(&run).await;
        mounts(&run, "a", &[NAME]);
        run.server.remove(PODS_AT, "ns", "p");
        change::<Node>(&run, NODES_AT, "a", |own| own.status.conditions.clear());
        run_until_idle().await;
        assert_eq!(run.requests("DELETE", "volumeattachments"), 0, "{reason}");
        if is_tainted {
            let taint = Taint { key: "node.kubernetes.io/out-of-service".into(), ..Taint::default() };
            change::<Node>(&run, NODES_AT, "a", |own| own.spec.taints.push(taint));
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        run_until_idle().await;
        assert_eq!(run.requests("DELETE", "volumeattachments"), 1, "{reason}");
        let family = "attach_detach_controller_attachdetach_controller_forced_detaches";
        run.assert_shows(&format!("{family}{{reason=\"{reason}\"}} 1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_process_finds_out_what_is_attached() {
    let run = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
        let mut listing = node("a");
        let name = NAME.into();
        listing.status.volumes_attached.push(AttachedVolume { name, device_path: String::new() });
        let foreign = AttachedVolume { name: "kubernetes.io/iscsi/x".into(), device_path: "/dev/x".into() };
        listing.status.volumes_attached.push(foreign);
        listing.status.volumes_in_use.push("kubernetes.io/csi/d^w-h".into());
        let attachment = |volume: &str| {
            let target = Target { handle: format!("{volume}-h"), ..target("") };
            let mut attachment = VolumeAttachment::default();
            attachment.metadata.name = target.attachment("a");
            (attachment.spec.attacher, attachment.spec.node_name) = ("d".into(), "a".into());
            attachment.spec.source.persistent_volume_name = Some(volume.into());
            attachment.status.attached = true;
            attachment
        };
        let put = |resource: &str, object: &dyn api_machinery::object::Object| server.put(resource, stored(object));
        put(NODES_AT, &listing);
        for name in ["v", "w"] {
            put(VOLUMES_AT, &volume(name, "ReadWriteOnce"));
            put(CLAIMS_AT, &claim(name));
            put(ATTACHMENTS_AT, &attachment(name));
        }
        put(PODS_AT, &user("p", "a", "v"));
        server.transport()
    });
    run_until_idle().await;
    assert_eq!(run.requests("POST", "volumeattachments"), 0, "what is there is not made again");
    assert_eq!(run.requests("PATCH", "/nodes/a/status"), 0);
    assert_eq!(run.requests("DELETE", "volumeattachments"), 0, "the other one is mounted");
    mounts(&run, "a", &[]);
    run_until_idle().await;
    assert_eq!(run.requests("DELETE", "volumeattachments"), 1, "nobody wants the other one");
    assert_eq!(listed(&run, "a"), [NAME, "kubernetes.io/iscsi/x"]);
    let left = run.server.objects(ATTACHMENTS_AT);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["spec"]["source"]["persistentVolumeName"], "v");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_tried_again() {
    let run = start("ReadWriteOnce");
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    let name = run.server.objects(ATTACHMENTS_AT)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    change::<VolumeAttachment>(&run, ATTACHMENTS_AT, &name, |own| own.status.attach_error = error("no room"));
    run_until_idle().await;
    let told = "AttachVolume.Attach failed for volume \"v\" : no room".to_owned();
    assert!(messages(&run).contains(&told), "{:?}", messages(&run));
    change::<VolumeAttachment>(&run, ATTACHMENTS_AT, &name, |own| own.status.attach_error = None);
    attach_all(&run).await;
    // The pause after the failures so far.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&run, "a"), [NAME]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_attached_any_more_is_attached_again() {
    let run = start("ReadWriteOnce");
    run.put(PODS_AT, &user("p", "a", "v"));
    run_until_idle().await;
    attach_all(&run).await;
    let name = run.server.objects(ATTACHMENTS_AT)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    run.server.remove(ATTACHMENTS_AT, "", &name);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(run.requests("POST", "volumeattachments"), 2);
    assert_eq!(listed(&run, "a"), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_attaching_is_left_alone() {
    let mut driver = CSIDriver::default();
    driver.metadata.name = "d".into();
    driver.spec.attach_required = Some(false);
    let mut unmanaged = node("a");
    unmanaged.metadata.annotations.clear();
    let mut foreign = volume("v", "ReadWriteOnce");
    foreign.spec.claim_ref.as_mut().unwrap().uid = "other".into();
    let mut unbound = claim("v");
    unbound.status.phase = "Pending".into();
    let mut over = user("p", "a", "v");
    over.status.phase = "Succeeded".into();
    let rows: [(&str, &str, &dyn api_machinery::object::Object); 5] = [
        ("its driver attaches nothing", DRIVERS_AT, &driver),
        ("its kubelet attaches itself", NODES_AT, &unmanaged),
        ("the volume is another claim's", VOLUMES_AT, &foreign),
        ("the claim is not bound", CLAIMS_AT, &unbound),
        ("the pod is over", PODS_AT, &over),
    ];
    for (name, resource, object) in rows {
        let run = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
            server.put(NODES_AT, stored(&node("a")));
            server.put(VOLUMES_AT, stored(&volume("v", "ReadWriteOnce")));
            server.put(CLAIMS_AT, stored(&claim("v")));
            server.put(PODS_AT, stored(&user("p", "a", "v")));
            server.put(resource, stored(object));
            server.transport()
        });
        run_until_idle().await;
        assert_eq!(run.count(ATTACHMENTS_AT), 0, "{name}");
    }
}
