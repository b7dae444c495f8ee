//! A server, a driver, the controllers between them, and who stands in for the rest of the control plane.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::Object;
use api_machinery::value::Value;
use api_types::core_v1::{Event, PersistentVolume, PersistentVolumeClaim, TypedLocalObjectReference};
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use api_types::storage_v1::{CSINode, CSINodeDriver, StorageClass, VolumeAttachment, VolumeAttributesClass};
use base::{CancellationToken, TaskGroup};
use client::fake::FakeServer;
use client::{Client, Patch, RateLimit};
use component_base::Gates;
use component_helpers::volumes::names::STORAGE_PROVISIONER;
use controller::{ControllerSet, Environment, Selection};
use node_api::csi::{CsiController, MemoryDriver};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::{COMMON, Driver, OF_DRIVER, Place, Settings};

const NAMESPACE: &str = "default";
const DRIVER: &str = "memory.test";
const NODE: &str = "node-0";
/// What must come about by itself does within this time.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// How long a call of the driver may take.
const CALL_LIMIT: Duration = Duration::from_secs(2);

/// Who is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Victim {
    Controller,
    Driver,
}

pub(crate) struct Bench {
    client: Client,
    pub(crate) driver: MemoryDriver,
    binder: TaskGroup,
    /// A runtime of its own: with it all connections end, as with a process.
    served: Mutex<Option<Runtime>>,
    controller: Mutex<TaskGroup>,
    directory: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let client = FakeServer::new().client();
        let (driver, binder) = (MemoryDriver::new(DRIVER), TaskGroup::new("binder"));
        let directory = tempfile::tempdir().expect("a directory");
        let (served, controller) = (Mutex::default(), Mutex::new(TaskGroup::new("nobody")));
        let bench = Self { client, driver, binder, served, controller, directory };
        bench.serve();
        bench.prepare().await;
        let client = bench.client.clone();
        bench.binder.spawn_cancellable("binder", async move {
            loop {
                bind(&client).await;
                tokio::time::sleep(LOOK).await;
            }
        });
        bench.start();
        bench
    }

    pub(crate) async fn shutdown(self) {
        self.binder.cancel();
        self.kill_controller().await;
        self.kill_driver();
    }

    async fn kill_controller(&self) {
        let killed = self.controller.lock().clone();
        killed.shutdown(PATIENCE).await;
    }

    fn kill_driver(&self) {
        let killed = self.served.lock().take();
        killed.into_iter().for_each(Runtime::shutdown_background);
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("csi.sock")
    }

    /// Starts the driver: what it has made is still there.
    fn serve(&self) {
        // That of a driver that was killed.
        let _ = std::fs::remove_file(self.socket());
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (driver, socket) = (self.driver.clone(), self.socket());
        let (tell, listens) = std::sync::mpsc::channel();
        drop(runtime.spawn(async move {
            let serve = driver.serve(&socket, CancellationToken::new()).expect("a socket");
            tell.send(()).expect("somebody waits");
            drop(serve.await);
        }));
        listens.recv().expect("it listens");
        *self.served.lock() = Some(runtime);
    }

    async fn prepare(&self) {
        let class = StorageClass {
            provisioner: DRIVER.into(),
            reclaim_policy: Some("Delete".into()),
            allow_volume_expansion: Some(true),
            volume_binding_mode: Some("Immediate".into()),
            ..named("memory")
        };
        self.client.all::<StorageClass>().create(&class).await.expect("a class");
        let gold = VolumeAttributesClass {
            driver_name: DRIVER.into(),
            parameters: [("speed".to_owned(), "high".to_owned())].into(),
            ..named("gold")
        };
        self.client.all::<VolumeAttributesClass>().create(&gold).await.expect("a class of attributes");
        let mut node: CSINode = named(NODE);
        node.spec.drivers =
            vec![CSINodeDriver { name: DRIVER.into(), node_id: "its-own-name".into(), ..CSINodeDriver::default() }];
        self.client.all::<CSINode>().create(&node).await.expect("a CSINode");
        let mut class: VolumeSnapshotClass = named("memory");
        (class.driver, class.deletion_policy) = (DRIVER.into(), "Delete".into());
        let marked = "snapshot.storage.kubernetes.io/is-default-class";
        class.metadata.annotations.insert(marked.into(), "true".into());
        self.client.all::<VolumeSnapshotClass>().create(&class).await.expect("a class of snapshots");
    }

    /// Starts the controller, and what all drivers share.
    fn start(&self) {
        let tasks = TaskGroup::new("csi-controller");
        let (socket, client) = (self.socket(), self.client.clone());
        tasks.spawn_cancellable("controller", async move {
            let driver = Driver::discover(CsiController::new(&socket, CALL_LIMIT, None)).await;
            let retry = RateLimit { base: Duration::from_millis(50), longest: Duration::from_secs(1), overall: None };
            let settings = Settings { retry, ..Settings::new(Some(driver), Place::Cluster) };
            let gates = Gates::default();
            let environment = Environment { settings: Arc::new(settings), ..Environment::new(&client) };
            let (own, common) = (
                ControllerSet::new(OF_DRIVER, &Selection::all(), &gates),
                ControllerSet::new(COMMON, &Selection::all(), &gates),
            );
            let stop = CancellationToken::new();
            let ended = tokio::join!(own.run(&environment, stop.clone()), common.run(&environment, stop));
            panic!("the controllers have ended: {:?} {:?}", ended.0.err(), ended.1.err());
        });
        *self.controller.lock() = tasks;
    }

    /// Kills somebody once the driver has been asked for something once more, and starts another.
    pub(crate) async fn kill_at_next(&self, victim: Victim, call: &str) {
        let count = || self.driver.calls().iter().filter(|own| *own == call).count();
        let before = count();
        self.until("the call comes", || async { count() > before }).await;
        match victim {
            Victim::Controller => {
                self.kill_controller().await;
                self.start();
            }
            Victim::Driver => {
                self.kill_driver();
                self.serve();
            }
        }
    }

    /// Waits until the driver has been asked for something.
    pub(crate) async fn is_asked(&self, call: &str) {
        self.until("the call comes", || async { self.driver.calls().iter().any(|own| own == call) }).await;
    }

    async fn until<F: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> F) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}; {:?}", self.driver.volumes());
            tokio::time::sleep(LOOK).await;
        }
    }

    fn claims(&self) -> client::Api<PersistentVolumeClaim> {
        self.client.namespaced(NAMESPACE)
    }

    /// A claim, of what it starts with by group, kind and name.
    pub(crate) async fn claim(&self, name: &str, size: &str, source: Option<(&str, &str, &str)>) {
        let mut claim: PersistentVolumeClaim = named(name);
        claim.metadata.namespace = NAMESPACE.into();
        claim.metadata.annotations.insert(STORAGE_PROVISIONER.into(), DRIVER.into());
        claim.spec.storage_class_name = Some("memory".into());
        claim.spec.access_modes = vec!["ReadWriteOnce".into()];
        claim.spec.resources.requests.insert("storage".into(), size.parse().expect("a size"));
        claim.spec.data_source = source.map(|(group, kind, name)| TypedLocalObjectReference {
            api_group: Some(group.to_owned()).filter(|group| !group.is_empty()),
            kind: kind.into(),
            name: name.into(),
        });
        self.claims().create(&claim).await.expect("a claim");
    }

    pub(crate) async fn bound(&self, name: &str) {
        let is_bound = || async { self.claims().get(name).await.is_ok_and(|claim| claim.status.phase == "Bound") };
        self.until(&format!("claim {name} is bound"), is_bound).await;
    }

    pub(crate) async fn delete_claim(&self, name: &str) {
        self.claims().delete(name, &DeleteOptions::default()).await.expect("a claim goes");
    }

    async fn volume_of(&self, claim: &str) -> String {
        self.claims().get(claim).await.expect("a claim").spec.volume_name
    }

    /// Attaches a claim's volume to the node.
    pub(crate) async fn attach(&self, claim: &str) {
        let mut attachment: VolumeAttachment = named(&format!("attachment-{claim}"));
        attachment.spec.attacher = DRIVER.into();
        attachment.spec.node_name = NODE.into();
        attachment.spec.source.persistent_volume_name = Some(self.volume_of(claim).await);
        let api = self.client.all::<VolumeAttachment>();
        api.create(&attachment).await.expect("an attachment");
        let name = &attachment.metadata.name;
        let is_attached = || async { api.get(name).await.is_ok_and(|found| found.status.attached) };
        self.until(&format!("{claim} is attached"), is_attached).await;
        let attached = self.driver.volumes().values().filter(|volume| volume.nodes.contains("its-own-name")).count();
        assert_eq!(attached, 1, "{:?}", self.driver.volumes());
    }

    async fn change(&self, claim: &str, spec: Value) {
        self.claims().patch(claim, &Patch::Merge(json!({"spec": spec}))).await.expect("a claim is changed");
    }

    pub(crate) async fn grow(&self, claim: &str, size: &str) {
        self.change(claim, json!({"resources": {"requests": {"storage": size}}})).await;
        let has_grown = || async {
            let status = self.claims().get(claim).await.expect("a claim").status;
            let is_done = status.allocated_resource_statuses.is_empty() && status.conditions.is_empty();
            is_done && status.capacity.get("storage").is_some_and(|has| has.to_string() == size)
        };
        self.until(&format!("{claim} has {size}"), has_grown).await;
        let volume = self.client.all::<PersistentVolume>().get(&self.volume_of(claim).await).await.expect("a volume");
        assert_eq!(volume.spec.capacity["storage"].to_string(), size);
    }

    pub(crate) async fn modify(&self, claim: &str, class: &str) {
        self.change(claim, json!({"volumeAttributesClassName": class})).await;
        let is_changed = || async {
            let status = self.claims().get(claim).await.expect("a claim").status;
            let current = status.current_volume_attributes_class_name.as_deref() == Some(class);
            current && status.modify_volume_status.is_none()
        };
        self.until(&format!("{claim} is of class {class}"), is_changed).await;
        assert!(self.driver.volumes().values().any(|volume| volume.attributes.contains_key("speed")));
    }

    /// Takes a snapshot of a claim, by the same name.
    pub(crate) async fn snapshot(&self, claim: &str) {
        let mut snapshot: VolumeSnapshot = named(claim);
        snapshot.metadata.namespace = NAMESPACE.into();
        snapshot.spec.source.persistent_volume_claim_name = Some(claim.into());
        let api = self.client.namespaced::<VolumeSnapshot>(NAMESPACE);
        api.create(&snapshot).await.expect("a snapshot");
        let is_ready = || async {
            let status = api.get(claim).await.expect("a snapshot").status;
            status.is_some_and(|status| status.ready_to_use == Some(true) && status.restore_size.is_some())
        };
        self.until(&format!("snapshot {claim} is ready"), is_ready).await;
    }

    /// Nothing was made twice.
    pub(crate) async fn there_is_one_of_each(&self, claims: &[&str]) {
        let mut expected = Vec::new();
        for claim in claims {
            expected.push(self.volume_of(claim).await);
        }
        let mut found: Vec<_> = self.driver.volumes().into_values().map(|volume| volume.name).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    /// What a claim's volume started with; nothing where it was empty.
    pub(crate) async fn origin_of(&self, claim: &str) -> String {
        let name = self.volume_of(claim).await;
        let found = self.driver.volumes().into_values().find(|volume| volume.name == name);
        found.expect("a volume").origin
    }

    pub(crate) async fn delete_snapshot(&self, name: &str) {
        let snapshots = self.client.namespaced::<VolumeSnapshot>(NAMESPACE);
        snapshots.delete(name, &DeleteOptions::default()).await.expect("a snapshot goes");
    }

    /// Takes everything away, in an order in which a user might.
    pub(crate) async fn remove(&self, claims: &[&str], snapshot: &str) {
        self.delete_snapshot(snapshot).await;
        let attachments = self.client.all::<VolumeAttachment>();
        let name = format!("attachment-{snapshot}");
        attachments.delete(&name, &DeleteOptions::default()).await.expect("an attachment goes");
        for claim in claims {
            self.delete_claim(claim).await;
        }
    }

    pub(crate) async fn nothing_is_left(&self) {
        let all = ListOptions::default();
        let is_empty = || async {
            let (volumes, claims, snapshots, contents, attachments) = (
                self.client.all::<PersistentVolume>().list(&all).await.expect("a list").items.len(),
                self.claims().list(&all).await.expect("a list").items.len(),
                self.client.all::<VolumeSnapshot>().list(&all).await.expect("a list").items.len(),
                self.client.all::<VolumeSnapshotContent>().list(&all).await.expect("a list").items.len(),
                self.client.all::<VolumeAttachment>().list(&all).await.expect("a list").items.len(),
            );
            let of_driver = self.driver.volumes().len() + self.driver.snapshots().len();
            volumes + claims + snapshots + contents + attachments + of_driver == 0
        };
        self.until("nothing is left", is_empty).await;
    }

    /// The user is told.
    pub(crate) async fn has_event(&self, about: &str, reason: &str, part: &str) {
        let is_there = || async {
            let events =
                self.client.namespaced::<Event>(NAMESPACE).list(&ListOptions::default()).await.expect("a list");
            events.items.iter().any(|event| {
                event.involved_object.name == about && event.reason == reason && event.message.contains(part)
            })
        };
        self.until(&format!("{about} has an event {reason} with {part:?}"), is_there).await;
    }
}

