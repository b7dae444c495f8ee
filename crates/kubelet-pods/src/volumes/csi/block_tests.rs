//! A driver's volume as a block device, for whole pods.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;

use base::{SystemClock, TaskGroup};
use node_api::csi::fake::Fault;
use node_api::csi::v1::controller_server::Controller as _;
use node_api::csi::v1::volume_capability::access_mode::Mode;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume};
use node_api::csi::v1::{CapacityRange, CreateVolumeRequest, VolumeCapability};
use node_api::tonic::{Code, Request};
use serde_json::{Value, json};
use sys::exec::{Command, Exec as _, LinuxExec};
use sys::mounts::{LinuxMounts, Mounts as _, Unmount};

use super::super::tests::{Bench, DRIVER, claiming, parsed, texts, volume};
use super::*;
use crate::interfaces::{MountError, Volumes as _};
use crate::volumes::{VolumeSet, devices_of};

fn bench() -> Bench {
    let bench = Bench::new(json!({"attachRequired": false}));
    let mut block = volume("1Gi");
    block["spec"]["volumeMode"] = "Block".into();
    bench.server.put("v1/persistentvolumes", block);
    bench
}

/// A pod with the claim as a device.
fn pod(uid: &str) -> Pod {
    let source = json!({"name": "data", "persistentVolumeClaim": {"claimName": "c"}});
    parsed(&json!({"metadata": {"name": "web", "namespace": "ns", "uid": uid}, "spec": {"volumes": [source],
        "containers": [{"name": "main", "volumeDevices": [{"name": "data", "devicePath": "/dev/data"}]}]}}))
}

/// The one device of a pod's container.
fn device(set: &VolumeSet, pod: &Pod) -> node_api::cri::v1::Device {
    devices_of(set, pod, &pod.spec.containers[0]).unwrap().remove(0)
}

/// Files and links below the kubelet's root.
fn left(bench: &Bench) -> Vec<String> {
    let mut out = Vec::new();
    let mut open = vec![bench.root()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                out.push(entry.path().display().to_string());
            }
        }
    }
    out
}

#[tokio::test]
async fn it_is_staged_published_and_mapped_and_goes_the_same_way() {
    let bench = bench();
    let set = bench.start();
    let (first, second) = (pod("u1"), pod("u2"));
    assert!(devices_of(&set, &first, &first.spec.containers[0]).is_err(), "not before it is there");
    set.mount(&first).await.unwrap();
    set.mount(&second).await.unwrap();
    set.mount(&second).await.unwrap();
    assert_eq!(bench.driver.calls(), ["stage h-1", "publish h-1", "publish h-1"]);
    let root = bench.root().join("plugins/kubernetes.io/csi/volumeDevices");
    let (stage, publish) = (bench.driver.last_stage().unwrap(), bench.driver.last_publish().unwrap());
    assert_eq!(stage.staging_target_path, root.join("staging/pv").display().to_string());
    assert_eq!(publish.target_path, root.join("publish/pv/u2").display().to_string());
    assert_eq!(publish.staging_target_path, stage.staging_target_path);
    for capability in [stage.volume_capability, publish.volume_capability] {
        assert!(matches!(capability.unwrap().access_type, Some(AccessType::Block(_))));
    }
    let given = device(&set, &second);
    let link = bench.root().join("pods/u2/volumeDevices/kubernetes.io~csi/pv");
    assert_eq!((given.container_path.as_str(), given.permissions.as_str()), ("/dev/data", "mrw"));
    assert_eq!(given.host_path, link.display().to_string());
    assert_eq!(std::fs::read_link(&link).unwrap(), root.join("publish/pv/u2"));
    assert!(root.join("pv/dev/u2").exists() && root.join("pv/data/vol_data.json").exists());
    let told: Vec<String> =
        bench.events.taken().into_iter().map(|event| format!("{} {}", event.reason, event.message)).collect();
    let text = format!(
        "SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume \"pv\" globalMapPath {:?}",
        root.join("pv/dev")
    );
    assert_eq!((told.len(), &told[0]), (4, &text), "once for each pod");

    set.unmount("u1").await.unwrap();
    assert_eq!(bench.driver.staged().len(), 1, "the other pod has it");
    // The next kubelet knows of it though the pod is gone.
    let next = bench.start();
    next.clean_orphans(&Default::default()).await;
    assert_eq!(bench.driver.calls().split_off(3), ["unpublish h-1", "unpublish h-1", "unstage h-1"]);
    assert_eq!(left(&bench), Vec::<String>::new());
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_leaves_nothing() {
    for (method, step) in [("stage", "SetUpDevice"), ("publish", "MapPodDevice")] {
        let bench = bench();
        let set = bench.start();
        bench.driver.fail_next(method, Fault::Refuse(Code::Internal, "no disk"));
        let error = set.mount(&pod("u1")).await.unwrap_err();
        let MountError::Volumes(problems) = &error else { panic!("{error:?}") };
        assert_eq!(problems[0].reason, "FailedMapVolume");
        let text = format!("MapVolume.{step} failed for volume \"pv\" : rpc error: code = Internal desc = no disk");
        assert_eq!(problems[0].text, text);
        set.unmount("u1").await.unwrap();
        assert_eq!(left(&bench), Vec::<String>::new(), "{method}");
    }
}

#[tokio::test]
async fn it_is_no_directory_and_a_directory_is_no_device() {
    let block = bench();
    let error = texts(block.start().mount(&claiming("u1")).await.unwrap_err()).remove(0);
    assert!(error.ends_with("volume data has volumeMode Block, but is specified in volumeMounts"), "{error}");
    let plain = Bench::new(json!({"attachRequired": false}));
    let error = texts(plain.start().mount(&pod("u1")).await.unwrap_err()).remove(0);
    assert!(error.ends_with("volume data has volumeMode Filesystem, but is specified in volumeDevices"), "{error}");
}

#[tokio::test]
async fn a_device_that_has_grown_is_told_to_the_driver_where_it_is_published() {
    let bench = bench();
    let mut grown = bench.server.objects("v1/persistentvolumes").remove(0);
    grown["spec"]["capacity"]["storage"] = Value::from("2Gi");
    bench.server.put("v1/persistentvolumes", grown);
    bench.start().mount(&pod("u1")).await.unwrap();
    let asked = bench.driver.last_expand().unwrap();
    assert!(asked.volume_path.ends_with("volumeDevices/publish/pv/u1"), "{}", asked.volume_path);
    assert!(asked.staging_target_path.ends_with("volumeDevices/staging/pv"));
}

#[tokio::test]
async fn a_device_that_was_published_and_not_mapped_goes_with_the_next_kubelet() {
    let bench = bench();
    let set = bench.start();
    bench.driver.fail_next("publish", Fault::Lie(Code::Unavailable));
    set.mount(&pod("u1")).await.unwrap_err();
    drop(set);
    bench.start().clean_orphans(&BTreeSet::new()).await;
    assert_eq!(bench.driver.calls(), ["stage h-1", "publish h-1", "unpublish h-1", "unstage h-1"]);
    assert_eq!(left(&bench), Vec::<String>::new());
}

/// A volume of csi-local behind the bench's claim, and the tasks that serve it.
async fn local_volume(bench: &Bench) -> TaskGroup {
    let root = bench.root().parent().unwrap().join("csi-local");
    let (socket, tasks) = (root.with_extension("sock"), TaskGroup::new("csi-local"));
    let settings = csi_local::Settings {
        name: DRIVER.to_owned(),
        node: "n1".to_owned(),
        root,
        capacity_bytes: None,
        max_volumes: 0,
    };
    let (exec, mounts) = (Arc::new(LinuxExec), Arc::new(LinuxMounts));
    let machine = csi_local::Machine { exec, mounts, clock: SystemClock::shared(), tasks: tasks.clone() };
    let driver = csi_local::Driver::open(settings, machine).unwrap();
    let capability = VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    };
    let wish = CreateVolumeRequest {
        name: "pv".to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        volume_capabilities: vec![capability],
        ..CreateVolumeRequest::default()
    };
    let made = driver.create_volume(Request::new(wish)).await.unwrap().into_inner().volume.unwrap();
    let mut volume = bench.server.objects("v1/persistentvolumes").remove(0);
    volume["spec"]["csi"]["volumeHandle"] = made.volume_id.into();
    bench.server.put("v1/persistentvolumes", volume);
    let at = socket.clone();
    tasks.spawn("driver", async move { driver.serve(&at).await.unwrap() });
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    bench.csi.drivers.put_for_test(DRIVER, &socket);
    tasks
}

