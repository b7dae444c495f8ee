//! Devices behind local volumes: what is asked of the machine, and what comes of it on a real one.

use api_types::core_v1::Volume;
use sys::exec::{Command, Daemon, Exec, ExecError, Exit, FakeExec, LinuxExec, Output};
use sys::mounts::{FakeMounts, LinuxMounts, Mount, Mounts, Source};
use sys::process::Process;
use tokio::sync::mpsc;

use super::*;
use crate::events::RecordedEvents;
use crate::volumes::plugins::contract_tests::{block_device, pod, tools};

/// A machine whose program to mount does.
struct Machine {
    mounts: Arc<FakeMounts>,
    ran: FakeExec,
}

#[async_trait]
impl Exec for Machine {
    async fn run(&self, command: &Command) -> Result<Output, ExecError> {
        let output = self.ran.run(command).await?;
        if let (true, true, [.., source, target]) = (command.program == "mount", output.success(), &*command.args) {
            let (kind, options) = ("ext4".to_owned(), String::new());
            let what = Source::Filesystem { kind, source: source.into(), options };
            self.mounts.mount(&Mount::new(target, what)).unwrap();
        }
        Ok(output)
    }

    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        self.ran.pipe(command, sink).await
    }

    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
        self.ran.spawn(daemon).await
    }
}

struct Bench {
    dir: tempfile::TempDir,
    machine: Arc<Machine>,
    events: Arc<RecordedEvents>,
}

impl Bench {
    fn new(ran: FakeExec) -> Self {
        let machine = Machine { mounts: Arc::new(FakeMounts::new()), ran };
        Self { dir: tempfile::tempdir().unwrap(), machine: Arc::new(machine), events: Arc::default() }
    }

    /// The plugin of a kubelet that starts now.
    fn plugin(&self) -> Local {
        let mounts = self.machine.mounts.clone();
        Local(tools(self.dir.path(), mounts, self.machine.clone(), self.events.clone()))
    }

    fn mounted(&self) -> Vec<PathBuf> {
        self.machine.mounts.mounted().into_iter().map(|mount| mount.target).collect()
    }
}

fn spec(path: &Path, kind: Option<&str>, read_only: bool) -> VolumeSpec {
    let mut volume = PersistentVolume::default();
    volume.metadata.name = "pv".into();
    let source = LocalVolumeSource { path: path.display().to_string(), fs_type: kind.map(ToOwned::to_owned) };
    let backing = Backing::Local(LocalVolume::of_claim(&source, &volume));
    let claim = Some(Resolved { volume: "pv".into(), backing, block: false, group: None });
    VolumeSpec { plugin: Plugin::Local, volume: Volume::default(), claim, csi: None, read_only }
}

fn nothing() -> Output {
    Output { exit: Exit::Code(2), ..Output::ok("") }
}

#[tokio::test]
async fn a_device_is_mounted_once_and_bound_for_each_pod() {
    let Some(device) = block_device() else { return test_facts::skipped("there is no block device") };
    let bench = Bench::new(FakeExec::new().answer("blkid", nothing()));
    let (plugin, spec, name) = (bench.plugin(), spec(&device, None, false), device.display());
    let place = plugin.0.disk.layout.local_device("pv");
    let early = plugin.set_up(&pod("u1"), &spec).await.unwrap_err();
    assert_eq!(early.to_string(), format!("nothing is mounted at {}", place.display()));
    for _ in 0..2 {
        plugin.mount_device(&spec).await.unwrap();
    }
    let expected = [
        format!("blkid -p -s TYPE -s PTTYPE -o export {name}"),
        format!("mkfs.ext4 -F -m0 {name}"),
        format!("mount -t ext4 -o defaults -- {name} {}", place.display()),
    ];
    assert_eq!(bench.machine.ran.lines(), expected);
    for uid in ["u1", "u2"] {
        let path = plugin.set_up(&pod(uid), &spec).await.unwrap().path;
        let mount = bench.machine.mounts.mounted().pop().unwrap();
        assert_eq!((mount.target, mount.what), (path, Mount::bind(&place, "", sys::mounts::Depth::One).what));
    }
    // The next kubelet finds it, and takes it away once no pod is left.
    let plugin = bench.plugin();
    let found: Vec<VolumeName> = plugin.recover_devices().await.into_iter().map(|device| device.found.name).collect();
    assert_eq!(found, [VolumeName { plugin: Plugin::Local, id: "pv".into() }]);
    for uid in ["u1", "u2"] {
        plugin.tear_down(uid, "pv").await.unwrap();
    }
    assert_eq!(bench.mounted(), [place.as_path()]);
    plugin.unmount_device(&found[0]).await.unwrap();
    assert_eq!((bench.mounted(), place.exists()), (Vec::new(), false));
}

