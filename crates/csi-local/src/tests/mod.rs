//! The driver at its socket, with mounts and loop devices that are only noted, and copies that are real.

mod block;
mod faults;
mod volumes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{SystemClock, TaskGroup};
use node_api::csi::v1::controller_server::Controller as _;
use node_api::csi::v1::node_server::Node as _;
use node_api::csi::v1::volume_capability::access_mode::Mode;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use node_api::csi::v1::*;
use parking_lot::Mutex;
use sys::exec::{Command, Daemon, Exec, ExecError, Exit, LinuxExec, Output};
use sys::mounts::{FakeMounts, LinuxMounts, Mounts, Unmount};
use sys::process::Process;
use tokio::sync::{Semaphore, mpsc};
use tonic::{Code, Request, Status};

use crate::{Driver, Machine, Settings};

const MIB: i64 = 1024 * 1024;
const CAPACITY: i64 = 100 * MIB;

/// Programs: loop devices are noted, everything else runs.
pub(super) struct Tools {
    loops: Mutex<BTreeMap<String, String>>,
    lines: Mutex<Vec<String>>,
    /// Copies begin as it has permits.
    copies: Semaphore,
}

#[async_trait::async_trait]
impl Exec for Tools {
    async fn run(&self, command: &Command) -> Result<Output, ExecError> {
        self.lines.lock().push(command.line());
        if command.program != "losetup" {
            self.copies.acquire().await.unwrap().forget();
            return LinuxExec.run(command).await;
        }
        let argument = command.args.last().unwrap().to_string_lossy().into_owned();
        let mut loops = self.loops.lock();
        let has = |option: &str| command.args.iter().any(|argument| argument == option);
        if has("--find") {
            let next = format!("/dev/loop{}", loops.len());
            return Ok(Output::ok(loops.entry(argument).or_insert(next).clone()));
        }
        if has("--associated") {
            return Ok(Output::ok(loops.get(&argument).cloned().unwrap_or_default()));
        }
        if has("--detach") {
            loops.retain(|_, device| *device != argument);
        }
        Ok(Output::ok(""))
    }

    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        LinuxExec.pipe(command, sink).await
    }

    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
        LinuxExec.spawn(daemon).await
    }
}

/// A driver on a node.
pub(super) struct Bench {
    root: tempfile::TempDir,
    tools: Arc<Tools>,
    mounts: Arc<FakeMounts>,
    driver: Driver,
}

impl Bench {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let copies = Semaphore::new(1000);
        let tools = Arc::new(Tools { loops: Mutex::default(), lines: Mutex::default(), copies });
        let mounts = Arc::new(FakeMounts::new());
        let driver = open(root.path(), &tools, &mounts);
        Self { root, tools, mounts, driver }
    }

    /// The process ends in the middle of whatever it does, and another comes.
    fn restart(&mut self) {
        self.driver = open(self.root.path(), &self.tools, &self.mounts);
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    /// What a volume holds.
    fn data(&self, id: &str) -> PathBuf {
        self.root.path().join("kept/volumes").join(id).join("data")
    }

    async fn create(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        let answer = self.driver.create_volume(Request::new(request)).await?;
        Ok(answer.into_inner().volume.unwrap())
    }

    async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest { volume_id: id.to_owned(), ..DeleteVolumeRequest::default() };
        self.driver.delete_volume(Request::new(request)).await.map(drop)
    }

    async fn stage(&self, id: &str, capability: VolumeCapability) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: id.to_owned(),
            staging_target_path: self.path("staging"),
            volume_capability: Some(capability),
            ..NodeStageVolumeRequest::default()
        };
        self.driver.node_stage_volume(Request::new(request)).await.map(drop)
    }

    async fn unstage(&self, id: &str) -> Result<(), Status> {
        let (volume_id, staging_target_path) = (id.to_owned(), self.path("staging"));
        let request = NodeUnstageVolumeRequest { volume_id, staging_target_path };
        self.driver.node_unstage_volume(Request::new(request)).await.map(drop)
    }

    async fn publish(&self, id: &str, target: &str, capability: VolumeCapability) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: id.to_owned(),
            staging_target_path: self.path("staging"),
            target_path: self.path(target),
            volume_capability: Some(capability),
            ..NodePublishVolumeRequest::default()
        };
        self.driver.node_publish_volume(Request::new(request)).await.map(drop)
    }

    async fn unpublish(&self, id: &str, target: &str) -> Result<(), Status> {
        let (volume_id, target_path) = (id.to_owned(), self.path(target));
        let request = NodeUnpublishVolumeRequest { volume_id, target_path };
        self.driver.node_unpublish_volume(Request::new(request)).await.map(drop)
    }

    async fn available(&self) -> i64 {
        let answer = self.driver.get_capacity(Request::new(GetCapacityRequest::default())).await.unwrap();
        answer.into_inner().available_capacity
    }
}