/// The files below the bench's directory that loop devices keep open.
async fn held(bench: &Bench) -> Vec<String> {
    let list = Command::with("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
    let text = LinuxExec.run_ok(&list).await.unwrap().text();
    let root = bench.root().parent().unwrap().display().to_string();
    text.lines().filter_map(|line| line.trim().strip_prefix(&root)).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_real_device_keeps_what_was_written_for_the_next_pod_and_goes_without_a_trace() {
    let can_loop = Path::new("/dev/loop-control").exists() && rustix::process::geteuid().is_root();
    if !can_loop {
        test_facts::skipped("needs root and loop devices");
        return;
    }
    let bench = bench();
    let tasks = local_volume(&bench).await;
    let kubelet = || bench.start_on(Arc::new(LinuxMounts), Arc::new(LinuxExec));
    let mapped = |uid: &str| format!("/kubelet/plugins/kubernetes.io/csi/volumeDevices/pv/dev/{uid}");

    let set = kubelet();
    set.mount(&pod("u1")).await.unwrap();
    let path = device(&set, &pod("u1")).host_path;
    assert!(std::fs::metadata(&path).unwrap().file_type().is_block_device());
    let mut file = std::fs::File::options().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"precious").unwrap();
    file.sync_all().unwrap();
    drop((file, set));
    assert!(held(&bench).await.contains(&mapped("u1")), "whether a kubelet runs or not");

    let set = kubelet();
    set.mount(&pod("u1")).await.unwrap();
    assert_eq!(held(&bench).await.len(), 2, "the driver's own and the kubelet's: nothing twice");
    set.unmount("u1").await.unwrap();
    assert_eq!(held(&bench).await, Vec::<String>::new());

    set.mount(&pod("u2")).await.unwrap();
    let path = device(&set, &pod("u2")).host_path;
    let mut found = [0; 8];
    std::io::Read::read_exact(&mut std::fs::File::open(&path).unwrap(), &mut found).unwrap();
    assert_eq!(&found, b"precious");
    drop(set);
    // Its pod goes while no kubelet runs.
    kubelet().clean_orphans(&BTreeSet::new()).await;
    let left_mounted = LinuxMounts.unmount_below(bench.root().parent().unwrap(), Unmount::Lazy).unwrap();
    assert_eq!((held(&bench).await, left(&bench), left_mounted), (Vec::new(), Vec::new(), 0));
    tasks.shutdown(std::time::Duration::from_secs(10)).await;
}
