//! Volumes of a driver at a real socket, for whole pods, with a small API server.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use api_types::storage_v1::CSIDriver;
use base::{CancellationToken, Rng, SystemClock, TaskGroup};
use client::fake::FakeServer;
use client::{Body, Client, InformerOptions, Informers, Transport, TransportError};
use kubelet_node::csi::CsiNodes;
use node_api::csi::fake::{FakeDriver, Fault};
use node_api::csi::v1::{VolumeUsage, volume_capability, volume_usage};
use node_api::tonic::Code;
use parking_lot::Mutex;
use sys::exec::{Exec, FakeExec};
use sys::mounts::{FakeMounts, Mounts};

use super::*;
use crate::events::RecordedEvents;
use crate::interfaces::{MountError, NodeView, Volumes as _};
use crate::metrics::KubeletMetrics;
use crate::objects::FixedObjects;
use crate::volumes::{Labels, Layout, VolumeDeps, VolumeSet};

pub(super) const DRIVER: &str = "csi.example.com";
const NAME: &str = "kubernetes.io/csi/csi.example.com^h-1";
const ALL: [Capability; 4] = [
    Capability::StageUnstageVolume,
    Capability::ExpandVolume,
    Capability::GetVolumeStats,
    Capability::SingleNodeMultiWriter,
];

/// A node whose status a test sets.
#[derive(Default)]
struct View(Mutex<Arc<Node>>);

#[async_trait]
impl NodeView for View {
    fn node(&self) -> Option<Arc<Node>> {
        Some(self.0.lock().clone())
    }

    async fn fresh_node(&self) -> Option<Arc<Node>> {
        self.node()
    }

    fn host_ips(&self) -> Vec<std::net::IpAddr> {
        Vec::new()
    }

    fn pressures(&self) -> Vec<String> {
        Vec::new()
    }

    fn shutting_down(&self) -> bool {
        false
    }
}

pub(super) struct Bench {
    dir: tempfile::TempDir,
    pub(super) server: FakeServer,
    client: Client,
    pub(super) driver: FakeDriver,
    view: Arc<View>,
    pub(super) events: Arc<RecordedEvents>,
    pub(super) csi: CsiDeps,
    labels: Labels,
    metrics: Arc<KubeletMetrics>,
    token: CancellationToken,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

impl Bench {
    /// A node with a driver, and a claim that is bound to a volume of its.
    pub(super) fn new(driver_spec: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (server, driver, token) = (FakeServer::new(), FakeDriver::new("n", &ALL), CancellationToken::new());
        server.put("storage.k8s.io/v1/csidrivers", json!({"metadata": {"name": DRIVER}, "spec": driver_spec}));
        server.put("v1/persistentvolumeclaims", claim("1Gi"));
        server.put("v1/persistentvolumes", volume("1Gi"));
        let informers = Informers::new(&server.client(), InformerOptions::default());
        let objects = Some(informers.of::<CSIDriver>());
        informers.start();
        let drivers = Drivers::new(None);
        let nodes = Arc::new(CsiNodes::new(&server.client(), "n1"));
        let counts = objects.clone().map(|objects| Counts::new(drivers.clone(), nodes, objects));
        let csi = CsiDeps { drivers, objects, counts, node_name: "n1".into() };
        let socket = dir.path().join("csi.sock");
        let served = driver.clone().serve(&socket, token.clone()).unwrap();
        TaskGroup::new("driver").spawn("driver", async move { served.await.unwrap() });
        csi.drivers.put_for_test(DRIVER, &socket);
        let (view, events) = (Arc::default(), Arc::default());
        let (labels, metrics) = (Labels::default(), KubeletMetrics::unseen());
        let client = server.client();
        Self { dir, server, client, driver, view, events, csi, labels, metrics, token }
    }

    /// The volumes of a kubelet that starts now.
    pub(super) fn start(&self) -> Arc<VolumeSet> {
        self.start_on(Arc::new(FakeMounts::new()), Arc::new(FakeExec::new()))
    }

