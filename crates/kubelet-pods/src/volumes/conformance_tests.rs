//! What the conformance suite holds true of volumes: modes, mappings, groups, values, and how they follow changes.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use api_machinery::quantity::Quantity;
use api_types::core_v1::Node;
use base::{Rng, SystemClock};
use serde_json::{Value, json};
use sys::exec::FakeExec;
use sys::mounts::{FakeMounts, LinuxMounts};

use super::*;
use crate::events::RecordedEvents;
use crate::node::FixedNode;
use crate::objects::FixedObjects;
use crate::volumes::{MountRequest, mounts_of};

fn objects(text: Option<&str>) -> FixedObjects {
    let mut objects = FixedObjects::default();
    if let Some(text) = text {
        objects.put_config_map(
            "ns",
            "cfg",
            [("data-1".to_owned(), text.to_owned()), ("data-2".to_owned(), "two".to_owned())],
        );
        objects.put_secret("ns", "sec", [("data-1".to_owned(), text.as_bytes().to_vec())]);
        objects.put_secret("elsewhere", "sec", [("data-1".to_owned(), b"of another namespace".to_vec())]);
    }
    objects
}

/// A node's volumes with these objects in the API.
static SEEDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

fn set_with(dir: &tempfile::TempDir, mounts: Arc<dyn Mounts>, objects: FixedObjects) -> Arc<VolumeSet> {
    let mut node = Node::default();
    for (name, amount) in [("cpu", "2"), ("memory", "4Gi")] {
        node.status.allocatable.insert(name.into(), Quantity::parse(amount).unwrap());
    }
    VolumeSet::new(VolumeDeps {
        layout: Layout::new(dir.path()),
        mounts,
        objects: Arc::new(objects),
        client: None,
        node: Arc::new(FixedNode { node: Some(Arc::new(node)) }),
        clock: SystemClock::shared(),
        rng: Rng::seeded(SEEDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
        csi: CsiDeps::default(),
        exec: Arc::new(FakeExec::new()),
        events: Arc::new(RecordedEvents::default()),
        labels: Labels::default(),
        quotas: None,
        trust_bundles: None,
        certificates: None,
        metrics: KubeletMetrics::unseen(),
    })
}

fn pod(volume: Value, extra: Value) -> Pod {
    let mut volume = volume;
    volume["name"] = "v".into();
    let mut spec = json!({
        "containers": [{
            "name": "main",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "1250m", "memory": "64Mi"}}
        }, {"name": "free"}],
        "volumes": [volume]
    });
    for (name, value) in extra.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let pod = json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u1",
        "labels": {"key1": "value1", "key2": "value2"}, "annotations": {"builder": "bar"}}, "spec": spec});
    api_machinery::object::from_json::<Pod>(pod.to_string().as_bytes()).unwrap().0
}

/// Text, permission bits and group of each file.
fn files(set: &VolumeSet) -> BTreeMap<String, (String, u32, u32)> {
    let root = set.mounted("u1", "v").unwrap().path;
    let mut out = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(root.join(&below)).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, relative) = (entry.path(), below.join(&name));
            if name.starts_with("..") {
                continue;
            }
            let meta = std::fs::metadata(&path).unwrap();
            if meta.is_dir() {
                open.push(relative);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            out.insert(relative.display().to_string(), (text, meta.permissions().mode() & 0o7777, meta.gid()));
        }
    }
    out
}

/// A volume and what its files must be: the kind, its source, the rest of the pod's spec, paths, mode and group.
type FileCase = (&'static str, Value, Value, Vec<&'static str>, u32, u32);