#[tokio::test]
async fn what_is_no_device_and_what_holds_something_else_is_told_of() {
    let bench = Bench::new(FakeExec::new());
    let (plugin, file) = (bench.plugin(), bench.dir.path().join("file"));
    std::fs::write(&file, "x").unwrap();
    for (path, expected) in
        [(&*file, "only directory and block device are supported"), (Path::new("/no"), "does not exist")]
    {
        let error = plugin.mount_device(&spec(path, None, false)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let Some(device) = block_device() else { return test_facts::skipped("there is no block device") };
    for (found, read_only, expected, told) in [
        (nothing(), true, "cannot mount unformatted disk", 0),
        (Output::ok("TYPE=ext4\n"), false, "mount failed: exit status 32", 0),
        (Output::ok("TYPE=xfs\n"), false, "mount failed: exit status 32", 1),
    ] {
        let bench =
            Bench::new(FakeExec::new().answer("blkid", found).answer("mount", Output::failed(32, "wrong fs type")));
        let plugin = bench.plugin();
        let place = plugin.0.disk.layout.local_device("pv");
        let error = plugin.mount_device(&spec(&device, None, read_only)).await.unwrap_err().to_string();
        let start = format!(
            "local: failed to mount device {} at {} (fstype: ext4), error {expected}",
            device.display(),
            place.display()
        );
        assert!(error.starts_with(&start), "{error}");
        assert!(!place.exists() && bench.mounted().is_empty());
        let events = bench.events.taken();
        assert_eq!(events.len(), told, "{events:?}");
        for event in events {
            assert_eq!((event.about.kind.as_str(), event.about.name.as_str()), ("PersistentVolume", "pv"));
            assert_eq!(event.reason, "FailedMountOnFilesystemMismatch");
            assert!(
                event.message.starts_with("MountVolume failed for volume \"pv\" local: failed"),
                "{}",
                event.message
            );
        }
    }
}

#[tokio::test]
async fn a_directory_stays_the_groups_that_had_it_first() {
    use std::os::unix::fs::MetadataExt as _;

    let bench = Bench::new(FakeExec::new());
    let (plugin, data) = (bench.plugin(), bench.dir.path().join("data"));
    std::fs::create_dir(&data).unwrap();
    let own = std::fs::metadata(&data).unwrap().gid();
    let text = |wanted: u32| {
        format!("The requested fsGroup is {wanted}, but the volume pv has GID {own}. The volume may not be shareable.")
    };
    // (pod, its group, what it is told)
    for (uid, group, told) in [("u1", own, None), ("u2", own, None), ("u3", own + 1, Some(text(own + 1)))] {
        let mut pod = pod(uid);
        pod.spec.security_context =
            Some(api_types::core_v1::PodSecurityContext { fs_group: Some(group.into()), ..Default::default() });
        for _ in 0..2 {
            let path = plugin.set_up(&pod, &spec(&data, None, false)).await.unwrap().path;
            assert_eq!(std::fs::metadata(path).unwrap().gid(), own, "{uid}");
        }
        let events: Vec<String> = bench
            .events
            .taken()
            .into_iter()
            .map(|event| {
                assert_eq!((event.about.uid.as_str(), event.reason.as_str()), (uid, "AlreadyMountedVolume"));
                event.message
            })
            .collect();
        assert_eq!(events, Vec::from_iter(told), "{uid}");
    }
}

/// A loop device over a file; it goes with this value.
struct LoopDevice(PathBuf);

impl LoopDevice {
    async fn new(image: &Path) -> Self {
        std::fs::File::create(image).unwrap().set_len(16 << 20).unwrap();
        let made = LinuxExec.run_ok(&Command::with("losetup", &["--find", "--show"]).arg(image)).await.unwrap();
        Self(made.text().trim().into())
    }

    async fn detach(self) {
        LinuxExec.run_ok(&Command::with("losetup", &["--detach"]).arg(&self.0)).await.unwrap();
    }
}

#[tokio::test]
async fn a_real_device_is_given_a_file_system_once_and_keeps_what_is_written() {
    let can_loop = Path::new("/dev/loop-control").exists() && rustix::process::geteuid().is_root();
    if !can_loop {
        return test_facts::skipped("needs root and loop devices");
    }
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::new(&dir.path().join("image")).await;
    let plugin =
        Local(tools(dir.path(), Arc::new(LinuxMounts), Arc::new(LinuxExec), Arc::new(RecordedEvents::default())));
    let name = VolumeName { plugin: Plugin::Local, id: "pv".into() };
    let own = spec(&device.0, None, false);
    let unformatted = plugin.mount_device(&spec(&device.0, None, true)).await.unwrap_err().to_string();
    assert!(unformatted.contains("cannot mount unformatted disk"), "{unformatted}");
    for uid in ["u1", "u2"] {
        plugin.mount_device(&own).await.unwrap();
        let file = plugin.set_up(&pod(uid), &own).await.unwrap().path.join("precious");
        if uid == "u1" {
            std::fs::write(&file, "kept").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept", "{uid}");
        plugin.tear_down(uid, "pv").await.unwrap();
        plugin.unmount_device(&name).await.unwrap();
        assert!(!file.exists());
    }
    // Whatever it is said to be, what it holds stays.
    let wrong = plugin.mount_device(&spec(&device.0, Some("xfs"), false)).await.unwrap_err().to_string();
    assert!(wrong.contains("mount failed"), "{wrong}");
    let read_only = spec(&device.0, None, true);
    plugin.mount_device(&read_only).await.unwrap();
    let path = plugin.set_up(&pod("u3"), &read_only).await.unwrap().path;
    assert_eq!(std::fs::read_to_string(path.join("precious")).unwrap(), "kept");
    assert!(std::fs::write(path.join("more"), "").is_err());
    plugin.tear_down("u3", "pv").await.unwrap();
    plugin.unmount_device(&name).await.unwrap();
    device.detach().await;
}