    /// The same, with these means of the machine's.
    pub(super) fn start_on(&self, mounts: Arc<dyn Mounts>, exec: Arc<dyn Exec>) -> Arc<VolumeSet> {
        VolumeSet::new(VolumeDeps {
            layout: Layout::new(self.root()),
            mounts,
            objects: Arc::new(FixedObjects::default()),
            client: Some(self.client.clone()),
            node: self.view.clone(),
            clock: SystemClock::shared(),
            rng: Rng::seeded(1),
            csi: self.csi.clone(),
            exec,
            events: self.events.clone(),
            labels: self.labels.clone(),
            quotas: None,
            trust_bundles: None,
            certificates: None,
            metrics: self.metrics.clone(),
        })
    }

    pub(super) fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("kubelet")
    }

    /// The controller has attached the volume.
    fn attach(&self) {
        let node = json!({"metadata": {"name": "n1"}, "status": {
            "volumesInUse": [NAME], "volumesAttached": [{"name": NAME, "devicePath": ""}]}});
        *self.view.0.lock() = Arc::new(parsed(&node));
        let name = attachment_name(DRIVER, "h-1", "n1");
        let status = json!({"attached": true, "attachmentMetadata": {"disk": "7"}});
        self.server.put("storage.k8s.io/v1/volumeattachments", json!({"metadata": {"name": name}, "status": status}));
    }

    /// What is left of volumes on disk.
    fn left(&self) -> Vec<String> {
        let mut out = Vec::new();
        for place in ["pods", "plugins/kubernetes.io/csi"] {
            let mut open = vec![self.root().join(place)];
            while let Some(directory) = open.pop() {
                for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if ["vol_data.json", "mount", "globalmount"].contains(&name.as_str()) {
                        out.push(name);
                    }
                    if entry.path().is_dir() {
                        open.push(entry.path());
                    }
                }
            }
        }
        out.sort();
        out
    }
}

pub(super) fn parsed<T: api_machinery::object::Kind + Default>(value: &Value) -> T {
    api_machinery::object::from_json(value.to_string().as_bytes()).unwrap().0
}

fn claim(size: &str) -> Value {
    json!({"metadata": {"namespace": "ns", "name": "c", "uid": "c1"}, "spec": {"volumeName": "pv"},
        "status": {"phase": "Bound", "capacity": {"storage": size}, "conditions": [
            {"type": "FileSystemResizePending", "status": "True"}, {"type": "ModifyingVolume", "status": "True"}]}})
}

pub(super) fn volume(size: &str) -> Value {
    json!({"metadata": {"name": "pv"}, "spec": {
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "mountOptions": ["noatime"],
        "claimRef": {"uid": "c1"},
        "csi": {"driver": DRIVER, "volumeHandle": "h-1", "fsType": "ext4", "volumeAttributes": {"tier": "fast"}}}})
}