fn file_cases(own: u32, group: u32) -> Vec<FileCase> {
    let items = |mode: Value| json!([{"key": "data-1", "path": "path/to/data-2", "mode": mode}]);
    vec![
        ("configMap", json!({"name": "cfg"}), json!({}), vec!["data-1", "data-2"], 0o644, own),
        ("configMap", json!({"name": "cfg", "defaultMode": 0o400}), json!({}), vec!["data-1", "data-2"], 0o400, own),
        (
            "configMap",
            json!({"name": "cfg", "items": items(json!(0o400))}),
            json!({}),
            vec!["path/to/data-2"],
            0o400,
            own,
        ),
        ("secret", json!({"secretName": "sec"}), json!({}), vec!["data-1"], 0o644, own),
        (
            "secret",
            json!({"secretName": "sec", "items": items(Value::Null)}),
            json!({}),
            vec!["path/to/data-2"],
            0o644,
            own,
        ),
        (
            "secret",
            json!({"secretName": "sec", "defaultMode": 0o440}),
            json!({"securityContext": {"fsGroup": group, "runAsUser": 1000}}),
            vec!["data-1"],
            0o440,
            group,
        ),
        (
            "projected",
            json!({"sources": [{"secret": {"name": "sec"}}], "defaultMode": 0o440}),
            json!({"securityContext": {"fsGroup": group, "runAsUser": 1000}}),
            vec!["data-1"],
            0o440,
            group,
        ),
        (
            "projected",
            json!({"sources": [{"configMap": {"name": "cfg", "items": items(json!(0o400))}}]}),
            json!({}),
            vec!["path/to/data-2"],
            0o400,
            own,
        ),
        (
            "downwardAPI",
            json!({"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}], "defaultMode": 0o400}),
            json!({}),
            vec!["name"],
            0o400,
            own,
        ),
        (
            "projected",
            json!({"sources": [{"downwardAPI": {"items": [{"path": "name", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.name"}}]}}]}),
            json!({}),
            vec!["name"],
            0o400,
            own,
        ),
    ]
}

#[tokio::test]
async fn files_have_the_modes_that_are_asked_for() {
    let own = std::fs::metadata("/proc/self").unwrap().gid();
    // Only root may give files to other groups.
    let group = if rustix::process::geteuid().is_root() { 1001 } else { own };
    for (kind, source, extra, paths, mode, gid) in file_cases(own, group) {
        let dir = tempfile::tempdir().unwrap();
        let set = set_with(&dir, Arc::new(FakeMounts::new()), objects(Some("value-1")));
        let place = format!("{kind} {source}");
        set.mount(&pod(json!({kind: source}), extra)).await.unwrap();
        let found = files(&set);
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), paths, "{place}");
        for (path, (text, found_mode, found_gid)) in found {
            let wanted = if path == "name" {
                "web"
            } else if path == "data-2" {
                "two"
            } else {
                "value-1"
            };
            assert_eq!((text.as_str(), found_mode, found_gid), (wanted, mode, gid), "{place} {path}");
        }
    }
}

#[tokio::test]
async fn downward_values_default_to_what_the_node_has() {
    let resource = |resource: &str, container: &str, divisor: &str| json!([{"path": "x", "resourceFieldRef": {"containerName": container, "resource": resource, "divisor": divisor}}]);
    let field = |path: &str| json!([{"path": "x", "fieldRef": {"fieldPath": path}}]);
    let cases = [
        (resource("limits.cpu", "main", "1"), "2"),
        (resource("limits.cpu", "main", "1m"), "1250"),
        (resource("requests.cpu", "main", "1m"), "250"),
        (resource("limits.memory", "main", "1"), "67108864"),
        (resource("requests.memory", "main", "1Mi"), "32"),
        (resource("limits.cpu", "free", "0"), "2"),
        (resource("limits.memory", "free", "1Mi"), "4096"),
        (field("metadata.name"), "web"),
        (field("metadata.labels"), "key1=\"value1\"\nkey2=\"value2\""),
        (field("metadata.annotations"), "builder=\"bar\""),
    ];
    for (items, expected) in cases {
        for volume in [
            json!({"downwardAPI": {"items": items}}),
            json!({"projected": {"sources": [{"downwardAPI": {"items": items}}]}}),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let set = set_with(&dir, Arc::new(FakeMounts::new()), objects(None));
            set.mount(&pod(volume.clone(), json!({}))).await.unwrap();
            assert_eq!(files(&set)["x"].0, expected, "{volume}");
        }
    }
}

#[tokio::test]
async fn labels_of_a_running_pod_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let set = set_with(&dir, Arc::new(FakeMounts::new()), objects(None));
    let items = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    let mut pod = pod(json!({"downwardAPI": {"items": items}}), json!({}));
    set.mount(&pod).await.unwrap();
    pod.metadata.labels.insert("key3".into(), "value3".into());
    set.mount(&pod).await.unwrap();
    assert_eq!(files(&set)["labels"].0, "key1=\"value1\"\nkey2=\"value2\"\nkey3=\"value3\"");
}

#[tokio::test]
async fn optional_objects_are_followed_as_they_come_change_and_go() {
    for volume in [
        json!({"configMap": {"name": "cfg", "optional": true, "items": [{"key": "data-1", "path": "data-1"}]}}),
        json!({"secret": {"secretName": "sec", "optional": true}}),
        json!({"projected": {"sources": [{"configMap": {"name": "cfg", "optional": true, "items": [{"key": "data-1", "path": "data-1"}]}}]}}),
        json!({"projected": {"sources": [{"secret": {"name": "sec", "optional": true}}]}}),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mounts = Arc::new(FakeMounts::new());
        for text in [None, Some("value-1"), Some("value-2"), None] {
            // Each time as another kubelet would find it on disk.
            let set = set_with(&dir, mounts.clone(), objects(text));
            set.mount(&pod(volume.clone(), json!({}))).await.unwrap();
            let found = files(&set);
            assert_eq!(found.get("data-1").map(|(text, _, _)| text.as_str()), text, "{volume}");
        }
    }
}

#[tokio::test]
async fn fifty_volumes_of_one_pod_do_not_get_in_each_others_way() {
    let dir = tempfile::tempdir().unwrap();
    let set = set_with(&dir, Arc::new(FakeMounts::new()), objects(Some("value-1")));
    let mut pod = pod(json!({"configMap": {"name": "cfg"}}), json!({}));
    for number in 0..50 {
        let (mut volume, mut mount) = (pod.spec.volumes[0].clone(), pod.spec.containers[0].volume_mounts[0].clone());
        volume.name = format!("v{number}");
        mount.name.clone_from(&volume.name);
        mount.mount_path = format!("/etc/config-{number}");
        pod.spec.volumes.push(volume);
        pod.spec.containers[0].volume_mounts.push(mount);
    }
    set.mount(&pod).await.unwrap();
    for volume in &pod.spec.volumes {
        let path = set.mounted("u1", &volume.name).unwrap().path;
        assert_eq!(std::fs::read_to_string(path.join("data-1")).unwrap(), "value-1");
    }
}

/// What a container sees of a sub path, through real mounts.
async fn sub_path_text(volume: Value, sub_path: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let set = set_with(&dir, Arc::new(LinuxMounts), objects(Some("value-1")));
    let mut pod = pod(volume, json!({}));
    pod.spec.containers[0].volume_mounts[0].sub_path = sub_path.to_owned();
    if let Err(error) = set.mount(&pod).await {
        test_facts::skipped(&format!("mounts are not possible here: {error}"));
        return None;
    }
    let environment = BTreeMap::new();
    let request = MountRequest {
        pod: &pod,
        container: &pod.spec.containers[0],
        environment: &environment,
        recursive_read_only: false,
    };
    let made = mounts_of(&set, &request);
    let text = made.ok().map(|mounts| std::fs::read_to_string(&mounts[0].host_path).unwrap_or_default());
    set.unmount("u1").await.unwrap();
    text
}

#[tokio::test]
async fn sub_paths_show_one_file_of_each_kind_of_volume() {
    if !rustix::process::geteuid().is_root() {
        return test_facts::skipped("only root can mount");
    }
    let name = json!([{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]);
    for (volume, path, expected) in [
        (json!({"configMap": {"name": "cfg"}}), "data-1", "value-1"),
        (json!({"secret": {"secretName": "sec"}}), "data-1", "value-1"),
        (json!({"downwardAPI": {"items": name}}), "name", "web"),
        (json!({"projected": {"sources": [{"configMap": {"name": "cfg"}}]}}), "data-2", "two"),
    ] {
        if let Some(text) = sub_path_text(volume.clone(), path).await {
            assert_eq!(text, expected, "{volume}");
        }
    }
}