/// What kube-controller-manager does: claims get the volumes that name them, and volumes whose claims are gone are released.
async fn bind(client: &Client) {
    let claims = client.namespaced::<PersistentVolumeClaim>(NAMESPACE);
    let volumes = client.all::<PersistentVolume>();
    for volume in volumes.list(&ListOptions::default()).await.expect("a list").items {
        let named = volume.spec.claim_ref.clone().expect("a volume names its claim");
        let claim = claims.get_opt(&named.name).await.expect("an answer");
        let claim = claim.filter(|claim| claim.metadata.uid == named.uid);
        let phase = if claim.is_some() { "Bound" } else { "Released" };
        if let Some(claim) = claim.filter(|claim| claim.spec.volume_name.is_empty()) {
            let name = &claim.metadata.name;
            let spec = json!({"spec": {"volumeName": volume.metadata.name}});
            let size = volume.spec.capacity["storage"].to_string();
            let status = json!({"status": {"phase": "Bound", "capacity": {"storage": size}}});
            // It may be gone by now.
            let _ = claims.patch(name, &Patch::Merge(spec)).await;
            let _ = claims.patch_status(name, &Patch::Merge(status)).await;
        }
        if volume.status.phase != phase {
            let status = Patch::Merge(json!({"status": {"phase": phase}}));
            let _ = volumes.patch_status(&volume.metadata.name, &status).await;
        }
    }
}

/// An object with a name, and a uid as a server gives it.
fn named<T: Object + Default>(name: &str) -> T {
    let mut object = T::default();
    name.clone_into(&mut object.meta_mut().name);
    object.meta_mut().uid = format!("{name}-uid");
    object
}
