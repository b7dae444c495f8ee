//! Volumes of whole pods, with recorded mounts and real directories.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use api_types::core_v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, GitRepoVolumeSource, LocalObjectReference, NFSVolumeSource,
    PersistentVolumeClaimVolumeSource, SecretVolumeSource, VolumeMount,
};
use base::{Rng, SystemClock};
use client::fake::FakeServer;
use serde_json::json;
use sys::exec::{FakeExec, Output};
use sys::mounts::FakeMounts;

use super::*;
use crate::events::RecordedEvents;
use crate::node::FixedNode;
use crate::objects::FixedObjects;
use crate::small_disk::SmallDisk;

struct Bench {
    dir: tempfile::TempDir,
    mounts: Arc<FakeMounts>,
    objects: Arc<FixedObjects>,
    set: Arc<VolumeSet>,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let (mounts, objects, set) = parts(dir.path());
    Bench { dir, mounts, objects, set }
}

fn parts(root: &Path) -> (Arc<FakeMounts>, Arc<FixedObjects>, Arc<VolumeSet>) {
    parts_with(root, Arc::new(FakeExec::new()))
}

fn parts_with(root: &Path, exec: Arc<FakeExec>) -> (Arc<FakeMounts>, Arc<FixedObjects>, Arc<VolumeSet>) {
    parts_of(root, exec, None)
}

/// On a node without labels.
fn parts_of(
    root: &Path,
    exec: Arc<FakeExec>,
    client: Option<Client>,
) -> (Arc<FakeMounts>, Arc<FixedObjects>, Arc<VolumeSet>) {
    parts_counted(root, exec, client, KubeletMetrics::unseen())
}

/// The same with metrics that somebody sees.
fn parts_counted(
    root: &Path,
    exec: Arc<FakeExec>,
    client: Option<Client>,
    metrics: Arc<KubeletMetrics>,
) -> (Arc<FakeMounts>, Arc<FixedObjects>, Arc<VolumeSet>) {
    let mounts = Arc::new(FakeMounts::new());
    let mut objects = FixedObjects::default();
    objects.put_config_map("ns", "cfg", [("key".to_owned(), "value".to_owned())]);
    objects.put_secret("ns", "login", [("token".to_owned(), b"hidden".to_vec())]);
    let objects = Arc::new(objects);
    let set = VolumeSet::new(VolumeDeps {
        layout: Layout::new(root),
        mounts: mounts.clone(),
        objects: objects.clone(),
        client,
        node: Arc::new(FixedNode { node: Some(Arc::default()) }),
        clock: SystemClock::shared(),
        rng: Rng::seeded(1),
        csi: CsiDeps::default(),
        exec,
        events: Arc::new(RecordedEvents::default()),
        labels: Labels::default(),
        quotas: None,
        trust_bundles: None,
        certificates: None,
        metrics,
    });
    (mounts, objects, set)
}

fn pod(volumes: Vec<(&str, api_types::core_v1::VolumeSource)>) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid = "u1".into();
    pod.metadata.namespace = "ns".into();
    let mut container = Container::default();
    for (name, volume_source) in volumes {
        container.volume_mounts.push(VolumeMount {
            name: name.into(),
            mount_path: format!("/{name}"),
            ..VolumeMount::default()
        });
        pod.spec.volumes.push(Volume { name: name.into(), volume_source });
    }
    pod.spec.containers.push(container);
    pod
}

fn source() -> api_types::core_v1::VolumeSource {
    api_types::core_v1::VolumeSource::default()
}

fn usual() -> Pod {
    let config_map = ConfigMapVolumeSource {
        local_object_reference: LocalObjectReference { name: "cfg".into() },
        ..ConfigMapVolumeSource::default()
    };
    let secret = SecretVolumeSource { secret_name: "login".into(), ..SecretVolumeSource::default() };
    pod(vec![
        ("scratch", VolumeSourceOf::empty("")),
        ("cfg", api_types::core_v1::VolumeSource { config_map: Some(config_map), ..source() }),
        ("login", api_types::core_v1::VolumeSource { secret: Some(secret), ..source() }),
    ])
}

