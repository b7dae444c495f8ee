//! What every volume plugin keeps to: each step may be taken again, what is torn down is gone, what an earlier kubelet
//! left is found.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use api_types::core_v1::{CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, Volume};
use api_types::storage_v1::CSIDriver;
use base::{CancellationToken, Rng, SystemClock, TaskGroup};
use node_api::csi::fake::FakeDriver;
use serde_json::{Value, json};
use sys::exec::FakeExec;
use sys::mounts::{FakeMounts, Mounts};

use super::super::payload::MadeOf;
use super::*;
use crate::events::RecordedEvents;
use crate::node::FixedNode;
use crate::objects::FixedObjects;
use crate::volumes::Layout;
use crate::volumes::claims::{Backing, Resolved};
use crate::volumes::csi::{CsiVolume, Facts};
use crate::volumes::local::LocalVolume;

struct Bench {
    dir: tempfile::TempDir,
    mounts: Arc<FakeMounts>,
    plugins: Plugins,
    tools: Arc<Tools>,
}

fn bench() -> Bench {
    let (dir, mounts) = (tempfile::tempdir().unwrap(), Arc::new(FakeMounts::new()));
    let tools = tools(dir.path(), mounts.clone(), Arc::new(FakeExec::new()), Arc::new(RecordedEvents::default()));
    let socket = dir.path().join("csi.sock");
    let served = FakeDriver::default().serve(&socket, CancellationToken::new()).unwrap();
    TaskGroup::new("driver").spawn_cancellable("driver", async move { drop(served.await) });
    tools.csi.drivers.put_for_test(DRIVER, &socket);
    Bench { plugins: Plugins::new(&tools), dir, mounts, tools }
}

/// What plugins need of a machine, for a kubelet below a directory.
pub(in crate::volumes) fn tools(
    dir: &Path,
    mounts: Arc<dyn Mounts>,
    exec: Arc<dyn Exec>,
    events: Arc<dyn Events>,
) -> Arc<Tools> {
    let mut objects = FixedObjects::default();
    objects.put_config_map("ns", "o", [("key".to_owned(), "value".to_owned())]);
    objects.put_secret("ns", "o", [("key".to_owned(), b"value".to_vec())]);
    let disk = Arc::new(Disk {
        layout: Layout::new(dir.join("kubelet")),
        mounts,
        node: Arc::new(FixedNode::default()),
        clock: SystemClock::shared(),
        rng: Rng::seeded(1),
        quotas: None,
    });
    Arc::new(Tools {
        disk,
        calls: FileCalls::default(),
        made_of: MadeOf { objects: Arc::new(objects), tokens: None, trust_bundles: None, certificates: None },
        client: None,
        csi: CsiDeps::default(),
        exec,
        events,
        labels: Labels::default(),
        metrics: KubeletMetrics::unseen(),
    })
}

/// A volume of each plugin's, and whether it has a directory of its own. A plugin without one here does not compile.
fn volume(plugin: Plugin, root: &Path) -> (Value, bool) {
    let downward = json!({"items": [{"path": "key", "fieldRef": {"fieldPath": "metadata.name"}}]});
    match plugin {
        Plugin::EmptyDir => (json!({"emptyDir": {"medium": "Memory"}}), true),
        Plugin::ConfigMap => (json!({"configMap": {"name": "o"}}), true),
        Plugin::Secret => (json!({"secret": {"secretName": "o"}}), true),
        Plugin::DownwardApi => (json!({"downwardAPI": downward}), true),
        Plugin::Projected => (json!({"projected": {"sources": [{"secret": {"name": "o"}}]}}), true),
        Plugin::Local | Plugin::Csi | Plugin::LocalBlock | Plugin::CsiBlock => {
            (json!({"persistentVolumeClaim": {"claimName": "c"}}), true)
        }
        Plugin::Nfs => (json!({"nfs": {"server": "s", "path": "/x"}}), true),
        Plugin::HostPath => (json!({"hostPath": {"path": root, "type": "Directory"}}), false),
    }
}

fn spec(plugin: Plugin, root: &Path) -> VolumeSpec {
    let mut volume = volume(plugin, root).0;
    volume["name"] = "v".into();
    let volume: Volume = {
        let text = json!({"spec": {"volumes": [volume]}}).to_string();
        let pod: Pod = api_machinery::object::from_json(text.as_bytes()).unwrap().0;
        pod.spec.volumes[0].clone()
    };
    let backing = match plugin {
        Plugin::Local => Some(Backing::Local(LocalVolume::at(root))),
        Plugin::LocalBlock => Some(Backing::Local(LocalVolume::at(&block_device().unwrap()))),
        Plugin::Csi | Plugin::CsiBlock => Some(Backing::Csi(Box::new(of_driver(plugin)))),
        _ => None,
    };
    let csi = matches!(plugin, Plugin::Csi | Plugin::CsiBlock).then(|| Box::new(of_driver(plugin)));
    let block = plugin.is_block();
    let claim = backing.map(|backing| Resolved { volume: "pv".into(), backing, block, group: Some(7) });
    VolumeSpec { plugin, volume, claim, csi, read_only: false }
}

const DRIVER: &str = "csi.example.com";