fn open(root: &Path, tools: &Arc<Tools>, mounts: &Arc<FakeMounts>) -> Driver {
    open_with(root, tools.clone(), mounts.clone())
}

fn open_with(root: &Path, exec: Arc<dyn Exec>, mounts: Arc<dyn Mounts>) -> Driver {
    let settings = Settings {
        name: "csi-local.test".into(),
        node: "node-a".into(),
        root: root.join("kept"),
        capacity_bytes: Some(CAPACITY),
        max_volumes: 7,
    };
    let (clock, tasks) = (SystemClock::shared(), TaskGroup::new("csi-local"));
    let machine = Machine { exec, mounts, clock, tasks };
    Driver::open(settings, machine).unwrap()
}

fn capability(mode: Mode, access_type: AccessType) -> VolumeCapability {
    VolumeCapability { access_mode: Some(AccessMode { mode: mode.into() }), access_type: Some(access_type) }
}

fn mount(mode: Mode) -> VolumeCapability {
    capability(mode, AccessType::Mount(MountVolume::default()))
}

fn block(mode: Mode) -> VolumeCapability {
    capability(mode, AccessType::Block(BlockVolume {}))
}

fn request(name: &str, required_bytes: i64, capability: VolumeCapability) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
        volume_capabilities: vec![capability],
        ..CreateVolumeRequest::default()
    }
}

fn directory(name: &str, required_bytes: i64) -> CreateVolumeRequest {
    request(name, required_bytes, mount(Mode::SingleNodeWriter))
}

fn code<T>(answer: Result<T, Status>) -> Code {
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

/// Serves the driver, tries every rule on it, and ends it.
async fn broken_rules(driver: Driver, root: &Path) -> Vec<String> {
    let (socket, scratch) = (root.join("csi.sock"), root.join("scratch"));
    std::fs::create_dir(&scratch).unwrap();
    let tasks = driver.machine().tasks.clone();
    let at = socket.clone();
    tasks.spawn("driver", async move { driver.serve(&at).await.unwrap() });
    while !socket.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let broken = node_api::csi::contract::broken_rules(&socket, &scratch, "contract").await;
    tasks.shutdown(Duration::from_secs(10)).await;
    for folder in ["volumes", "snapshots", "building", "removed"] {
        let left = std::fs::read_dir(root.join("kept").join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}: nothing is left on disk");
    }
    broken
}

#[tokio::test]
async fn it_keeps_every_rule_of_the_specification() {
    let bench = Bench::new();
    assert_eq!(broken_rules(bench.driver.clone(), bench.root.path()).await, Vec::<String>::new());
    assert!(bench.mounts.mounted().is_empty());
}

#[tokio::test]
async fn it_keeps_them_with_the_mounts_of_this_machine() {
    if !rustix::process::geteuid().is_root() {
        test_facts::skipped("needs root");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let driver = open_with(root.path(), Arc::new(LinuxExec), Arc::new(LinuxMounts));
    let broken = broken_rules(driver, root.path()).await;
    assert_eq!(LinuxMounts.unmount_below(root.path(), Unmount::Lazy).unwrap(), 0, "all is unmounted");
    assert_eq!(broken, Vec::<String>::new());
}