struct VolumeSourceOf;

impl VolumeSourceOf {
    fn empty(medium: &str) -> api_types::core_v1::VolumeSource {
        let empty = EmptyDirVolumeSource { medium: medium.into(), ..EmptyDirVolumeSource::default() };
        api_types::core_v1::VolumeSource { empty_dir: Some(empty), ..source() }
    }
}

#[tokio::test]
async fn volumes_come_and_go() {
    let bench = bench();
    let pod = usual();
    bench.set.mount(&pod).await.unwrap();
    let at = |path: &str| bench.dir.path().join("pods/u1").join(path);
    assert_eq!(std::fs::read_to_string(at("volumes/kubernetes.io~configmap/cfg/key")).unwrap(), "value");
    assert_eq!(std::fs::read_to_string(at("volumes/kubernetes.io~secret/login/token")).unwrap(), "hidden");
    assert!(at("plugins/kubernetes.io~empty-dir/scratch/ready").exists());
    assert_eq!(std::fs::metadata(at("")).unwrap().permissions().mode() & 0o777, 0o750);
    let mounted: Vec<_> = bench.mounts.mounted().into_iter().map(|mount| mount.target).collect();
    assert_eq!(mounted, [at("volumes/kubernetes.io~secret/login")], "only what may be secret is in memory");

    std::fs::write(at("volumes/kubernetes.io~empty-dir/scratch/work"), "kept").unwrap();
    bench.set.mount(&pod).await.unwrap();
    assert!(at("volumes/kubernetes.io~empty-dir/scratch/work").exists(), "mounting again keeps the content");
    assert_eq!(bench.mounts.mounted().len(), 1);
    let login = bench.set.mounted("u1", "login").unwrap();
    assert!(login.read_only && login.relabel);

    bench.set.unmount("u1").await.unwrap();
    assert!(!at("volumes").exists() && bench.mounts.mounted().is_empty());
    bench.set.unmount("u1").await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_told_of_and_forgotten_once_there_is_room() {
    let Some(disk) = SmallDisk::new() else { return };
    let (_, _, set) = parts(disk.path());
    disk.fill();
    for _ in 0..2 {
        let error = set.mount(&usual()).await.unwrap_err();
        let MountError::Volumes(messages) = &error else { panic!("{error:?}") };
        let [cfg, login] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(cfg.text.starts_with("MountVolume.SetUp failed for volume \"cfg\" : "), "{cfg:?}");
        assert!(login.text.starts_with("MountVolume.SetUp failed for volume \"login\" : "), "{login:?}");
        assert!(messages.iter().all(|problem| problem.text.contains("No space left on device")), "{messages:?}");
        assert!(set.mounted("u1", "cfg").is_none());
    }
    disk.make_room();
    set.mount(&usual()).await.unwrap();
    let volume = disk.path().join("pods/u1/volumes/kubernetes.io~configmap/cfg");
    assert_eq!(std::fs::read_to_string(volume.join("key")).unwrap(), "value");
    let mut names: Vec<_> = std::fs::read_dir(volume).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let [stamped, data, key] = names.as_slice() else { panic!("something is left: {names:?}") };
    assert!(stamped.to_str().is_some_and(|name| name.starts_with("..2")), "{names:?}");
    assert_eq!((data.to_str(), key.to_str()), (Some("..data"), Some("key")));
}

#[tokio::test]
async fn a_busy_mount_keeps_everything() {
    let bench = bench();
    bench.set.mount(&usual()).await.unwrap();
    let at = bench.dir.path().join("pods/u1/volumes/kubernetes.io~secret/login");
    bench.mounts.refuse(&at);
    assert!(bench.set.unmount("u1").await.is_err());
    assert!(at.join("token").exists(), "nothing below a mount is removed");
}

#[tokio::test]
async fn problems_are_told_in_upstreams_words() {
    let bench = bench();
    let config_map = ConfigMapVolumeSource {
        local_object_reference: LocalObjectReference { name: "none".into() },
        ..ConfigMapVolumeSource::default()
    };
    let missing = pod(vec![
        ("ok", VolumeSourceOf::empty("")),
        ("cfg", api_types::core_v1::VolumeSource { config_map: Some(config_map), ..source() }),
    ]);
    let error = bench.set.mount(&missing).await.unwrap_err();
    assert_eq!(
        error,
        MountError::Volumes(vec!["MountVolume.SetUp failed for volume \"cfg\" : configmap \"none\" not found".into()])
    );
    let git = GitRepoVolumeSource::default();
    let old = pod(vec![("git", api_types::core_v1::VolumeSource { git_repo: Some(git.into()), ..source() })]);
    let error = bench.set.mount(&old).await.unwrap_err();
    assert!(error.to_string().starts_with(
        "MountVolume.NewMounter initialization failed for volume \"git\" : git-repo volume plugin has been"
    ));
}

#[tokio::test]
async fn claims_fail_at_the_steps_at_which_upstreams_fail() {
    let (server, dir) = (FakeServer::new(), tempfile::tempdir().unwrap());
    let (_, _, set) = parts_of(dir.path(), Arc::new(FakeExec::new()), Some(server.client()));
    let elsewhere = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}});
    let lacking = json!({"path": dir.path().join("none"), "type": "Directory"});
    let fine = json!({"path": dir.path(), "type": "Directory"});
    let none = format!("hostPath type check failed: {}/none is not a directory", dir.path().display());
    let unbound = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process \
                   volumes=[data]: error processing PVC ns/c: PVC is not bound";
    for (name, phase, host, affinity, expected) in [
        (
            "away",
            "Bound",
            &fine,
            &elsewhere,
            "MountVolume.NodeAffinity check failed for volume \"away\" : no matching NodeSelectorTerms",
        ),
        (
            "lacking",
            "Bound",
            &lacking,
            &json!(null),
            &*format!("MountVolume.SetUp failed for volume \"lacking\" : {none}"),
        ),
        (
            "choosy",
            "Bound",
            &fine,
            &json!(null),
            "MountVolume.MountOptionSupport check failed for volume \"choosy\" : Mount options are not supported for this \
             volume type",
        ),
        ("unbound", "Pending", &fine, &json!(null), unbound),
        ("there", "Bound", &fine, &json!(null), ""),
    ] {
        server.put(
            "v1/persistentvolumes",
            json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name}, "spec": {"hostPath": host, "nodeAffinity": affinity,
            "mountOptions": if name == "choosy" { json!(["hard"]) } else { json!(null) },
            "claimRef": {"namespace": "ns", "name": "c", "uid": "c"}}}),
        );
        server.put(
            "v1/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "ns", "name": "c", "uid": "c"}, "spec": {"volumeName": name},
            "status": {"phase": phase}}),
        );
        let claim = PersistentVolumeClaimVolumeSource { claim_name: "c".into(), ..Default::default() };
        let claim = api_types::core_v1::VolumeSource { persistent_volume_claim: Some(claim), ..source() };
        let told = match set.mount(&pod(vec![("data", claim)])).await {
            Ok(()) => String::new(),
            Err(MountError::Volumes(problems)) => problems.into_iter().map(|problem| problem.text).collect(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(told, expected, "{name}");
    }
}