/// A driver's volume that needs no attachment.
fn of_driver(plugin: Plugin) -> CsiVolume {
    let source = CSIPersistentVolumeSource { driver: DRIVER.into(), volume_handle: "h".into(), ..Default::default() };
    let mut driver = CSIDriver::default();
    driver.spec.attach_required = Some(false);
    let mut volume = PersistentVolume::default();
    volume.spec.volume_mode = plugin.is_block().then(|| "Block".to_owned());
    let volume = CsiVolume::of_claim(&source, &volume, &PersistentVolumeClaim::default());
    volume.with(Facts::of(Some(&driver)))
}

pub(in crate::volumes) fn pod(uid: &str) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.uid, pod.metadata.namespace, pod.metadata.name) = (uid.into(), "ns".into(), "web".into());
    pod
}

/// A device of this machine; it is not opened.
pub(in crate::volumes) fn block_device() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let paths = entries.map(|entry| Path::new("/dev").join(entry.file_name()));
    let is_device = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
    paths.filter(is_device).min()
}

/// The plugins that can be tried here.
fn plugins() -> Vec<Plugin> {
    let has_device = block_device().is_some();
    if !has_device {
        test_facts::skipped("there is no block device");
    }
    Plugin::ALL.into_iter().filter(|plugin| has_device || *plugin != Plugin::LocalBlock).collect()
}

/// Everything below a directory, with what the files hold.
fn tree(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        // Links to devices are nothing to read.
        let content = if path.is_file() { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        out.push(format!("{} {content}", path.display()));
        out.extend(if path.is_dir() && !path.is_symlink() { tree(&path) } else { Vec::new() });
    }
    out.sort();
    out
}

#[tokio::test]
async fn steps_may_be_taken_again() {
    for plugin in plugins() {
        let bench = bench();
        let (spec, own) = (spec(plugin, bench.dir.path()), bench.plugins.of(plugin).unwrap());
        let pods = bench.tools.disk.layout.pods();
        own.attach(&spec).await.unwrap();
        own.mount_device(&spec).await.unwrap();
        let first = own.set_up(&pod("u1"), &spec).await.unwrap();
        let (there, mounted) = (tree(&pods), bench.mounts.mounted());
        own.mount_device(&spec).await.unwrap();
        assert_eq!(own.set_up(&pod("u1"), &spec).await.unwrap(), first, "{plugin:?}");
        assert_eq!((tree(&pods), bench.mounts.mounted().len()), (there, mounted.len()), "{plugin:?}");
        assert_eq!(first.path.starts_with(&pods), volume(plugin, bench.dir.path()).1, "{plugin:?}");
        assert_eq!(first.path.is_dir(), !plugin.is_block(), "{plugin:?}");
    }
}

#[tokio::test]
async fn what_is_torn_down_is_gone_and_the_other_pods_is_not() {
    for plugin in plugins() {
        let bench = bench();
        let (spec, own) = (spec(plugin, bench.dir.path()), bench.plugins.of(plugin).unwrap());
        let own_mounts = |uid: &str| {
            let below = bench.tools.disk.layout.pod(uid);
            bench.mounts.mounted().into_iter().filter(|mount| mount.target.starts_with(&below)).count()
        };
        let mut places = Vec::new();
        for uid in ["u1", "u2"] {
            places.push(own.set_up(&pod(uid), &spec).await.unwrap().path);
        }
        let before = own_mounts("u2");
        for _ in 0..2 {
            own.tear_down("u1", spec.directory()).await.unwrap();
            let (left, kept) = (places[0].exists(), places[1].exists());
            assert_eq!((left, kept), (!volume(plugin, bench.dir.path()).1, true), "{plugin:?}");
            assert_eq!((own_mounts("u1"), own_mounts("u2")), (0, before), "{plugin:?}");
        }
        own.tear_down("u2", spec.directory()).await.unwrap();
        let name = bench.plugins.identify("u2", &spec).name;
        for _ in 0..2 {
            own.unmount_device(&name).await.unwrap();
            own.detach(&name).await.unwrap();
        }
        assert!(bench.mounts.mounted().is_empty(), "{plugin:?}");
        assert_eq!(own.set_up(&pod("u1"), &spec).await.unwrap().path, places[0], "{plugin:?}: it can come back");
    }
}

#[tokio::test]
async fn what_an_earlier_kubelet_left_is_found() {
    for plugin in plugins() {
        let bench = bench();
        let (spec, own) = (spec(plugin, bench.dir.path()), bench.plugins.of(plugin).unwrap());
        own.set_up(&pod("u1"), &spec).await.unwrap();
        let found = bench.tools.disk.reconstruct();
        let expected = volume(plugin, bench.dir.path()).1;
        let wanted = expected.then(|| ("u1".to_owned(), plugin, spec.directory().to_owned()));
        assert_eq!(found, wanted.into_iter().collect::<Vec<_>>());
        for (uid, plugin, directory) in found {
            let named = bench.plugins.identify("u1", &spec).name;
            assert_eq!(bench.plugins.recover(plugin, &uid, &directory).await.name, named, "{plugin:?}");
        }
        own.tear_down("u1", spec.directory()).await.unwrap();
        assert!(bench.tools.disk.reconstruct().is_empty(), "{plugin:?}");
    }
}