fn pod(uid: &str, source: Value) -> Pod {
    let mut volume = source;
    volume["name"] = "data".into();
    parsed(&json!({"metadata": {"name": "web", "namespace": "ns", "uid": uid}, "spec": {
        "serviceAccountName": "runner", "volumes": [volume],
        "containers": [{"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}}))
}

pub(super) fn claiming(uid: &str) -> Pod {
    pod(uid, json!({"persistentVolumeClaim": {"claimName": "c"}}))
}

fn inline(uid: &str) -> Pod {
    pod(uid, json!({"csi": {"driver": DRIVER, "volumeAttributes": {"tier": "slow"}}}))
}

pub(super) fn texts(error: MountError) -> Vec<String> {
    match error {
        MountError::Volumes(all) | MountError::Stale(all) => all.into_iter().map(|problem| problem.text).collect(),
        other => panic!("{other}"),
    }
}

fn file(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_claimed_volume_is_attached_staged_published_and_goes_the_same_way() {
    let bench = Bench::new(json!({"podInfoOnMount": true}));
    let set = bench.start();
    let first = claiming("u1");
    let waiting = tokio::time::timeout(Duration::from_millis(300), set.mount(&first));
    assert!(waiting.await.is_err(), "it waits until it is attached");
    assert!(bench.driver.calls().is_empty());
    assert_eq!(set.volumes_in_use().unwrap(), [NAME]);
    bench.attach();
    set.mount(&claiming("u1")).await.unwrap();
    set.mount(&claiming("u2")).await.unwrap();
    set.mount(&claiming("u2")).await.unwrap();
    assert_eq!(bench.driver.calls(), ["stage h-1", "publish h-1", "publish h-1"]);

    let stage = bench.driver.last_stage().unwrap();
    let device = Layout::new(bench.root()).csi_device(DRIVER, "h-1");
    assert_eq!(stage.staging_target_path, device.join("globalmount").display().to_string());
    assert_eq!((stage.publish_context["disk"].as_str(), stage.volume_context.len()), ("7", 1));
    let publish = bench.driver.last_publish().unwrap();
    let place = bench.root().join("pods/u2/volumes/kubernetes.io~csi/pv");
    assert_eq!(publish.target_path, place.join("mount").display().to_string());
    assert_eq!(publish.staging_target_path, stage.staging_target_path);
    let context = |name: &str| publish.volume_context[&format!("csi.storage.k8s.io/{name}")].clone();
    let told = ["pod.name", "pod.namespace", "pod.uid", "serviceAccount.name", "ephemeral"].map(context);
    assert_eq!(told, ["web", "ns", "u2", "runner", "false"]);
    let capability = publish.volume_capability.unwrap();
    assert_eq!(capability.access_mode.unwrap().mode(), volume_capability::access_mode::Mode::SingleNodeMultiWriter);
    let Some(volume_capability::AccessType::Mount(mount)) = capability.access_type else { panic!() };
    assert_eq!((mount.fs_type.as_str(), mount.mount_flags), ("ext4", vec!["noatime".to_owned()]));
    let expected = json!({"specVolID": "pv", "volumeHandle": "h-1", "driverName": DRIVER, "nodeName": "n1",
        "volumeLifecycleMode": "Persistent", "attachmentID": attachment_name(DRIVER, "h-1", "n1"),
        "seLinuxMountContext": ""});
    assert_eq!(file(&place.join("vol_data.json")), expected);
    assert_eq!(set.mounted("u2", "data").unwrap().path, place.join("mount"));

    set.unmount("u1").await.unwrap();
    assert_eq!(bench.driver.staged().len(), 1, "the other pod has it");
    set.unmount("u2").await.unwrap();
    let gone = bench.driver.calls().split_off(3);
    assert_eq!(gone, ["unpublish h-1", "unpublish h-1", "unstage h-1"]);
    assert_eq!((set.volumes_in_use().unwrap().len(), bench.left()), (0, Vec::new()));
}

#[tokio::test]
async fn the_next_kubelet_takes_over_what_is_there() {
    let bench = Bench::new(json!({}));
    bench.attach();
    bench.start().mount(&claiming("u1")).await.unwrap();
    let next = bench.start();
    assert_eq!(next.volumes_in_use(), None, "not before it has looked");
    next.mount(&claiming("u1")).await.unwrap();
    assert_eq!(
        bench.driver.calls().split_off(2),
        ["stage h-1", "publish h-1"],
        "done again: it may have been broken off"
    );
    assert_eq!(next.volumes_in_use().unwrap(), [NAME]);

    let last = bench.start();
    last.clean_orphans(&Default::default()).await;
    assert_eq!(bench.driver.calls().split_off(4), ["unpublish h-1", "unstage h-1"], "the pod went meanwhile");
    assert_eq!((last.volumes_in_use().unwrap().len(), bench.left()), (0, Vec::new()));
}

#[tokio::test]
async fn a_volume_that_only_is_staged_is_found_too() {
    let bench = Bench::new(json!({}));
    bench.attach();
    bench.driver.fail_next("publish", Fault::Refuse(Code::Internal, "no"));
    bench.start().mount(&claiming("u1")).await.unwrap_err();
    let next = bench.start();
    next.clean_orphans(&Default::default()).await;
    assert_eq!((bench.driver.staged().len(), bench.left()), (0, Vec::new()));
}

/// The step that goes wrong, how, what the pod's event says, and what is left on disk then.
type FaultCase = (&'static str, Fault, &'static str, &'static [&'static str]);

#[tokio::test]
async fn what_goes_wrong_is_told_and_leaves_nothing_in_the_end() {
    let staged: &[&str] = &["globalmount", "vol_data.json"];
    let published: &[&str] = &["globalmount", "mount", "vol_data.json", "vol_data.json"];
    let cases: [FaultCase; 5] = [
        (
            "stage",
            Fault::Refuse(Code::Internal, "no disk"),
            "MountVolume.MountDevice failed for volume \"pv\" : rpc error: code = Internal desc = no disk",
            &[],
        ),
        (
            "stage",
            Fault::Lie(Code::DeadlineExceeded),
            "MountVolume.MountDevice failed for volume \"pv\" : rpc error: code = DeadlineExceeded desc = it was done",
            staged,
        ),
        (
            "publish",
            Fault::Refuse(Code::InvalidArgument, "what?"),
            "MountVolume.SetUp failed for volume \"pv\" : rpc error: code = InvalidArgument desc = what?",
            staged,
        ),
        (
            "publish",
            Fault::Lie(Code::Aborted),
            "MountVolume.SetUp failed for volume \"pv\" : rpc error: code = Aborted desc = it was done",
            published,
        ),
        (
            "publish",
            Fault::Lie(Code::Unknown),
            "MountVolume.SetUp failed for volume \"pv\" : rpc error: code = Unknown desc = it was done",
            staged,
        ),
    ];
    for (method, fault, expected, left) in cases {
        let bench = Bench::new(json!({"attachRequired": false}));
        let set = bench.start();
        bench.driver.fail_next(method, fault.clone());
        let error = set.mount(&claiming("u1")).await.unwrap_err();
        assert_eq!(texts(error), [expected]);
        assert_eq!(bench.left(), left, "{method} {fault:?}");
        set.mount(&claiming("u1")).await.unwrap();
        set.unmount("u1").await.unwrap();
        assert_eq!((bench.driver.staged().len(), bench.left()), (0, Vec::new()), "{method} {fault:?}");
    }
}

#[tokio::test]
async fn a_driver_that_hangs_holds_up_its_volume_alone_and_is_asked_to_undo_what_it_may_have_done() {
    let bench = Bench::new(json!({"attachRequired": false, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}));
    let set = bench.start();
    bench.driver.fail_next("publish", Fault::Hang);
    let first = claiming("u1");
    let hanging = tokio::time::timeout(Duration::from_millis(300), set.mount(&first));
    assert!(hanging.await.is_err());
    set.mount(&inline("u2")).await.unwrap();
    set.unmount("u1").await.unwrap();
    assert!(bench.driver.calls().contains(&"unpublish h-1".to_owned()));
    set.unmount("u2").await.unwrap();
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[tokio::test]
async fn volumes_wait_for_their_driver() {
    let mut bench = Bench::new(json!({"attachRequired": false}));
    bench.start().mount(&claiming("u1")).await.unwrap();
    bench.csi.drivers = Drivers::new(None);
    let set = bench.start();
    let why = "driver name csi.example.com not found in the list of registered CSI drivers";
    let error = set.mount(&claiming("u1")).await.unwrap_err();
    let step = "attacher.MountDevice failed to create newCsiDriverClient";
    assert_eq!(
        texts(error),
        [format!("MountVolume.MountDevice failed for volume \"pv\" : kubernetes.io/csi: {step}: {why}")]
    );
    let error = set.unmount("u1").await.unwrap_err();
    assert_eq!(error.to_string(), format!("kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: {why}"));
    assert!(bench.left().contains(&"mount".to_owned()), "nothing is removed behind the driver's back");
    bench.csi.drivers.put_for_test(DRIVER, &bench.dir.path().join("csi.sock"));
    set.unmount("u1").await.unwrap();
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[tokio::test]
async fn inline_volumes_live_as_long_as_their_pod() {
    let modes = json!({"volumeLifecycleModes": ["Ephemeral"], "podInfoOnMount": true});
    let bench = Bench::new(modes);
    let set = bench.start();
    set.mount(&inline("u1")).await.unwrap();
    let publish = bench.driver.last_publish().unwrap();
    assert!(publish.volume_id.starts_with("csi-") && publish.volume_id.len() == 68, "{}", publish.volume_id);
    assert_eq!(publish.volume_context["csi.storage.k8s.io/ephemeral"], "true");
    assert_eq!((publish.volume_context["tier"].as_str(), publish.staging_target_path.as_str()), ("slow", ""));
    assert_eq!(set.volumes_in_use().unwrap(), Vec::<String>::new());
    set.unmount("u1").await.unwrap();
    assert_eq!(
        bench.driver.calls(),
        [format!("publish {}", publish.volume_id), format!("unpublish {}", publish.volume_id)]
    );
    assert_eq!(bench.left(), Vec::<String>::new());

    let bench = Bench::new(json!({}));
    let error = bench.start().mount(&inline("u1")).await.unwrap_err();
    let why = "volume mode \"Ephemeral\" not supported by driver csi.example.com (only supports [\"Persistent\"])";
    assert!(error.to_string().ends_with(why), "{error}");
    bench.server.remove("storage.k8s.io/v1/csidrivers", "", DRIVER);
    let fresh = Informers::new(&bench.server.client(), InformerOptions::default());
    let csi = CsiDeps { objects: Some(fresh.of::<CSIDriver>()), ..bench.csi.clone() };
    fresh.start();
    let facts = csi.facts(DRIVER).await.unwrap();
    let volume = CsiVolume::inline(&inline("u1"), "data", &Default::default()).with(facts);
    assert!(volume.check_life().unwrap_err().to_string().ends_with("(no CSIDriver object)"));
}

#[tokio::test]
async fn a_volume_that_has_grown_grows_on_the_node() {
    let bench = Bench::new(json!({"attachRequired": false}));
    bench.server.put("v1/persistentvolumes", volume("2Gi"));
    let set = bench.start();
    bench.driver.fail_next("expand", Fault::Refuse(Code::Internal, "busy"));
    set.mount(&claiming("u1")).await.unwrap();
    let told: Vec<_> = bench.events.taken().into_iter().map(|event| (event.about.kind, event.reason)).collect();
    let failed = |kind: &str| (kind.to_owned(), "VolumeResizeFailed".to_owned());
    assert_eq!(told, [failed("Pod"), failed("PersistentVolumeClaim")]);
    tokio::time::sleep(Duration::from_millis(600)).await;
    set.mount(&claiming("u1")).await.unwrap();
    let request = bench.driver.last_expand().unwrap();
    assert_eq!(request.capacity_range.unwrap().required_bytes, 2 << 30);
    let event = bench.events.taken().remove(0);
    let text = "MountVolume.NodeExpandVolume succeeded for volume \"pv\" n1";
    assert_eq!((event.reason.as_str(), event.message.as_str()), ("FileSystemResizeSuccessful", text));
    let status = bench.server.objects("v1/persistentvolumeclaims").remove(0)["status"].take();
    assert_eq!(status["capacity"]["storage"], "2Gi");
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1, "{status}");
    assert!(status["allocatedResourceStatuses"].get("storage").is_none_or(Value::is_null));
    set.mount(&claiming("u1")).await.unwrap();
    let grown = bench.driver.calls().into_iter().filter(|call| call.starts_with("expand")).count();
    assert_eq!(grown, 2, "once is enough");
}

/// Has somebody else write a condition of the claim before the first patch of it.
struct Meanwhile {
    inner: Arc<dyn Transport>,
    server: FakeServer,
    is_done: AtomicBool,
}

#[async_trait]
impl Transport for Meanwhile {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.method() == http::Method::PATCH && !self.is_done.swap(true, Ordering::Relaxed) {
            let mut changed = claim("1Gi");
            changed["status"]["conditions"][0] = json!({"type": "VolumeUnhealthy", "status": "True"});
            self.server.put("v1/persistentvolumeclaims", changed);
        }
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test]
async fn what_others_say_of_a_claim_stays_when_its_volume_has_grown() {
    let mut bench = Bench::new(json!({"attachRequired": false}));
    bench.server.put("v1/persistentvolumes", volume("2Gi"));
    let (inner, server) = (bench.server.transport(), bench.server.clone());
    bench.client = bench.server.client_over(Arc::new(Meanwhile { inner, server, is_done: AtomicBool::new(false) }));
    let set = bench.start();
    drop(set.mount(&claiming("u1")).await);
    tokio::time::sleep(Duration::from_millis(600)).await;
    set.mount(&claiming("u1")).await.unwrap();
    let status = bench.server.objects("v1/persistentvolumeclaims").remove(0)["status"].take();
    assert_eq!(status["capacity"]["storage"], "2Gi");
    let conditions: Vec<&Value> = status["conditions"].as_array().unwrap().iter().map(|found| &found["type"]).collect();
    assert_eq!(conditions, ["VolumeUnhealthy", "ModifyingVolume"]);
}

#[tokio::test]
async fn the_driver_says_how_full_its_volumes_are() {
    let bench = Bench::new(json!({"attachRequired": false}));
    let usage =
        |unit: volume_usage::Unit, total, available| VolumeUsage { available, total, used: 0, unit: unit.into() };
    bench.driver.set_usage(vec![usage(volume_usage::Unit::Bytes, 100, 40), usage(volume_usage::Unit::Inodes, 7, -5)]);
    let set = bench.start();
    let pod = Arc::new(claiming("u1"));
    set.mount(&pod).await.unwrap();
    let rooms = set.claimed_rooms(&[pod]).await;
    let room = rooms[0].room;
    assert_eq!((room.capacity, room.available, room.inodes, room.inodes_free), (100, 40, 7, 0));
    assert_eq!((rooms[0].namespace.as_str(), rooms[0].claim.as_str()), ("ns", "c"));
}

#[tokio::test]
async fn a_driver_that_watches_over_its_volumes_says_how_they_are() {
    for (watches, expected) in [(false, None), (true, Some((true, "disk on fire")))] {
        let bench = Bench::new(json!({"attachRequired": false}));
        bench
            .driver
            .set_condition(node_api::csi::v1::VolumeCondition { abnormal: true, message: "disk on fire".into() });
        if watches {
            bench.driver.add_capability(Capability::VolumeCondition);
        }
        let set = bench.start();
        let pod = Arc::new(claiming("u1"));
        set.mount(&pod).await.unwrap();
        let rooms = set.claimed_rooms(&[pod]).await;
        let told = rooms[0].condition.as_ref().map(|told| (told.is_abnormal, told.message.as_str()));
        assert_eq!(told, expected);
    }
}

#[test]
fn policies_say_which_volumes_are_given_to_the_group() {
    let cases = [
        (None, "ext4", &["ReadWriteOnce"][..], true),
        (None, "ext4", &["ReadWriteOncePod"], true),
        (None, "ext4", &["ReadWriteMany"], false),
        (None, "", &["ReadWriteOnce"], false),
        (Some("ReadWriteOnceWithFSType"), "ext4", &["ReadWriteOnce", "ReadWriteMany"], true),
        (Some("File"), "", &["ReadWriteMany"], true),
        (Some("None"), "ext4", &["ReadWriteOnce"], false),
    ];
    for (policy, fs_type, modes, expected) in cases {
        let mut driver = CSIDriver::default();
        driver.spec.fs_group_policy = policy.map(str::to_owned);
        let mut pv: api_types::core_v1::PersistentVolume = parsed(&volume("1Gi"));
        pv.spec.access_modes = modes.iter().map(ToString::to_string).collect();
        let mut source = pv.spec.persistent_volume_source.csi.clone().unwrap();
        source.fs_type = fs_type.to_owned();
        let made = CsiVolume::of_claim(&source, &pv, &parsed(&claim("1Gi"))).with(Facts::of(Some(&driver)));
        assert_eq!(made.takes_group(), expected, "{policy:?} {fs_type} {modes:?}");
    }
}

#[tokio::test]
async fn who_has_as_many_volumes_as_fit_is_told_so() {
    let refused = |code: i32| {
        let name = attachment_name(DRIVER, "h-1", "n1");
        let error = json!({"message": "no room", "errorCode": code});
        json!({"metadata": {"name": name}, "status": {"attached": false, "attachError": error}})
    };
    let asks = json!({"nodeAllocatableUpdatePeriodSeconds": 60});
    let exhausted = 8;
    for (spec, attachment, expected) in [
        (asks.clone(), None, false),
        (asks.clone(), Some(refused(13)), false),
        (json!({}), Some(refused(exhausted)), false),
        (asks, Some(refused(exhausted)), true),
    ] {
        let bench = Bench::new(spec.clone());
        let set = bench.start();
        let pod = claiming("u1");
        assert!(tokio::time::timeout(Duration::from_millis(100), set.mount(&pod)).await.is_err());
        if let Some(attachment) = &attachment {
            bench.server.put("storage.k8s.io/v1/volumeattachments", attachment.clone());
        }
        let message = "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[data], unattached \
                       volumes=[data], failed to process volumes=[]: context deadline exceeded";
        assert_eq!(set.at_limit(&pod).await, expected.then(|| message.to_owned()), "{spec} {attachment:?}");
    }
}

/// A pod that wants a label of this level; empty for none.
fn labelled(uid: &str, level: &str) -> Pod {
    let mut pod = claiming(uid);
    let context = json!({"seLinuxOptions": {"level": level}});
    let other: Pod = parsed(&json!({"spec": {"securityContext": context}}));
    pod.spec.security_context = other.spec.security_context;
    pod
}

fn label(level: &str) -> String {
    format!("system_u:object_r:container_file_t:{level}")
}

/// A driver that mounts with labels, for a volume of an access mode.
fn labelling(mode: &str, every_mode: bool) -> Bench {
    let mut bench = Bench::new(json!({"attachRequired": false, "seLinuxMount": true}));
    bench.labels = Labels::of_test(every_mode);
    let mut own = volume("1Gi");
    own["spec"]["accessModes"] = json!([mode]);
    bench.server.put("v1/persistentvolumes", own);
    bench
}

#[tokio::test]
async fn a_volume_of_one_pod_is_mounted_with_the_label_of_its_files() {
    for (mode, short, every_mode, has_label) in [
        ("ReadWriteOncePod", "RWOP", false, true),
        ("ReadWriteOnce", "RWO", false, false),
        ("ReadWriteOnce", "RWO", true, true),
    ] {
        let bench = labelling(mode, every_mode);
        let set = bench.start();
        assert_eq!(set.at_limit(&labelled("u1", "s0:c1,c2")).await, None);
        set.mount(&labelled("u1", "s0:c1,c2")).await.unwrap();
        set.mount(&labelled("u1", "s0:c1,c2")).await.unwrap();
        let option = has_label.then(|| format!("context=\"{}\"", label("s0:c1,c2")));
        let expected: Vec<String> = ["noatime".to_owned()].into_iter().chain(option).collect();
        let (stage, publish) = (bench.driver.last_stage().unwrap(), bench.driver.last_publish().unwrap());
        for capability in [stage.volume_capability, publish.volume_capability] {
            let Some(volume_capability::AccessType::Mount(mount)) = capability.unwrap().access_type else { panic!() };
            assert_eq!(mount.mount_flags, expected);
        }
        assert_eq!(set.mounted("u1", "data").unwrap().relabel, !has_label);
        let kept = if has_label { label("s0:c1,c2") } else { String::new() };
        let layout = Layout::new(bench.root());
        for place in [layout.csi_device(DRIVER, "h-1"), layout.volume("u1", Plugin::Csi, "pv")] {
            assert_eq!(file(&place.join("vol_data.json"))["seLinuxMountContext"], kept.as_str());
        }

        let second = set.mount(&labelled("u2", "s0:c3")).await;
        let plugin = format!("kubernetes.io/csi:{DRIVER}");
        let metrics = &bench.metrics;
        let families = [&metrics.volume_label_errors, &metrics.volume_label_warnings, &metrics.labelled_volumes];
        let counts = families.map(|family| family.with(&[short, &plugin]).get());
        if has_label {
            let (one, other) = (label("s0:c1,c2"), label("s0:c3"));
            let conflict = format!("conflicting SELinux labels of volume pv: {one:?} and {other:?}");
            let told = texts(second.unwrap_err());
            assert!(told[0].ends_with(&format!("failed to process volumes=[data]: {conflict}")), "{told:?}");
            assert_eq!(counts, [1.0, 0.0, 1.0]);
        } else {
            second.unwrap();
            assert_eq!(counts, [0.0, 1.0, 0.0]);
        }
    }
}

#[tokio::test]
async fn who_wants_another_label_waits_until_the_device_is_unmounted() {
    let bench = labelling("ReadWriteOncePod", false);
    let set = bench.start();
    set.mount(&labelled("u1", "s0:c1")).await.unwrap();
    bench.driver.fail_next("unstage", Fault::Refuse(Code::Internal, "busy"));
    set.unmount("u1").await.unwrap();
    let next = bench.start();
    for (set, case) in [(&set, "the same kubelet"), (&next, "the next")] {
        for level in ["s0:c2", ""] {
            let told = texts(set.mount(&labelled("u2", level)).await.unwrap_err());
            assert!(told[0].contains("conflicting SELinux labels of volume pv"), "{case} {level:?}: {told:?}");
        }
    }
    next.mount(&labelled("u3", "s0:c1")).await.unwrap();
    next.unmount("u3").await.unwrap();
    next.mount(&labelled("u2", "s0:c2")).await.unwrap();
}