#[tokio::test]
async fn orphans_go_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let registry = component_base::metrics::Metrics::new(component_base::metrics::MetricsOptions::default());
    let counted = KubeletMetrics::new(&registry, &registry);
    let (mounts, objects, set) = parts_counted(dir.path(), Arc::new(FakeExec::new()), None, counted);
    let bench = Bench { dir, mounts, objects, set };
    bench.set.mount(&usual()).await.unwrap();
    let mut other = usual();
    other.metadata.uid = "u2".into();
    bench.set.mount(&other).await.unwrap();
    // One of which something stays mounted that cannot be taken away.
    let stuck = bench.dir.path().join("pods/u3/odd");
    std::fs::create_dir_all(&stuck).unwrap();
    bench.mounts.mount(&sys::mounts::Mount::bind("/x", &stuck, sys::mounts::Depth::One)).unwrap();
    bench.mounts.refuse(&stuck);
    bench.set.clean_orphans(&["u2".to_owned()].into()).await;
    let text = registry.text();
    for line in ["kubelet_orphan_pod_cleaned_volumes 2", "kubelet_orphan_pod_cleaned_volumes_errors 1"] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    assert!(!bench.dir.path().join("pods/u1").exists());
    assert!(bench.dir.path().join("pods/u2/volumes/kubernetes.io~secret/login/token").exists());
    assert_eq!(bench.mounts.mounted().len(), 2);
}

#[tokio::test]
async fn volumes_outlive_the_objects_they_were_made_from() {
    let bench = bench();
    bench.set.mount(&usual()).await.unwrap();
    bench.objects.forget_all();
    let error = bench.set.mount(&usual()).await.unwrap_err();
    assert!(matches!(&error, MountError::Stale(messages) if messages.len() == 2), "{error:?}");
    assert!(bench.set.mounted("u1", "cfg").is_some() && bench.set.mounted("u1", "scratch").is_some());
    let mut other = usual();
    other.metadata.uid = "u2".into();
    let error = bench.set.mount(&other).await.unwrap_err();
    assert!(matches!(error, MountError::Volumes(_)), "a new pod has nothing to go on with: {error:?}");
}

/// The volumes that there are, with the pods that have them.
fn there(set: &VolumeSet) -> Vec<String> {
    let worlds = set.worlds.lock();
    let volumes = worlds.actual.volumes.iter().map(|(name, volume)| {
        let pods: Vec<String> = volume.pods.iter().map(|(uid, mount)| format!("{uid} {:?}", mount.done)).collect();
        format!("{name}: {}", pods.join(", "))
    });
    volumes.collect()
}

#[tokio::test]
async fn a_kubelet_that_comes_back_knows_what_there_is() {
    let bench = bench();
    bench.set.mount(&usual()).await.unwrap();
    let mut other = usual();
    other.metadata.uid = "u2".into();
    bench.set.mount(&other).await.unwrap();
    let all = there(&bench.set);
    assert_eq!(all.len(), 6);
    assert!(all.contains(&"kubernetes.io/secret/u2-login: u2 Yes".to_owned()), "{all:?}");

    let back = parts(bench.dir.path()).2;
    back.reconstruct().await;
    let found = there(&back);
    assert_eq!(found.len(), 6);
    assert!(found.iter().all(|line| line.ends_with("Uncertain")), "{found:?}");
    assert!(back.mounted("u1", "cfg").is_none(), "nobody has looked at it yet");
    back.mount(&usual()).await.unwrap();
    assert!(back.mounted("u1", "cfg").is_some());
    back.unmount("u2").await.unwrap();
    let left = there(&back);
    assert!(left.len() == 3 && left.iter().all(|line| line.ends_with("u1 Yes")), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn each_volume_waits_for_itself_alone() {
    let bench = bench();
    let missing = |name: &str| {
        let local_object_reference = LocalObjectReference { name: name.into() };
        let config_map = ConfigMapVolumeSource { local_object_reference, ..ConfigMapVolumeSource::default() };
        api_types::core_v1::VolumeSource { config_map: Some(config_map), ..source() }
    };
    let of = |uid: &str| {
        let mut pod = pod(vec![("a", missing("none")), ("b", VolumeSourceOf::empty(""))]);
        pod.metadata.uid = uid.into();
        pod
    };
    let mut waits = Vec::new();
    for _ in 0..4 {
        let began = tokio::time::Instant::now();
        bench.set.mount(&of("u1")).await.unwrap_err();
        waits.push(began.elapsed().as_millis());
    }
    assert!(waits[0] < 100 && (500..600).contains(&waits[1]) && (1000..1100).contains(&waits[2]), "{waits:?}");
    assert!((2000..2100).contains(&waits[3]), "{waits:?}");
    let began = tokio::time::Instant::now();
    bench.set.mount(&of("u2")).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(100), "another pod's volume is another");
    let hasty = tokio::time::timeout(Duration::from_millis(10), bench.set.mount(&of("u1"))).await;
    assert!(hasty.is_err() && bench.set.mounted("u1", "b").is_some(), "the other volume does not wait");
}

/// What the events of a pod say that has one volume.
async fn refusal(set: &VolumeSet, volume_source: api_types::core_v1::VolumeSource) -> Vec<String> {
    match set.mount(&pod(vec![("data", volume_source)])).await {
        Err(MountError::Volumes(problems)) => problems.into_iter().map(|problem| problem.text).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn exports_are_mounted_by_the_machines_program() {
    let nfs = |path: &str, read_only| {
        let nfs = NFSVolumeSource { server: "fd00::9".into(), path: path.into(), read_only };
        api_types::core_v1::VolumeSource { nfs: Some(nfs.into()), ..source() }
    };
    let dir = tempfile::tempdir().unwrap();
    let exec = Arc::new(FakeExec::new().answer(":/no ", Output::failed(32, "access denied\n")));
    let (_, _, set) = parts_with(dir.path(), exec.clone());
    let place = dir.path().join("pods/u1/volumes/kubernetes.io~nfs/data");
    let told = refusal(&set, nfs("/no", true)).await;
    let command = format!("-t nfs -o ro [fd00::9]:/no {}", place.display());
    let expected = format!(
        "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32\nMounting command: mount\nMounting \
         arguments: {command}\nOutput: access denied\n\n"
    );
    assert_eq!(told, [expected]);
    assert!(!place.exists(), "nothing is left where nothing was mounted");

    let (_, _, set) = parts_with(dir.path(), exec.clone());
    set.mount(&pod(vec![("data", nfs("/yes", false))])).await.unwrap();
    let mounted = set.mounted("u1", "data").unwrap();
    assert_eq!((&mounted.path, mounted.read_only, mounted.relabel), (&place, false, false));
    assert_eq!(exec.lines()[1], format!("mount -t nfs -- [fd00::9]:/yes {}", place.display()));
    // The next kubelet finds it mounted.
    let (again, _, set) = parts_with(dir.path(), exec.clone());
    again.mount(&sys::mounts::Mount::tmpfs(&place, None, 0o755)).unwrap();
    set.mount(&pod(vec![("data", nfs("/yes", false))])).await.unwrap();
    assert_eq!(exec.lines().len(), 2, "{:?}", exec.lines());
    set.unmount("u1").await.unwrap();
    assert_eq!(exec.lines()[2], format!("umount {}", place.display()));
    assert!(!place.exists());
}

#[tokio::test]
async fn disks_of_networks_are_refused_at_the_step_that_would_find_them() {
    let bench = bench();
    let iscsi = api_types::core_v1::VolumeSource { iscsi: Some(Default::default()), ..source() };
    let fc = api_types::core_v1::VolumeSource { fc: Some(Default::default()), ..source() };
    let told = refusal(&bench.set, iscsi).await;
    let start = "MountVolume.WaitForAttach failed for volume \"data\" : failed to get any path for iscsi disk, last err seen:\n";
    assert!(told[0].starts_with(start), "{told:?}");
    let told = refusal(&bench.set, fc).await;
    assert!(told[0].starts_with("MountVolume.WaitForAttach failed for volume \"data\" : no fc disk found"), "{told:?}");
    let gone = api_types::core_v1::VolumeSource { glusterfs: Some(Default::default()), ..source() };
    assert_eq!(
        refusal(&bench.set, gone).await,
        ["Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process \
          volumes=[data]: failed to get Plugin from volumeSpec for volume \"data\" err=no volume plugin matched"]
    );
}
